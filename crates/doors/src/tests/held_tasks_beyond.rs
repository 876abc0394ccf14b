//! Tasks of held calls whose servers ask something, make tasks themselves, or give what a person has to look at first.

use http_body_util::BodyExt;
use serde_json::{Value, json};
use toolwarden_core::ApprovalState;

use super::doors::{Speech, open_session, post_in_session};
use super::held::{ASKING, all, answer, house, states};
use super::held_tasks::{about, ask, follow, made, one, the_one, until};
use super::house::{Given, House, ada};
use super::patience::eventually;
use super::recorder::Speaks;

const ASKS: &str = r#"{"resultType":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}},"requestState":"theirs"}"#;
const DONE: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"done"}]}"#;
const LEGACY_TASK: &str = r#"{"task":{"taskId":"t1","status":"working"}}"#;
const MODERN_TASK: &str = r#"{"resultType":"task","taskId":"t1","status":"working"}"#;
/// A client that can be asked, besides knowing tasks.
pub(super) const CAPABLE: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

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
    let task = asking_call(&house).await;
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

/// The same for whoever waits for the result already: they get what the server's task gives.
#[tokio::test]
async fn review_8_whoever_waits_for_a_result_waits_for_the_servers_task_too() {
    let house = house(&ASKING, Speaks::Legacy).await;
    house.recorder.answers(LEGACY_TASK);
    let task = follow(&house, one(), Speech::Legacy).await;
    let (given, ()) = tokio::join!(super::held_tasks::result_of(&house, &task), async {
        assert!(eventually(async || house.gateway.streams.count() == 1).await, "nobody waits");
        answer(&house, &the_one(&house).await, true, "bob").await;
    });
    assert_eq!(given.pointer("/result/content/0/text"), Some(&json!("done")), "{given}");
    let asked = house.recorder.calls();
    let results = asked.iter().filter(|(method, text)| method == "tasks/result" && text.contains(r#""t1""#));
    assert_eq!((results.count(), made(&house)), (1, 1), "{asked:?}");
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

/// The same with a question on the way: what was used to answer that is no part of the call any more.
#[tokio::test]
async fn review_8_a_result_after_a_question_waits_and_is_shown() {
    let given = Given { server: "may_ask = [\"elicitation\"]\ntools.write = { review = \"both\" }", ..ASKING };
    let house = house(&given, Speaks::Modern).await;
    house.recorder.answers(ASKS);
    let task = asking_call(&house).await;
    let asks = until(&house, one(), Speech::Modern, &task, "input_required").await;
    let requests = asks.pointer("/result/inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
    let key = requests.keys().next().cloned().unwrap_or_default();
    house.recorder.answers(DONE);
    update(&house, &task, &json!({ key: { "action": "accept", "content": { "name": "x" } } })).await;
    let waits = until_held(&house).await;
    answer(&house, &waits, true, "carol").await;
    let done = until(&house, one(), Speech::Modern, &task, "completed").await;
    assert_eq!(done.pointer("/result/result/content/0/text"), Some(&json!("done")), "{done}");
    assert_eq!(made(&house), 2);
}

/// Answers that come one by one, or at the same moment, all count.
#[tokio::test]
async fn review_8_answers_of_a_task_may_come_one_by_one() {
    const TWO: &str = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"form","message":"A?","requestedSchema":{"type":"object","properties":{"v":{"type":"string"}}}}},"b":{"method":"elicitation/create","params":{"mode":"form","message":"B?","requestedSchema":{"type":"object","properties":{"v":{"type":"string"}}}}}},"requestState":"theirs"}"#;
    for at_once in [false, true] {
        let house = house(&Given { server: "may_ask = [\"elicitation\"]", ..ASKING }, Speaks::Modern).await;
        house.recorder.answers(TWO);
        let task = asking_call(&house).await;
        let asks = until(&house, one(), Speech::Modern, &task, "input_required").await;
        let requests = asks.pointer("/result/inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
        let [first, second] = requests.keys().map(String::as_str).collect::<Vec<_>>()[..] else {
            unreachable!("{asks}")
        };
        house.recorder.answers(DONE);
        let accept = |key: &str| json!({ key: { "action": "accept", "content": { "v": "x" } } });
        if at_once {
            let (one, two) = (accept(first), accept(second));
            tokio::join!(update(&house, &task, &one), update(&house, &task, &two));
        } else {
            update(&house, &task, &accept(first)).await;
            let left = about(&house, one(), Speech::Modern, "tasks/get", &task).await;
            let open = left.pointer("/result/inputRequests").and_then(Value::as_object).map(serde_json::Map::len);
            assert_eq!(open, Some(1), "{left}");
            assert_eq!(made(&house), 1);
            update(&house, &task, &accept(second)).await;
        }
        until(&house, one(), Speech::Modern, &task, "completed").await;
        assert_eq!(made(&house), 2);
    }
}

/// A legacy client that is gone when somebody permits its call: the call is made when it comes back, and nothing is lost with
/// the conversation it was made in.
#[tokio::test]
async fn review_8_a_task_waits_for_a_client_that_is_away() {
    let house = house(&ASKING, Speaks::Legacy).await;
    let session = open_session(&house).await;
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"write","arguments":{},"task":{}}}"#;
    let said = post_in_session(&house, &session, call).await.into_body().collect().await;
    let said = said.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let said: Value = serde_json::from_slice(&said).unwrap_or_default();
    let task = said.pointer("/result/task/taskId").and_then(Value::as_str).unwrap_or_default().to_owned();
    for session in house.gateway.sessions.all() {
        house.gateway.sessions.close(&session.id);
    }
    answer(&house, &the_one(&house).await, true, "ada").await;
    // Another client's call is approved later and made: by then the first one would have been made, too.
    let other = follow(&house, one(), Speech::Legacy).await;
    answer(&house, &until_held(&house).await, true, "ada").await;
    until(&house, one(), Speech::Legacy, &other, "completed").await;
    let both = [ApprovalState::Approved, ApprovalState::Succeeded];
    assert_eq!((made(&house), states(&house, &both).await), (1, both.to_vec()));
    until(&house, one(), Speech::Legacy, &task, "completed").await;
    assert_eq!(made(&house), 2);
}

