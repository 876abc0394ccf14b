//! Held calls that their callers follow as tasks (REVIEW-8): made once somebody permits it, once, and their caller's alone.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use toolwarden_conversations::Scope;
use toolwarden_core::{ApprovalState, Caller};
use toolwarden_gateway::Hold;

use super::doors::{Entrance, META as PLAIN_META, Reach, Speech, TASKS_META as META, over_http, walk};
use super::held::{ASKING, all, answer, house, reason, states};
use super::house::{Given, House, ada};
use super::patience::eventually;
use super::recorder::{ALL_KINDS, Speaks};

pub(super) fn one() -> Scope {
    Scope::One("notes".into())
}

/// A request of a client that knows tasks.
pub(super) async fn ask(
    house: &House,
    caller: Caller,
    scope: Scope,
    speech: Speech,
    method: &str,
    params: &str,
) -> Value {
    let meta = if speech == Speech::Modern { format!(",{META}") } else { String::new() };
    let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}{meta}}}}}"#);
    let said = walk(house, caller, scope, speech, &text).await;
    serde_json::from_str(&said).unwrap_or(Value::String(said))
}

/// Makes a call that is held, and gives the id of its task.
pub(super) async fn follow(house: &House, scope: Scope, speech: Speech) -> String {
    let name = if scope == Scope::All { "notes__write" } else { "write" };
    let task = if speech == Speech::Legacy { r#","task":{"ttl":60000}"# } else { "" };
    let params = format!(r#""name":"{name}","arguments":{{"a":1}}{task}"#);
    let said = ask(house, ada(), scope, speech, "tools/call", &params).await;
    let place = if speech == Speech::Legacy { "/result/task" } else { "/result" };
    let made = said.pointer(place).cloned().unwrap_or_default();
    assert_eq!(made.get("status"), Some(&json!("working")), "{said}");
    if speech == Speech::Modern {
        assert_eq!(made.get("resultType"), Some(&json!("task")), "{said}");
    }
    let lives = made.get("ttlMs").or(made.get("ttl")).and_then(Value::as_u64).unwrap_or_default();
    assert!(lives >= 24 * 60 * 60 * 1000, "as long as somebody may answer: {said}");
    made.get("taskId").and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub(super) async fn about(house: &House, scope: Scope, speech: Speech, method: &str, task: &str) -> Value {
    ask(house, ada(), scope, speech, method, &format!(r#""taskId":"{task}""#)).await
}

/// Asks for a task until it is in this state, and gives what was said of it then.
pub(super) async fn until(house: &House, scope: Scope, speech: Speech, task: &str, status: &str) -> Value {
    let mut said = Value::Null;
    for _ in 0..500 {
        said = about(house, scope.clone(), speech, "tasks/get", task).await;
        if said.pointer("/result/status") == Some(&json!(status)) {
            return said;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    unreachable!("not {status}: {said}")
}

/// What a legacy client gets that waits for the result of a task.
pub(super) async fn result_of(house: &House, task: &str) -> Value {
    let text = format!(r#"{{"jsonrpc":"2.0","id":8,"method":"tasks/result","params":{{"taskId":"{task}"}}}}"#);
    let waits = over_http(house, Entrance::Http(Reach::One), Speech::Legacy, &text);
    let said = tokio::time::timeout(Duration::from_secs(20), waits).await.unwrap_or_default();
    let last = said.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap_or_default().to_owned();
    serde_json::from_str(&last).unwrap_or(Value::String(said))
}

pub(super) async fn the_one(house: &House) -> String {
    all(house).await.first().map(|approval| approval.id.clone()).unwrap_or_default()
}

/// How often the tool was called.
pub(super) fn made(house: &House) -> usize {
    house.recorder.calls().iter().filter(|(method, _)| method == "tools/call").count()
}

#[tokio::test]
async fn review_8_a_held_call_becomes_a_task_that_completes_after_the_answer() {
    for hold in [Hold::Return, Hold::Wait] {
        for speaks in ALL_KINDS {
            for scope in [one(), Scope::All] {
                let house = house(&Given { hold: Some(hold), ..ASKING }, speaks).await;
                let task = follow(&house, scope.clone(), Speech::Modern).await;
                let waits = about(&house, scope.clone(), Speech::Modern, "tasks/get", &task).await;
                assert_eq!(waits.pointer("/result/status"), Some(&json!("working")), "{waits}");
                assert_eq!(waits.pointer("/result/resultType"), Some(&json!("complete")), "{waits}");
                assert_eq!(made(&house), 0, "{speaks:?}");
                assert!(answer(&house, &the_one(&house).await, true, "bob").await.is_some());
                for _ in 0..2 {
                    let done = until(&house, scope.clone(), Speech::Modern, &task, "completed").await;
                    let text = done.pointer("/result/result/content/0/text");
                    assert_eq!(text, Some(&json!("done")), "{speaks:?} {scope:?}: {done}");
                }
                assert_eq!(made(&house), 1, "{speaks:?} {scope:?}");
                assert_eq!(states(&house, &[ApprovalState::Succeeded]).await, [ApprovalState::Succeeded]);
            }
        }
    }
}

/// Nobody has to ask for it: the call is made when it is permitted.
#[tokio::test]
async fn review_8_the_call_of_a_task_is_made_though_nobody_asks_for_it() {
    let house = house(&ASKING, Speaks::Modern).await;
    follow(&house, one(), Speech::Modern).await;
    answer(&house, &the_one(&house).await, true, "bob").await;
    assert_eq!(states(&house, &[ApprovalState::Succeeded]).await, [ApprovalState::Succeeded]);
    assert_eq!(made(&house), 1);
}

#[tokio::test]
async fn review_8_a_legacy_client_that_asks_for_a_task_gets_one() {
    for speaks in [Speaks::Legacy, Speaks::Both] {
        let house = house(&ASKING, speaks).await;
        let task = follow(&house, one(), Speech::Legacy).await;
        let waits = about(&house, one(), Speech::Legacy, "tasks/get", &task).await;
        assert_eq!(waits.pointer("/result/status"), Some(&json!("working")), "{waits}");
        let listed = about(&house, one(), Speech::Legacy, "tasks/list", &task).await;
        assert_eq!(listed.pointer("/result/tasks/0/taskId"), Some(&json!(task)), "{listed}");
        let (given, ()) = tokio::join!(result_of(&house, &task), async {
            answer(&house, &the_one(&house).await, true, "bob").await;
        });
        assert_eq!(given.pointer("/result/content/0/text"), Some(&json!("done")), "{given}");
        let related = given.pointer("/result/_meta/io.modelcontextprotocol~1related-task/taskId");
        assert_eq!(related, Some(&json!(task)), "{given}");
        until(&house, one(), Speech::Legacy, &task, "completed").await;
        assert_eq!(made(&house), 1, "{speaks:?}");
        let late = about(&house, one(), Speech::Legacy, "tasks/cancel", &task).await;
        assert_eq!(late.pointer("/error/code"), Some(&json!(-32602)), "{late}");
    }
}

#[tokio::test]
async fn review_8_the_task_of_a_rejected_call_says_why_and_nothing_runs() {
    for (speech, status) in [(Speech::Modern, "completed"), (Speech::Legacy, "failed")] {
        let house = house(&ASKING, Speaks::Both).await;
        let task = follow(&house, one(), speech).await;
        answer(&house, &the_one(&house).await, false, "bob").await;
        let ended = until(&house, one(), speech, &task, status).await;
        let given = if speech == Speech::Modern {
            json!({ "result": ended.pointer("/result/result") })
        } else {
            let why = ended.pointer("/result/statusMessage").and_then(Value::as_str).unwrap_or_default();
            assert!(why.contains("because I say so"), "a task that failed says why: {ended}");
            result_of(&house, &task).await
        };
        assert_eq!(reason(&given), "rejected", "{given}");
        assert_eq!(given.pointer("/result/isError"), Some(&json!(true)), "{given}");
        assert!(given.to_string().contains("because I say so"), "{given}");
        assert_eq!(made(&house), 0);
    }
}

/// Whoever did not say so, or whose gateway asks nobody, gets no task.
#[tokio::test]
async fn review_8_nobody_gets_a_task_who_does_not_know_any() {
    let call = |meta: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"write","arguments":{{}},{meta}}}}}"#
        )
    };
    let asking = house(&ASKING, Speaks::Both).await;
    let denying = house(&Given { hold: Some(Hold::Deny), ..ASKING }, Speaks::Both).await;
    let offers = |said: &str| said.contains("io.modelcontextprotocol/tasks");
    for (house, meta, is_offered) in [(&asking, PLAIN_META, true), (&denying, META, false)] {
        let said = walk(house, ada(), one(), Speech::Modern, &call(meta)).await;
        assert!(said.contains("isError") && !said.contains("taskId"), "{said}");
        for scope in [one(), Scope::All] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{PLAIN_META}}}}}"#);
            let said = walk(house, ada(), scope, Speech::Modern, &text).await;
            assert_eq!(offers(&said), is_offered, "{said}");
        }
    }
    // Messages about tasks are refused, too: about one's own, and about unknown ones.
    let own = follow(&asking, one(), Speech::Modern).await;
    for (method, task) in
        ["tasks/get", "tasks/update", "tasks/cancel"].map(|it| [(it, &*own), (it, "t1")]).as_flattened()
    {
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{"taskId":"{task}",{PLAIN_META}}}}}"#);
        for scope in [one(), Scope::All] {
            let said = walk(&asking, ada(), scope, Speech::Modern, &text).await;
            assert!(offers(&said) && said.contains("-32021"), "{method} of {task}: {said}");
        }
    }
    assert_eq!(made(&asking) + made(&denying), 0);
}

