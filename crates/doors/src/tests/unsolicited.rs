//! Answers to questions that nobody asked (REVIEW-4): an approval is of the call that was shown, and `inputResponses` and
//! `requestState` are no part of that. Where no question of ours is open, a request that brings them reaches nobody.

use serde_json::{Value, json};
use toolwarden_conversations::Scope;

use super::doors::{SPEECHES, Speech, request, walk};
use super::held::{ASKING, answer, approval_id, house, reason};
use super::held_tasks::{about, ask, one};
use super::house::{Given, House, ada};
use super::recorder::{ALL_KINDS, Speaks};

const ASKS: &str = r#"{"resultType":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}"#;
const DONE: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"done"}]}"#;
const MODERN_TASK: &str = r#"{"resultType":"task","taskId":"t1","status":"working"}"#;

/// Members that carry data nobody was shown.
const UNSOLICITED: [&str; 8] = [
    r#""inputResponses":{"k":{"action":"accept","content":{"command":"rm -rf /"}}}"#,
    r#""inputResponses":{}"#,
    r#""inputResponses":[]"#,
    r#""inputResponses":"text""#,
    r#""inputResponses":{"k":1},"requestState":null"#,
    r#""requestState":"made up""#,
    r#""requestState":"made up","inputResponses":{"k":1}"#,
    r#""input\u0052esponses":{"k":1}"#,
];

