//! A client gives a call of its own up, in the same era as its server: the server is told in the words of
//! its transport, nobody waits any longer, and the trail says so.

use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::{Value, json};
use toolwarden_conversations::Scope;

use super::doors::{META, Speech, open_session, post_in_session};
use super::eras::puppet::{Puppet, Wire};
use super::house::{Given, House};
use super::parking::{house, statuses};
use super::patience::eventually;
use super::pipe::Pipe;

/// The `_meta` of a request of an era.
pub(super) fn meta(speech: Speech) -> Value {
    let meta: Value = match speech {
        Speech::Modern => serde_json::from_str(&format!("{{{META}}}")).unwrap_or_default(),
        Speech::Legacy => json!({"_meta": {}}),
    };
    meta.get("_meta").cloned().unwrap_or_default()
}

/// `act` with these steps, as its era says it.
pub(super) fn call(speech: Speech, id: u64, steps: &[&str]) -> Value {
    let mut meta = meta(speech);
    if let Some(meta) = meta.as_object_mut() {
        meta.insert("progressToken".to_owned(), id.into());
    }
    let params = json!({"name": "act", "arguments": {"tag": "t", "steps": steps}, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

pub(super) fn cancel(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "enough"}})
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

pub(super) const CONFIG: &str = "[auto_run]\nmode = \"run_everything\"\n";
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

/// Before it has left there is nobody to tell: it never leaves.
#[tokio::test]
async fn what_is_given_up_early_never_leaves() {
    for wire in [Wire::Modern, Wire::Legacy, Wire::Oldest] {
        let speech = Speech::Modern;
        for scope in [Scope::One("notes".into()), Scope::All] {
            let (house, puppet) = house(wire).await;
            let name = if scope == Scope::All { "notes__act" } else { "act" };
            let mut pipe = Pipe::open(&house, scope, Speech::Modern).await;
            puppet.takes_its_time(true);
            let mut first = call(speech, 7, &[]);
            if let Some(tool) = first.pointer_mut("/params/name") {
                *tool = json!(name);
            }
            pipe.say(&first).await;
            assert!(eventually(async || puppet.met_slow() > 0).await, "{wire:?}: the call has not begun");
            pipe.say(&cancel(7)).await;
            // Messages of one line are read in order: whatever is said now comes after the cancellation.
            pipe.say(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": meta(speech)}}))
                .await;
            puppet.takes_its_time(false);
            let said = pipe.hear().await;
            assert!(said.pointer("/result/tools").is_some(), "{wire:?}: {said}");
            assert_eq!(puppet.calls(), 0, "{wire:?}");
            assert!(foreign(&house).await.is_empty(), "{wire:?}: {:?}", foreign(&house).await);
        }
    }
}

/// Records of ids that were not their caller's own.
async fn foreign(house: &House) -> Vec<Value> {
    let records = house.records().await;
    records.into_iter().filter(|record| record.get("reason") == Some(&json!("foreign_id"))).collect()
}

#[tokio::test]
async fn a_subscription_can_be_given_up_in_every_era() {
    for wire in [Wire::Modern, Wire::Legacy, Wire::Oldest] {
        let (house, _puppet) = house(wire).await;
        let mut pipe = Pipe::open(&house, Scope::One("notes".into()), Speech::Modern).await;
        let listen = json!({"jsonrpc": "2.0", "id": 3, "method": "subscriptions/listen", "params": {
            "notifications": {"toolsListChanged": true}, "_meta": meta(Speech::Modern)}});
        for _ in 0..3 {
            pipe.say(&listen).await;
            let first = pipe.hear().await;
            assert!(first.to_string().contains("acknowledged"), "{wire:?}: {first}");
            pipe.say(&listen).await;
            let twice = pipe.hear().await;
            assert!(twice.to_string().contains("still on its way"), "{wire:?}: {twice}");
            pipe.say(&cancel(3)).await;
            let is_free = async || {
                pipe.say(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"_meta": meta(Speech::Modern)}}))
                    .await;
                pipe.hear().await.get("result").is_some()
            };
            assert!(eventually(is_free).await, "{wire:?}");
        }
        assert!(foreign(&house).await.is_empty(), "{wire:?}: {:?}", foreign(&house).await);
    }
}