#[tokio::test]
async fn gate_19_the_task_of_a_held_call_is_its_callers_own() {
    for (speech, methods) in [
        (Speech::Modern, &["tasks/get", "tasks/update", "tasks/cancel"][..]),
        (Speech::Legacy, &["tasks/get", "tasks/result", "tasks/cancel"][..]),
    ] {
        let house = house(&ASKING, Speaks::Both).await;
        let task = follow(&house, one(), speech).await;
        answer(&house, &the_one(&house).await, true, "bob").await;
        until(&house, one(), speech, &task, "completed").await;
        let shorter = task.get(..task.len() - 1).unwrap_or_default();
        for method in methods {
            for (caller, task) in [(Caller::local_person("bob"), task.as_str()), (ada(), shorter), (ada(), "tw-")] {
                let said = ask(&house, caller, one(), speech, method, &format!(r#""taskId":"{task}""#)).await;
                assert_eq!(said.pointer("/error/code"), Some(&json!(-32602)), "{method} {task}: {said}");
                assert!(!said.to_string().contains("done"), "{said}");
            }
        }
        assert_eq!(made(&house), 1);
        let others = ask(&house, Caller::local_person("bob"), one(), Speech::Legacy, "tasks/list", "").await;
        assert!(!others.to_string().contains(&task), "{others}");
    }
}

#[tokio::test]
async fn review_8_a_task_that_is_given_up_takes_its_call_away() {
    for speech in [Speech::Modern, Speech::Legacy] {
        let house = house(&ASKING, Speaks::Both).await;
        let task = follow(&house, one(), speech).await;
        let id = the_one(&house).await;
        about(&house, one(), speech, "tasks/cancel", &task).await;
        until(&house, one(), speech, &task, "cancelled").await;
        assert_eq!(states(&house, &[ApprovalState::Cancelled]).await, [ApprovalState::Cancelled]);
        assert!(answer(&house, &id, true, "bob").await.is_none(), "there is nothing to answer");
        assert_eq!(made(&house), 0);
    }
}

#[tokio::test]
async fn review_8_a_task_that_is_given_up_stops_a_call_on_its_way() {
    for speaks in [Speaks::Modern, Speaks::Legacy] {
        let house = house(&ASKING, speaks).await;
        house.recorder.goes_silent(true);
        let task = follow(&house, one(), Speech::Modern).await;
        answer(&house, &the_one(&house).await, true, "bob").await;
        for _ in 0..500 {
            if made(&house) == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        about(&house, one(), Speech::Modern, "tasks/cancel", &task).await;
        until(&house, one(), Speech::Modern, &task, "cancelled").await;
        // It left, and nobody knows what it did.
        assert_eq!(states(&house, &[ApprovalState::Unknown]).await, [ApprovalState::Unknown]);
        assert_eq!(made(&house), 1);
    }
}

/// However many ask for it at once, and though the tool may run unasked by now.
#[tokio::test]
async fn review_4_the_call_of_a_task_is_made_once() {
    for allowlist in [&[][..], &["notes:*"][..]] {
        let house = house(&ASKING, Speaks::Both).await;
        let task = follow(&house, one(), Speech::Modern).await;
        answer(&house, &the_one(&house).await, true, "bob").await;
        house.judge_by(&Given { allowlist, ..ASKING });
        join_all((0..50).map(|_| about(&house, one(), Speech::Modern, "tasks/get", &task))).await;
        until(&house, one(), Speech::Modern, &task, "completed").await;
        assert_eq!(states(&house, &[ApprovalState::Succeeded]).await, [ApprovalState::Succeeded]);
        assert_eq!(made(&house), 1);
    }
}

/// The same call, made again while it waits, is the same task; and whoever comes without one runs it.
#[tokio::test]
async fn review_4_the_same_call_is_the_same_task() {
    let house = house(&ASKING, Speaks::Both).await;
    let first = follow(&house, one(), Speech::Modern).await;
    let second = follow(&house, one(), Speech::Modern).await;
    assert_eq!(first, second);
    assert_eq!(all(&house).await.len(), 1);
}

/// What is forbidden by now does not run, whoever permitted it before; and nothing of it is told.
#[tokio::test]
async fn core_5_the_call_of_a_task_that_became_denied_is_not_made() {
    let house = house(&ASKING, Speaks::Both).await;
    let task = follow(&house, one(), Speech::Modern).await;
    house.judge_by(&Given { blocks: &["notes:write"], ..ASKING });
    answer(&house, &the_one(&house).await, true, "bob").await;
    // The attempt to make it is recorded.
    let is_blocked = |record: &Value| record.get("reason") == Some(&json!("user_blocked"));
    assert!(eventually(async || house.records().await.iter().any(is_blocked)).await, "{:?}", house.records().await);
    let said = about(&house, one(), Speech::Modern, "tasks/get", &task).await;
    assert!(said.to_string().contains("user_blocked"), "{said}");
    assert_eq!(made(&house), 0);
    house.judge_by(&ASKING);
    let ended = until(&house, one(), Speech::Modern, &task, "completed").await;
    assert_eq!(ended.pointer("/result/result/isError"), Some(&json!(true)), "{ended}");
    assert_eq!(made(&house), 0);
}