async fn say(house: &House, scope: Scope, speech: Speech, more: &str) -> Value {
    let tool = if scope == Scope::All { "notes__write" } else { "write" };
    let more = if more.is_empty() { String::new() } else { format!(",{more}") };
    let params = format!(r#""name":"{tool}","arguments":{{"a":1}}{more}"#);
    let said = walk(house, ada(), scope, speech, &request(speech, "tools/call", &params)).await;
    serde_json::from_str(&said).unwrap_or(Value::String(said))
}

#[tokio::test]
async fn review_4_an_approval_carries_no_answers_that_nobody_asked_for() {
    for speaks in ALL_KINDS {
        for speech in SPEECHES {
            for scope in [one(), Scope::All] {
                let house = house(&ASKING, speaks).await;
                let id = approval_id(&say(&house, scope.clone(), speech, "").await);
                assert!(answer(&house, &id, true, "bob").await.is_some());
                house.recorder.forget();
                for more in UNSOLICITED {
                    let said = say(&house, scope.clone(), speech, more).await;
                    let code = said.pointer("/error/code");
                    assert_eq!(code, Some(&json!(-32602)), "{speaks:?} {speech:?} {scope:?} {more}: {said}");
                    assert_eq!(house.recorder.calls(), [], "{speaks:?} {speech:?} {scope:?} {more}");
                }
                // The approval is as good as before, for the call that was shown.
                let said = say(&house, scope.clone(), speech, "").await;
                assert!(reason(&said).starts_with("ran") && said.get("error").is_none(), "{speech:?}: {said}");
                assert_eq!(house.recorder.calls().len(), 1, "{speaks:?} {speech:?} {scope:?}");
            }
        }
    }
}

#[tokio::test]
async fn review_4_a_first_call_brings_no_answers_and_is_not_held_with_them() {
    for speech in SPEECHES {
        let house = house(&ASKING, Speaks::Both).await;
        for more in UNSOLICITED {
            let said = say(&house, one(), speech, more).await;
            assert_eq!(said.pointer("/error/code"), Some(&json!(-32602)), "{more}: {said}");
        }
        assert!(super::held::all(&house).await.is_empty(), "nobody is shown what carries more than is shown");
        assert_eq!(house.recorder.calls(), []);
        // Nor does it help that nobody would be asked.
        let open = super::held::house(&Given { allowlist: &["notes:*"], ..ASKING }, Speaks::Both).await;
        for more in UNSOLICITED {
            let said = say(&open, one(), speech, more).await;
            assert_eq!(said.pointer("/error/code"), Some(&json!(-32602)), "{more}: {said}");
        }
        assert_eq!(open.recorder.calls(), []);
    }
}

/// A server that asks without a state of its own: the client gets one, and its answers need it.
#[tokio::test]
async fn review_4_answers_to_a_server_without_states_need_ours() {
    let given = Given { allowlist: &["notes:*"], server: "may_ask = [\"elicitation\"]", ..ASKING };
    let house = house(&given, Speaks::Modern).await;
    house.recorder.answers(ASKS);
    let asks = async |more: &Value| {
        let text = super::held_in_client::text(&json!({}), &json!({"elicitation": {"form": {}}}), more);
        let said = walk(&house, ada(), one(), Speech::Modern, &text).await;
        serde_json::from_str::<Value>(&said).unwrap_or(Value::String(said))
    };
    let said = asks(&json!({})).await;
    let state = said.pointer("/result/requestState").cloned().unwrap_or_default();
    assert!(state.is_string(), "{said}");
    house.recorder.forget();
    house.recorder.answers(DONE);
    let name = json!({"action": "accept", "content": {"name": "x"}});
    for wrong in [
        json!({"inputResponses": {"name": name}}),
        json!({"inputResponses": {"name": name, "more": name}, "requestState": state}),
        json!({"inputResponses": {"other": name}, "requestState": state}),
        json!({"inputResponses": [name], "requestState": state}),
    ] {
        let said = asks(&wrong).await;
        assert_eq!(said.pointer("/error/code"), Some(&json!(-32602)), "{wrong}: {said}");
        assert_eq!(house.recorder.calls(), [], "{wrong}");
    }
    let said = asks(&json!({"inputResponses": {"name": name}, "requestState": state})).await;
    assert_eq!(said.pointer("/result/content/0/text"), Some(&json!("done")), "{said}");
    let sent = house.recorder.calls();
    assert!(sent.len() == 1 && !format!("{sent:?}").contains("requestState"), "the server has no state: {sent:?}");
    let again = asks(&json!({"inputResponses": {"name": name}, "requestState": state})).await;
    assert_eq!(again.pointer("/error/code"), Some(&json!(-32602)), "answers are given once: {again}");
    assert_eq!(house.recorder.calls().len(), 1);
}

/// The task of a server: it is told what it asked for, once.
#[tokio::test]
async fn review_4_a_task_takes_answers_to_its_open_questions_alone() {
    let given = Given { allowlist: &["notes:*"], server: "may_ask = [\"elicitation\"]", ..ASKING };
    let house = house(&given, Speaks::Modern).await;
    house.recorder.answers(MODERN_TASK);
    let made = ask(&house, ada(), one(), Speech::Modern, "tools/call", r#""name":"write","arguments":{}"#).await;
    assert_eq!(made.pointer("/result/taskId"), Some(&json!("t1")), "{made}");
    let update = async |answers: &str| {
        house.recorder.forget();
        let params = format!(r#""taskId":"t1","inputResponses":{answers}"#);
        let said = ask(&house, ada(), one(), Speech::Modern, "tasks/update", &params).await;
        (house.recorder.calls().len(), said)
    };
    let name = r#"{"name":{"action":"accept","content":{"name":"x"}}}"#;
    for unasked in [name, "{\"other\":1}", "[]", "\"text\""] {
        let (calls, said) = update(unasked).await;
        assert!(calls == 0 && said.pointer("/error/code") == Some(&json!(-32602)), "{unasked}: {said}");
    }
    let mut asking: Value = serde_json::from_str(ASKS).unwrap_or_default();
    if let Some(asking) = asking.as_object_mut() {
        asking.insert("resultType".to_owned(), json!("complete"));
        asking.insert("taskId".to_owned(), json!("t1"));
        asking.insert("status".to_owned(), json!("input_required"));
    }
    house.recorder.lists("tasks/get", vec![asking]);
    let capable = super::held_tasks_beyond::CAPABLE;
    let params = format!(r#"{{"jsonrpc":"2.0","id":9,"method":"tasks/get","params":{{"taskId":"t1",{capable}}}}}"#);
    let asked = walk(&house, ada(), one(), Speech::Modern, &params).await;
    assert!(asked.contains("Who?"), "{asked}");
    for unasked in [r#"{"name":{"action":"accept","content":{"name":"x"}},"more":1}"#, r#"{"other":1}"#] {
        let (calls, said) = update(unasked).await;
        assert!(calls == 0 && said.pointer("/error/code") == Some(&json!(-32602)), "{unasked}: {said}");
    }
    assert_eq!(update(name).await.0, 1);
    let (calls, said) = update(name).await;
    assert!(calls == 0 && said.pointer("/error/code") == Some(&json!(-32602)), "once: {said}");
    about(&house, one(), Speech::Modern, "tasks/cancel", "t1").await;
}