/// A definition that changed meanwhile: a person is asked anew, and the task waits for that.
#[tokio::test]
async fn review_8_a_task_whose_tool_changed_waits_for_another_answer() {
    let house = house(&ASKING, Speaks::Both).await;
    let task = follow(&house, one(), Speech::Modern).await;
    let first = the_one(&house).await;
    // Results are looked at from now on; and so is the call, whatever stood in an allowlist.
    house.judge_by(&Given { config: "[control]\nsecond_person = [\"notes:write\"]\n", ..ASKING });
    answer(&house, &first, true, "ada").await;
    let mut held = String::new();
    for _ in 0..500 {
        held = until_held(&house).await;
        if held != first {
            break;
        }
    }
    assert_ne!(held, first);
    assert_eq!(made(&house), 0);
    answer(&house, &held, true, "bob").await;
    until(&house, one(), Speech::Modern, &task, "completed").await;
    assert_eq!(made(&house), 1);
}

/// The same where somebody permitted the call by its new definition already: that is the one approval that is used.
#[tokio::test]
async fn review_4_a_task_uses_the_approval_that_pays_and_no_other() {
    let house = house(&Given { server: "definitions = \"follow\"", ..ASKING }, Speaks::Both).await;
    let task = follow(&house, one(), Speech::Modern).await;
    let former = the_one(&house).await;
    let changed = json!([{ "name": "write", "description": "does more", "inputSchema": { "type": "object" } }]);
    house.recorder.lists("tools/list", vec![json!({ "tools": changed, "resultType": "complete" })]);
    house.gateway.pins.forget_looks("notes");
    let plain = super::held::text(Speech::Modern, r#"{"a":1}"#, "");
    let held = super::doors::walk(&house, ada(), one(), Speech::Modern, &plain).await;
    let latter = all(&house).await.into_iter().map(|one| one.id).find(|id| *id != former).unwrap_or_default();
    assert!(held.contains(&latter) && !latter.is_empty(), "{held}");
    answer(&house, &latter, true, "bob").await;
    answer(&house, &former, true, "bob").await;
    until(&house, one(), Speech::Modern, &task, "completed").await;
    let left = states(&house, &[ApprovalState::Approved, ApprovalState::Succeeded]).await;
    assert_eq!(left, [ApprovalState::Approved, ApprovalState::Succeeded]);
    let again = super::doors::walk(&house, ada(), one(), Speech::Modern, &plain).await;
    assert!(again.contains("isError") && made(&house) == 1, "{again}");
}

/// Whoever waits for results keeps no place among the calls, and ends with its gateway.
#[tokio::test]
async fn review_8_whoever_waits_for_results_takes_no_place() {
    let given = Given { config: "[gateway.limits]\nin_flight = 2\n", ..ASKING };
    let house = house(&given, Speaks::Legacy).await;
    let task = follow(&house, one(), Speech::Legacy).await;
    let waits = (0..5).map(|_| super::held_tasks::result_of(&house, &task));
    let (given, ()) = tokio::join!(futures_util::future::join_all(waits), async {
        assert!(eventually(async || house.gateway.streams.count() == 5).await, "not all of them wait");
        answer(&house, &the_one(&house).await, true, "bob").await;
    });
    for one in &given {
        assert_eq!(one.pointer("/result/content/0/text"), Some(&json!("done")), "{one}");
    }
    assert_eq!(made(&house), 1);
}

/// A client that can be asked, whose call was permitted.
async fn asking_call(house: &House) -> String {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"write","arguments":{{}},{CAPABLE}}}}}"#
    );
    let said = super::doors::walk(house, ada(), one(), Speech::Modern, &text).await;
    let said: Value = serde_json::from_str(&said).unwrap_or_default();
    assert!(answer(house, &the_one(house).await, true, "bob").await.is_some(), "{said}");
    said.pointer("/result/taskId").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// What waits for a person, once something does.
async fn until_held(house: &House) -> String {
    for _ in 0..500 {
        let held = all(house).await.into_iter().find(|approval| approval.state == ApprovalState::Held);
        if let Some(held) = held {
            return held.id;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    unreachable!("nothing waits")
}
