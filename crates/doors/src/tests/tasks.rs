//! A task belongs to the caller whose call made it (GATE-19): in both eras, and for nobody else.

use toolwarden_conversations::Scope;
use toolwarden_conversations::tasks::without_questions;
use toolwarden_core::Caller;
use toolwarden_core::json::{Document, Limits, Part};
use toolwarden_mcp::Message;
use toolwarden_mcp::message::read_one;

use super::doors::{Speech, request, walk};
use super::house::{Given, House, ada};

const LEGACY_TASK: &str = r#"{"task":{"taskId":"t1","status":"working"}}"#;
const MODERN_TASK: &str = r#"{"resultType":"task","taskId":"t1","status":"working"}"#;
const AS_TASK: &str = r#""name":"write","arguments":{},"task":{"ttl":1000}"#;
const PLAIN: &str = r#""name":"write","arguments":{}"#;

fn bob() -> Caller {
    Caller::local_person("bob")
}

async fn house(answer: &str) -> House {
    let given = Given { config: "[auto_run]\nmode = \"run_everything\"\n", ..Given::default() };
    let house = House::build(&given).await;
    assert!(house.is_some());
    let Some(house) = house else { unreachable!("asserted") };
    house.recorder.answers(answer);
    house
}

async fn ask(house: &House, caller: Caller, speech: Speech, method: &str, params: &str) -> String {
    walk(house, caller, Scope::One("notes".into()), speech, &request(speech, method, params)).await
}