/// Two requests of one id at the same time: the second is refused, and takes nothing from the first.
#[tokio::test]
async fn an_id_belongs_to_one_request_at_a_time() {
    let (house, puppet) = house(Wire::Legacy).await;
    let session = open_session(&house).await;
    let hanging = post_in_session(&house, &session, &call(Speech::Legacy, 7, &["Progress", "Hang"]).to_string()).await;
    let second = post_in_session(&house, &session, &call(Speech::Legacy, 7, &[]).to_string()).await;
    let second = second.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    assert!(String::from_utf8_lossy(&second).contains("still on its way"), "{second:?}");
    let rest = tokio::spawn(hanging.into_body().collect());
    post_in_session(&house, &session, &cancel(7).to_string()).await;
    was_told(&house, &puppet, Wire::Legacy).await;
    assert!(rest.await.is_ok());
    assert!(foreign(&house).await.is_empty());
    // A cancellation that comes too late is nothing to record; one of an id that never was is.
    post_in_session(&house, &session, &cancel(7).to_string()).await;
    assert!(foreign(&house).await.is_empty());
    post_in_session(&house, &session, &cancel(8).to_string()).await;
    assert_eq!(foreign(&house).await.len(), 1);
}

/// A modern child is told once, whoever finds first that nobody waits.
#[tokio::test]
async fn a_child_is_told_once() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let heard = directory.path().join("heard");
    let config = format!(
        r#"
{CONFIG}
[servers.child]
command = "sh"
args = ["-c", '''
while read -r line; do
  printf '%s\n' "$line" >> {heard}
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *server/discover*) result='{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}}}}' ;;
    *tools/list*) result='{{"resultType":"complete","tools":[{{"name":"act","inputSchema":{{"type":"object"}}}}]}}' ;;
    *) continue ;;
  esac
  printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$result"
done
''']
"#,
        heard = heard.display()
    );
    let config: &'static str = Box::leak(config.into_boxed_str());
    let house = House::build(&Given { config, ..Given::default() }).await.ok_or("no gateway")?;
    let count = |what: &str| std::fs::read_to_string(&heard).unwrap_or_default().matches(what).count();
    let mut pipe = Pipe::open(&house, Scope::One("child".into()), Speech::Modern).await;
    for round in 1..=20 {
        pipe.say(&call(Speech::Modern, 7, &[])).await;
        assert!(eventually(async || count("tools/call") == round).await, "{round}");
        pipe.say(&cancel(7)).await;
        assert!(eventually(async || count("notifications/cancelled") >= round).await, "{round}");
        let expected = vec!["cancelled"; round];
        assert!(eventually(async || statuses(&house).await == expected).await, "{:?}", statuses(&house).await);
    }
    // The child reads in order: a cancellation that was sent twice would stand before the next call.
    pipe.say(&call(Speech::Modern, 7, &[])).await;
    assert!(eventually(async || count("tools/call") == 21).await);
    assert_eq!(count("notifications/cancelled"), 20);
    Ok(())
}

/// One that breaks off by itself is answered, though nothing of it can be said.
#[tokio::test]
async fn a_large_answer_that_breaks_off_is_an_error_on_a_pipe() {
    for (scope, uri) in [(Scope::One("notes".into()), "note://a"), (Scope::All, "toolwarden://notes/note://a")] {
        for (wire, speech) in [(Wire::Modern, Speech::Modern), (Wire::Legacy, Speech::Legacy)] {
            let (house, _puppet) = house(wire).await;
            let mut pipe = Pipe::open(&house, scope.clone(), speech).await;
            let mut read = call(speech, 7, &["BreakALargeAnswer"]);
            if let Some(params) = read.pointer_mut("/params").and_then(Value::as_object_mut) {
                params.insert("uri".to_owned(), json!(uri));
            }
            if let Some(method) = read.pointer_mut("/method") {
                *method = json!("resources/read");
            }
            pipe.say(&read).await;
            let said = pipe.hear().await;
            assert_eq!(said.get("id"), Some(&json!(7)), "{scope:?} {wire:?}: {said}");
            assert!(said.get("error").is_some(), "{scope:?} {wire:?}: {said}");
        }
    }
}
