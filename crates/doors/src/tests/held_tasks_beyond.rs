//! Tasks of held calls whose servers ask something, make tasks themselves, or give what a person has to look at first.

use serde_json::{Value, json};
use toolwarden_core::ApprovalState;

use super::doors::Speech;
use super::held::{ASKING, all, answer, house, states};
use super::held_tasks::{about, ask, follow, made, one, the_one, until};
use super::house::{Given, House, ada};
use super::recorder::Speaks;

const ASKS: &str = r#"{"resultType":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}},"requestState":"theirs"}"#;
const DONE: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"done"}]}"#;
const LEGACY_TASK: &str = r#"{"task":{"taskId":"t1","status":"working"}}"#;
const MODERN_TASK: &str = r#"{"resultType":"task","taskId":"t1","status":"working"}"#;
/// A client that can be asked, besides knowing tasks.
const CAPABLE: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

async fn approved(house: &House, speech: Speech) -> String {
    let task = follow(house, one(), speech).await;
    assert!(answer(house, &the_one(house).await, true, "bob").await.is_some());
    task
}

async fn update(house: &House, task: &str, responses: &Value) -> Value {
    ask(
        house,
        ada(),
        one(),
        Speech::Modern,
        "tasks/update",
        &format!(r#""taskId":"{task}","inputResponses":{responses}"#),
    )
    .await
}

/// What its server asks is asked by the task, and the call goes on under the approval it left with.
#[tokio::test]
async fn review_8_a_task_asks_what_its_server_asks() {
    let house = house(&Given { server: "may_ask = [\"elicitation\"]", ..ASKING }, Speaks::Modern).await;
    house.recorder.answers(ASKS);
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"write","arguments":{{}},{CAPABLE}}}}}"#
    );
    let said = super::doors::walk(&house, ada(), one(), Speech::Modern, &text).await;
    let said: Value = serde_json::from_str(&said).unwrap_or_default();
    let task = said.pointer("/result/taskId").and_then(Value::as_str).unwrap_or_default().to_owned();
    assert!(answer(&house, &the_one(&house).await, true, "bob").await.is_some(), "{said}");
    let mut keys: Vec<String> = Vec::new();
    for round in 0..2 {
        let asks = until(&house, one(), Speech::Modern, &task, "input_required").await;
        let requests = asks.pointer("/result/inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
        let key = requests.keys().next().cloned().unwrap_or_default();
        assert!(requests.len() == 1 && !keys.contains(&key), "{asks}");
        assert!(!asks.to_string().contains("theirs"), "{asks}");
        keys.push(key.clone());
        // What was not asked is nothing.
        update(&house, &task, &json!({ "other": { "action": "accept", "content": {} } })).await;
        assert_eq!(made(&house), round + 1);
        if round == 1 {
            house.recorder.answers(DONE);
        }
        let said = update(&house, &task, &json!({ key: { "action": "accept", "content": { "name": "x" } } })).await;
        assert_eq!(said.pointer("/result/resultType"), Some(&json!("complete")), "{said}");
        if round == 0 {
            for _ in 0..500 {
                if made(&house) == 2 {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        }
    }
    let done = until(&house, one(), Speech::Modern, &task, "completed").await;
    assert_eq!(done.pointer("/result/result/content/0/text"), Some(&json!("done")), "{done}");
    let calls = house.recorder.calls();
    assert_eq!(calls.len(), 3);
    let last: Value = calls.last().and_then(|(_, text)| serde_json::from_str(text).ok()).unwrap_or_default();
    assert_eq!(last.pointer("/params/inputResponses/name/content/name"), Some(&json!("x")), "{last}");
    assert_eq!(last.pointer("/params/requestState"), Some(&json!("theirs")), "{last}");
    assert_eq!(all(&house).await.len(), 1, "nobody is asked again");
    assert_eq!(states(&house, &[ApprovalState::Succeeded]).await, [ApprovalState::Succeeded]);
}

/// A server that makes a task of an approved call: its caller goes on with the id it has.
#[tokio::test]
async fn review_8_a_task_that_its_server_made_is_followed_under_its_first_name() {
    for (speech, speaks, theirs, methods) in [
        (Speech::Modern, Speaks::Modern, MODERN_TASK, ["tasks/get", "tasks/update", "tasks/cancel"]),
        (Speech::Legacy, Speaks::Legacy, LEGACY_TASK, ["tasks/get", "tasks/result", "tasks/cancel"]),
    ] {
        let house = house(&ASKING, speaks).await;
        house.recorder.answers(theirs);
        let task = approved(&house, speech).await;
        states(&house, &[ApprovalState::Succeeded]).await;
        house
            .recorder
            .lists("tasks/get", vec![json!({ "resultType": "complete", "taskId": "t1", "status": "working" })]);
        for _ in 0..500 {
            about(&house, one(), speech, "tasks/get", &task).await;
            if house.recorder.calls().iter().any(|(method, _)| method == "tasks/get") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        for method in methods {
            house.recorder.forget();
            let said = about(&house, one(), speech, method, &task).await;
            let calls = house.recorder.calls();
            let asked: Vec<_> = calls.iter().filter(|(_, text)| text.contains(r#""t1""#)).collect();
            assert!(asked.len() == 1 && !calls.iter().any(|(_, text)| text.contains(&task)), "{method}: {calls:?}");
            if method == "tasks/get" {
                assert_eq!(said.pointer("/result/taskId"), Some(&json!(task)), "{said}");
            }
        }
    }
}

/// Behind the common door a server hears nothing of tasks: nobody could ask it for one.
#[tokio::test]
async fn behind_the_common_door_servers_make_no_tasks() {
    let house = house(&Given { allowlist: &["notes:*"], ..ASKING }, Speaks::Modern).await;
    let calls = |house: &House| house.recorder.calls().last().map(|(_, text)| text.clone()).unwrap_or_default();
    ask(
        &house,
        ada(),
        toolwarden_conversations::Scope::All,
        Speech::Modern,
        "tools/call",
        r#""name":"notes__write","arguments":{}"#,
    )
    .await;
    assert!(!calls(&house).contains("modelcontextprotocol/tasks"), "{}", calls(&house));
    ask(&house, ada(), one(), Speech::Modern, "tools/call", r#""name":"write","arguments":{}"#).await;
    assert!(calls(&house).contains("modelcontextprotocol/tasks"), "{}", calls(&house));
}

/// A person before the call and a person before its result: one task for both.
#[tokio::test]
async fn review_8_a_task_waits_for_its_result_to_be_looked_at() {
    for is_shown in [true, false] {
        let given = Given { server: "tools.write = { review = \"both\" }", ..ASKING };
        let house = house(&given, Speaks::Both).await;
        let task = approved(&house, Speech::Modern).await;
        let mut waits = Value::Null;
        for _ in 0..500 {
            waits = about(&house, one(), Speech::Modern, "tasks/get", &task).await;
            if waits.to_string().contains("its result waits") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert!(waits.to_string().contains("its result waits") && !waits.to_string().contains("done"), "{waits}");
        let held = all(&house).await.into_iter().find(|approval| approval.state == ApprovalState::Held);
        answer(&house, &held.map(|held| held.id).unwrap_or_default(), is_shown, "carol").await;
        let ended = until(&house, one(), Speech::Modern, &task, "completed").await;
        assert_eq!(ended.to_string().contains("done"), is_shown, "{ended}");
        assert_eq!(made(&house), 1);
    }
}

/// A server that fails the call: the task has failed, and says why.
#[tokio::test]
async fn review_8_an_error_of_the_server_is_the_tasks() {
    let house = house(&ASKING, Speaks::Both).await;
    let task = follow(&house, one(), Speech::Modern).await;
    house.recorder.fails_with(Some((http::StatusCode::OK, r#"{"code":-32000,"message":"no"}"#)));
    answer(&house, &the_one(&house).await, true, "bob").await;
    let failed = until(&house, one(), Speech::Modern, &task, "failed").await;
    assert_eq!(failed.pointer("/result/error/code"), Some(&json!(-32000)), "{failed}");
    assert_eq!(made(&house), 1);
}

/// Results of tasks are recorded when they are handed over, and their polls are not.
#[tokio::test]
async fn gate_15_what_a_task_gives_is_on_record() {
    let house = house(&ASKING, Speaks::Both).await;
    let task = approved(&house, Speech::Modern).await;
    until(&house, one(), Speech::Modern, &task, "completed").await;
    let records = house.records().await;
    let is = |record: &&Value, name: &str, text: &str| record.get(name).and_then(Value::as_str) == Some(text);
    let of = |method: &str, kind: &str| {
        records.iter().filter(|one| is(one, "method", method) && is(one, "kind", kind)).count()
    };
    assert_eq!((of("tools/call", "refusal"), of("tools/call", "intent")), (1, 1), "{records:?}");
    assert_eq!(of("tasks/get", "event"), 1, "{records:?}");
    let given = records.iter().find(|one| is(one, "method", "tasks/get"));
    assert!(given.is_some_and(|given| is(&given, "tool", "write") && is(&given, "status", "ok")), "{records:?}");
}