/// What reached the server of tasks, after everything before is forgotten.
async fn reached(house: &House, caller: Caller, speech: Speech, method: &str, task: &str) -> (usize, String) {
    house.recorder.forget();
    let said = ask(house, caller, speech, method, &format!(r#""taskId":"{task}""#)).await;
    (house.recorder.calls().len(), said)
}

async fn only_its_owner_reaches_it(speech: Speech, answer: &str, call: &str, methods: &[&str]) {
    let house = house(answer).await;
    let made = ask(&house, ada(), speech, "tools/call", call).await;
    assert!(made.contains("t1"), "{made}");
    for method in methods {
        let (calls, said) = reached(&house, ada(), speech, method, "t1").await;
        assert_eq!(calls, 1, "{method}: {said}");
        for (caller, task) in [(bob(), "t1"), (ada(), "t2")] {
            let (calls, said) = reached(&house, caller, speech, method, task).await;
            assert_eq!(calls, 0, "{method} of {task}: {said}");
            assert!(said.contains("-32602") && said.contains("no such task"), "{method}: {said}");
        }
    }
    let records = house.records().await;
    let refusals = records.iter().filter(|record| record.get("reason").is_some_and(|reason| reason == "foreign_id"));
    assert_eq!(refusals.count(), 2 * methods.len(), "{records:?}");
    // The same id for another caller's call: the server lies, or mixes callers up.
    let again = ask(&house, bob(), speech, "tools/call", call).await;
    assert!(again.contains("belongs to another caller") && !again.contains("working"), "{again}");
}

#[tokio::test]
async fn gate_19_a_task_of_a_legacy_server_is_its_callers_own() {
    only_its_owner_reaches_it(Speech::Legacy, LEGACY_TASK, AS_TASK, &["tasks/get", "tasks/result", "tasks/cancel"])
        .await;
}

#[tokio::test]
async fn gate_19_a_task_of_a_modern_server_is_its_callers_own() {
    only_its_owner_reaches_it(Speech::Modern, MODERN_TASK, PLAIN, &["tasks/get", "tasks/update", "tasks/cancel"]).await;
}

#[tokio::test]
async fn gate_19_a_task_nobody_asked_for_is_nobodys() {
    let house = house(LEGACY_TASK).await;
    ask(&house, ada(), Speech::Legacy, "tools/call", PLAIN).await;
    let (calls, said) = reached(&house, ada(), Speech::Legacy, "tasks/get", "t1").await;
    assert_eq!(calls, 0, "{said}");
}

#[tokio::test]
async fn gate_19_lists_of_tasks_show_ones_own() {
    let house = house(LEGACY_TASK).await;
    ask(&house, ada(), Speech::Legacy, "tools/call", AS_TASK).await;
    let own = ask(&house, ada(), Speech::Legacy, "tasks/list", "").await;
    assert!(own.contains(r#"[{"taskId":"t1"}]"#) && own.contains("nextCursor"), "{own}");
    let others = ask(&house, bob(), Speech::Legacy, "tasks/list", "").await;
    assert!(others.contains(r#""tasks":[]"#), "{others}");
}

#[tokio::test]
async fn tasks_without_an_id_are_refused() {
    let house = house(LEGACY_TASK).await;
    let said = ask(&house, ada(), Speech::Legacy, "tasks/get", "").await;
    assert!(said.contains("needs `taskId`"), "{said}");
    assert!(house.recorder.calls().is_empty());
}

#[tokio::test]
async fn gate_19_news_of_a_task_is_its_owners() {
    let house = house(LEGACY_TASK).await;
    ask(&house, ada(), Speech::Legacy, "tools/call", AS_TASK).await;
    let upstream = house.gateway.upstream("notes");
    let hears = |caller: Caller, method: &str, params: &str| {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        match read_one(text.as_bytes(), Limits::DEFAULT) {
            Ok(Message::Notification(news)) => {
                upstream.as_ref().is_some_and(|one| one.may_tell(&news, &caller.clone().into()))
            }
            other => unreachable!("{other:?}"),
        }
    };
    let (status, own) = ("notifications/tasks/status", r#"{"taskId":"t1"}"#);
    assert!(hears(ada(), status, own) && !hears(bob(), status, own));
    assert!(!hears(ada(), status, r#"{"taskId":"t2"}"#) && !hears(ada(), status, "{}"));
    assert!(hears(bob(), "notifications/tools/list_changed", "{}"));
}

/// Questions of a task are judged where somebody asks for the task; its news carry none (GATE-18).
#[test]
fn gate_18_news_of_a_task_ask_nothing() {
    let asks = r#"{"taskId":"t1","status":"input_required","inputRequests":{"q":{"method":"sampling/createMessage"}}}"#;
    let parsed = Document::parse(asks, Limits::DEFAULT).map(|document| Part::whole(document.into()));
    let told = |method: &str| parsed.as_ref().ok().and_then(|params| without_questions(params, method));
    let told = told("notifications/tasks").map(|params| params.raw().to_owned());
    assert_eq!(told.as_deref(), Some(r#"{"taskId":"t1","status":"input_required"}"#));
}

#[tokio::test]
async fn gate_19_nobody_listens_to_the_tasks_of_others() {
    let house = house(MODERN_TASK).await;
    ask(&house, ada(), Speech::Modern, "tools/call", PLAIN).await;
    house.recorder.forget();
    for wanted in [r#"["t1"]"#, r#"["t1","t2"]"#, r#""t1""#] {
        let params = format!(r#""notifications":{{"taskIds":{wanted}}}"#);
        let said = ask(&house, bob(), Speech::Modern, "subscriptions/listen", &params).await;
        assert!(said.contains("no such task"), "{wanted}: {said}");
    }
    assert!(house.recorder.calls().is_empty());
    ask(&house, ada(), Speech::Modern, "subscriptions/listen", r#""notifications":{"taskIds":["t1"]}"#).await;
    assert_eq!(house.recorder.calls().len(), 1);
}

/// What a task gives away is judged by the tool that made it, each time, and recorded like a call.
#[tokio::test]
async fn results_of_tasks_are_judged_and_recorded_like_calls() {
    const FORBIDDEN: &str = "permit(principal, action, resource);\n\
        forbid(principal, action, resource == Mcp::Tool::\"notes:write\");";
    for (speech, answer, call, reads) in [
        (Speech::Legacy, LEGACY_TASK, AS_TASK, ["tasks/get", "tasks/result"]),
        (Speech::Modern, MODERN_TASK, PLAIN, ["tasks/get", "tasks/update"]),
    ] {
        let house = house(answer).await;
        ask(&house, ada(), speech, "tools/call", call).await;
        for method in reads {
            assert_eq!(reached(&house, ada(), speech, method, "t1").await.0, 1, "{method}");
        }
        let records = house.records().await;
        let of = |kind: &str, method: &str| {
            let is =
                |record: &&serde_json::Value, key: &str, value: &str| record.get(key).is_some_and(|it| it == value);
            let found = records.iter().filter(|record| is(record, "kind", kind) && is(record, "method", method));
            found.filter(|record| is(record, "tool", "write")).count()
        };
        assert!(reads.iter().all(|method| of("intent", method) == 1), "{records:?}");

        let config = "[auto_run]\nmode = \"run_everything\"\n";
        house.judge_by(&Given { config, rules: Some(FORBIDDEN), ..Given::default() });
        for method in reads {
            let (calls, said) = reached(&house, ada(), speech, method, "t1").await;
            assert!(calls == 0 && said.contains("rule_forbid"), "{method}: {calls} {said}");
        }
        let (calls, said) = reached(&house, ada(), speech, "tasks/cancel", "t1").await;
        assert_eq!(calls, 1, "stopping is always permitted: {said}");
    }
}
