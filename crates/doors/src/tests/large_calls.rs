//! Large calls are checked away from the threads that serve (WORK-1): shown by the order of things, not by a clock.

use std::sync::mpsc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use serde_json::{Value, json};
use toolwarden_conversations::Scope;

use super::doors::{Entrance, Reach, Speech, open_session, post_in_session, send, walk};
use super::held::{ASKING, answer, approval_id, house, reason, text};
use super::house::{Given, House, ada};
use super::recorder::{Recorder, Speaks};

async fn call(house: &House, arguments: &str) -> Value {
    let said =
        walk(house, ada(), Scope::One("notes".into()), Speech::Modern, &text(Speech::Modern, arguments, "")).await;
    serde_json::from_str(&said).unwrap_or(Value::String(said))
}

#[test]
fn work_1_a_large_call_is_checked_away_from_the_threads_that_serve() {
    // One thread serves, and one is for work that takes long. As long as the latter is taken, a large call waits.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    let Ok(runtime) = runtime else { unreachable!("a runtime is made") };
    runtime.block_on(async {
        let house = house(&Given { allowlist: &["notes:*"], ..ASKING }, Speaks::Both).await;
        assert!(reason(&call(&house, r#"{"n":0}"#).await).starts_with("ran"), "its tools are known");
        house.recorder.forget();
        let (release, released) = mpsc::channel::<()>();
        let taken = tokio::task::spawn_blocking(move || released.recv().is_ok());
        let large = format!(r#"{{"items":[{}0]}}"#, "0,".repeat(100_000));
        let both = async {
            let large = Box::pin(call(&house, &large));
            let small = Box::pin(call(&house, r#"{"n":1}"#));
            match select(large, small).await {
                Either::Right((said, large)) => (Some(said), Either::Left(large)),
                Either::Left((said, _)) => (None, Either::Right(said)),
            }
        };
        let both = tokio::time::timeout(Duration::from_secs(60), both).await;
        assert!(both.is_ok(), "a small call waits for what is checked elsewhere");
        let Ok((small, large)) = both else { unreachable!("asserted") };
        assert!(small.is_some_and(|said| reason(&said).starts_with("ran")), "the large call kept the serving thread");
        assert_eq!(house.recorder.calls().len(), 1, "the large call was not checked yet");
        assert!(release.send(()).is_ok());
        let Either::Left(large) = large else { unreachable!("asserted") };
        let said = large.await;
        assert!(reason(&said).starts_with("ran"), "{said}");
        assert!(taken.await.is_ok_and(|is_released| is_released));
        assert_eq!(house.recorder.calls().len(), 2);
    });
}

#[test]
fn work_1_a_large_held_call_is_decided_again_away_from_the_threads_that_serve() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    let Ok(runtime) = runtime else { unreachable!("a runtime is made") };
    runtime.block_on(async {
        let house = house(&ASKING, Speaks::Both).await;
        let arguments = format!(r#"{{"items":[{}0]}}"#, "0,".repeat(100_000));
        let id = approval_id(&call(&house, &arguments).await);
        answer(&house, &id, true, "ada").await;
        let mut large = Box::pin(call(&house, &arguments));
        // The other thread is taken until the large call waits for it, and taken again behind its first decision.
        let (let_decide, waits) = mpsc::channel::<()>();
        let first = tokio::task::spawn_blocking(move || waits.recv().is_ok());
        match select(large, Box::pin(call(&house, r#"{"n":20}"#))).await {
            Either::Right((_, still)) => large = still,
            Either::Left((said, _)) => unreachable!("it was decided on the serving thread: {said}"),
        }
        let ((release, released), (begin, begun)) = (mpsc::channel::<()>(), tokio::sync::oneshot::channel());
        let taken = tokio::task::spawn_blocking(move || begin.send(()).is_ok() && released.recv().is_ok());
        assert!(let_decide.send(()).is_ok() && begun.await.is_ok() && first.await.is_ok());
        for number in 0..20 {
            match select(large, Box::pin(call(&house, &format!(r#"{{"n":{number}}}"#)))).await {
                Either::Right((said, still)) => {
                    assert!(!reason(&said).starts_with("ran"), "small calls are held, and answered");
                    large = still;
                }
                Either::Left((said, _)) => unreachable!("it was decided on the serving thread: {said}"),
            }
        }
        assert_eq!(house.recorder.calls().len(), 0);
        assert!(release.send(()).is_ok());
        let said = large.await;
        assert!(reason(&said).starts_with("ran"), "{said}");
        assert!(taken.await.is_ok_and(|is_released| is_released));
        assert_eq!(house.recorder.calls().len(), 1);
    });
}

#[tokio::test]
async fn work_1_large_calls_wait_for_a_turn_and_hold_their_room_until_they_have_left() {
    let house = house(&Given { allowlist: &["notes:*"], ..ASKING }, Speaks::Both).await;
    let session = open_session(&house).await;
    let large = text(Speech::Legacy, &format!(r#"{{"items":[{}0]}}"#, r#"{"n":1},"#.repeat(100_000)), "");
    let turn = || house.gateway.large.turn(|| "others".to_owned(), std::future::pending());
    let mut turns = vec![turn().await.ok(), turn().await.ok()];
    assert_eq!(house.gateway.large.running(), 2);
    let first = Box::pin(post_in_session(&house, &session, &large));
    // Small calls pass by; they need no turn.
    let small = Box::pin(call(&house, r#"{"n":1}"#));
    let Either::Right((said, mut first)) = select(first, small).await else {
        unreachable!("a large call took no turn");
    };
    assert!(reason(&said).starts_with("ran"), "{said}");
    assert_eq!(house.recorder.calls().len(), 1, "the large call waits");
    // What was read takes its room as long as the call has not left.
    let (bytes, values) = house.gateway.bodies.in_progress();
    assert!(bytes > 700_000 && values > 200_000, "{bytes} {values}");
    let others: Vec<String> =
        (8..40).map(|number| large.replacen("\"id\":7", &format!("\"id\":{number}"), 1)).collect();
    let mut refused = 0;
    let mut waiting = Vec::new();
    for other in &others {
        let mut next = Box::pin(post_in_session(&house, &session, other));
        match next.as_mut().now_or_never() {
            Some(response) => refused += usize::from(response.status() == http::StatusCode::TOO_MANY_REQUESTS),
            None => waiting.push(next),
        }
    }
    assert!(refused > 10 && waiting.len() > 3, "{refused} refused, {} wait", waiting.len());
    turns.clear();
    assert!((&mut first).await.status().is_success());
    for waits in waiting {
        assert!(waits.await.status().is_success());
    }
    drop(first);
    assert_eq!(house.gateway.large.running(), 0);
    let is_free = async {
        while house.gateway.bodies.in_progress() != (0, 0) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(10), is_free).await.is_ok(), "room is given back");
}

/// Definitions that double: a small call takes a hundred thousand steps.
fn doubling() -> Value {
    let level = |number: usize| {
        let next = format!("#/$defs/l{}", number + 1);
        (format!("l{number}"), json!({ "anyOf": [{ "$ref": next }, { "$ref": next }] }))
    };
    let mut levels: serde_json::Map<_, _> = (0..14).map(level).collect();
    levels.insert("l14".to_owned(), json!(false));
    json!({ "$defs": levels, "type": "object", "properties": { "x": { "anyOf": [{ "$ref": "#/$defs/l0" }, true] } } })
}

/// Says whether a slow request waits for the other thread, and a quick one does not.
async fn waits_elsewhere(house: &House, (slow, params): (&str, &str), (quick, others): (&str, &str)) {
    let ask = async |method: &str, params: &str| {
        send(house, Entrance::Http(Reach::One), Speech::Modern, method, params).await
    };
    assert!(ask(quick, others).await.contains("result"), "its tools are known");
    let (release, released) = mpsc::channel::<()>();
    let taken = tokio::task::spawn_blocking(move || released.recv().is_ok());
    let slow = match select(Box::pin(ask(slow, params)), Box::pin(ask(quick, others))).await {
        Either::Right((said, slow)) => {
            assert!(said.contains("result"), "{said}");
            slow
        }
        Either::Left((said, _)) => unreachable!("it kept the serving thread: {said}"),
    };
    assert!(release.send(()).is_ok());
    let said = slow.await;
    assert!(said.contains("fine"), "{said}");
    assert!(taken.await.is_ok_and(|is_released| is_released));
}

#[test]
fn work_1_what_a_schema_makes_much_of_is_checked_away_from_the_threads_that_serve() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    let Ok(runtime) = runtime else { unreachable!("a runtime is made") };
    runtime.block_on(async {
        let Ok(recorder) = Recorder::start(Speaks::Both).await else { unreachable!("it is started") };
        let output = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        let costly = json!({ "name": "costly", "inputSchema": doubling() });
        let large = json!({ "name": "large", "inputSchema": { "type": "object" }, "outputSchema": output });
        recorder.lists("tools/list", vec![json!({ "tools": [costly, large] })]);
        let text = format!("fine {}", "x".repeat(100_000));
        let result = json!({ "content": [{ "type": "text", "text": text }], "structuredContent": { "n": 1 } });
        recorder.answers(&result.to_string());
        let given = Given { config: "[auto_run]\nmode = \"run_everything\"", ..Given::default() };
        let Some(house) = House::around(&given, recorder).await else { unreachable!("the house is built") };
        let list = ("tools/list", "");
        waits_elsewhere(&house, ("tools/call", r#""name":"costly","arguments":{"x":1}"#), list).await;
        waits_elsewhere(&house, ("tools/call", r#""name":"large","arguments":{}"#), list).await;
    });
}
