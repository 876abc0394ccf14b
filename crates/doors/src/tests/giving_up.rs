//! A client gives a call of its own up, in the same era as its server: the server is told in the words of
//! its transport, nobody waits any longer, and the trail says so.

use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::{Value, json};
use toolwarden_conversations::Scope;

use super::doors::{META, Speech, open_session, post_in_session};
use super::eras::puppet::{Puppet, Wire};
use super::house::House;
use super::parking::{house, statuses};
use super::pipe::Pipe;

/// `act` with these steps, as its era says it.
pub(super) fn call(speech: Speech, id: u64, steps: &[&str]) -> Value {
    let meta: Value = match speech {
        Speech::Modern => serde_json::from_str(&format!("{{{META}}}")).unwrap_or_default(),
        Speech::Legacy => json!({"_meta": {}}),
    };
    let mut meta = meta.get("_meta").cloned().unwrap_or_default();
    if let Some(meta) = meta.as_object_mut() {
        meta.insert("progressToken".to_owned(), id.into());
    }
    let params = json!({"name": "act", "arguments": {"tag": "t", "steps": steps}, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn cancel(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "enough"}})
}

pub(super) async fn eventually(mut is_so: impl AsyncFnMut() -> bool) -> bool {
    for _ in 0..500 {
        if is_so().await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

/// What the server must have seen: a stream that closed, words, or both.
async fn was_told(house: &House, puppet: &Puppet, wire: Wire) {
    let ended = eventually(async || statuses(house).await == ["cancelled"]).await;
    assert!(ended, "{wire:?}: {:?}", statuses(house).await);
    let words = usize::from(wire != Wire::Modern);
    let streams = usize::from(wire != Wire::Oldest);
    let told = eventually(async || (puppet.cancelled(), puppet.hung_up()) == (words, streams)).await;
    assert!(told, "{wire:?}: {} {}", puppet.cancelled(), puppet.hung_up());
}

const WIRES: [(Wire, Speech); 3] =
    [(Wire::Modern, Speech::Modern), (Wire::Legacy, Speech::Legacy), (Wire::Oldest, Speech::Legacy)];

#[tokio::test]
async fn over_a_pipe_nobody_waits_for_what_was_given_up() {
    for (wire, speech) in WIRES {
        for steps in [&["Progress", "Hang"][..], &["HangAtOnce"]] {
            let (house, puppet) = house(wire).await;
            let mut pipe = Pipe::open(&house, Scope::One("notes".into()), speech).await;
            pipe.say(&call(speech, 7, steps)).await;
            if steps.contains(&"Hang") {
                let progress = pipe.hear().await;
                assert_eq!(progress.pointer("/params/progressToken"), Some(&json!(7)), "{wire:?}: {progress}");
            } else {
                assert!(eventually(async || puppet.hanging() == 1).await, "{wire:?}");
            }
            pipe.say(&cancel(7)).await;
            was_told(&house, &puppet, wire).await;
            // The next thing said is the next answer: the call that was given up has none. Its id is free again.
            pipe.say(&call(speech, 7, &[])).await;
            let said = pipe.hear().await;
            assert_eq!(said.pointer("/result/content/0/text"), Some(&json!("done t")), "{wire:?}: {said}");
        }
    }
}

#[tokio::test]
async fn over_http_a_legacy_client_gives_up_with_another_message() {
    for wire in [Wire::Legacy, Wire::Oldest] {
        let (house, puppet) = house(wire).await;
        let session = open_session(&house).await;
        let call = call(Speech::Legacy, 7, &["Progress", "Hang"]).to_string();
        let response = post_in_session(&house, &session, &call).await;
        let mut body = response.into_body();
        let first = body.frame().await.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
        assert!(first.is_some_and(|first| String::from_utf8_lossy(&first).contains("progress")), "{wire:?}");
        let rest = tokio::spawn(body.collect());
        let answer = post_in_session(&house, &session, &cancel(7).to_string()).await;
        assert_eq!(answer.status(), http::StatusCode::ACCEPTED);
        was_told(&house, &puppet, wire).await;
        let rest = tokio::time::timeout(Duration::from_secs(10), rest).await;
        let rest = rest.ok().and_then(Result::ok).and_then(Result::ok).map(|rest| rest.to_bytes());
        assert_eq!(rest.as_deref(), Some(&b""[..]), "{wire:?}: the stream ends, and says no more");
    }
}

/// A large answer on its way is cut off; a pipe hears nothing of it.
#[tokio::test]
async fn a_large_answer_that_was_given_up_is_cut_off() {
    let (house, puppet) = house(Wire::Modern).await;
    let mut pipe = Pipe::open(&house, Scope::One("notes".into()), Speech::Modern).await;
    pipe.say(&call(Speech::Modern, 7, &["HalfALargeAnswer"])).await;
    assert!(eventually(async || puppet.hanging() == 1).await);
    pipe.say(&cancel(7)).await;
    was_told(&house, &puppet, Wire::Modern).await;
    pipe.say(&json!({"jsonrpc": "2.0", "id": 8, "method": "ping", "params": {}})).await;
    let said = pipe.hear().await;
    assert_eq!(said.get("id"), Some(&json!(8)), "{said}");
}
