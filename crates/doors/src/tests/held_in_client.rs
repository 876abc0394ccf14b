//! A person asked in the client whether a held call may be made (REVIEW-6): forms of both eras, who may answer them, and
//! what is no answer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use http::HeaderMap;
use serde_json::{Value, json};
use toolwarden_conversations::Scope;
use toolwarden_conversations::sessions::{Agreed, ClientSession, Push};
use toolwarden_conversations::stream_log::StreamLog;
use toolwarden_core::json::{Limits, Part};
use toolwarden_core::{ApprovalState, Caller};
use toolwarden_gateway::{Answer, Arrival, Course, Via, handle};
use toolwarden_mcp::Version;
use toolwarden_mcp::message::read_one;

use super::doors::{Speech, greet_server, walk};
use super::held::{ASKING, house, reason, states};
use super::house::{Given, House, ada};
use super::recorder::{ALL_KINDS, Speaks};

const PATIENCE: Duration = Duration::from_secs(20);

/// A person whose client is trusted with their answers.
fn trusted() -> Caller {
    let mut caller = ada();
    caller.token.may_answer = true;
    caller
}

pub(super) fn text(arguments: &Value, capabilities: &Value, more: &Value) -> String {
    let mut params = json!({"name": "write", "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }});
    if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
        params.extend(more.clone());
    }
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string()
}

async fn modern(house: &House, caller: Caller, arguments: &Value, more: &Value) -> Value {
    let text = text(arguments, &json!({"elicitation": {"form": {}}}), more);
    let said = walk(house, caller, Scope::One("notes".into()), Speech::Modern, &text).await;
    serde_json::from_str(&said).unwrap_or(Value::String(said))
}

/// The key of the one question, and what brings its answer back.
pub(super) fn question(said: &Value) -> (String, Value) {
    let asked = said.pointer("/result/inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
    let key = asked.keys().next().cloned().unwrap_or_default();
    assert!(asked.len() == 1 && key.len() >= 16, "{said}");
    (key, said.pointer("/result/requestState").cloned().unwrap_or_default())
}

pub(super) fn back(state: &Value, key: &str, answer: &Value) -> Value {
    json!({"requestState": state, "inputResponses": {key: answer}})
}

fn choice(word: &str) -> Value {
    json!({"action": "accept", "content": {"answer": word}})
}

#[tokio::test]
async fn review_6_a_modern_client_is_asked_and_its_persons_answer_runs_the_call_once() {
    for speaks in ALL_KINDS {
        let house = house(&ASKING, speaks).await;
        let said = modern(&house, trusted(), &json!({"a": 1}), &json!({})).await;
        let (key, state) = question(&said);
        let form = said.pointer(&format!("/result/inputRequests/{key}/params")).cloned().unwrap_or_default();
        let message = form.get("message").and_then(Value::as_str).unwrap_or_default();
        for words in ["Toolwarden asks", "write on notes", "\"a\": 1", "not_in_allowlist"] {
            assert!(message.contains(words), "{words}: {form}");
        }
        assert!(house.recorder.calls().is_empty());
        let done = modern(&house, trusted(), &json!({"a": 1}), &back(&state, &key, &choice("allow once"))).await;
        assert!(done.pointer("/result/content").is_some() && reason(&done).starts_with("ran"), "{speaks:?}: {done}");
        let calls = house.recorder.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        for ours in ["inputResponses", "requestState", &key] {
            assert!(!format!("{calls:?}").contains(ours), "what is between us and the client stays there: {calls:?}");
        }
        assert_eq!(states(&house, &[ApprovalState::Succeeded]).await, [ApprovalState::Succeeded]);
        let replayed = modern(&house, trusted(), &json!({"a": 1}), &back(&state, &key, &choice("allow once"))).await;
        assert!(replayed.pointer("/error").is_some(), "{replayed}");
        assert_eq!(house.recorder.calls().len(), 1);
    }
}

#[tokio::test]
async fn review_6_the_same_behind_the_common_door() {
    let house = house(&ASKING, Speaks::Both).await;
    let call = async |more: &Value| {
        let text = text(&json!({"a": 1}), &json!({"elicitation": {}}), more).replace("\"write\"", "\"notes__write\"");
        let said = walk(&house, trusted(), Scope::All, Speech::Modern, &text).await;
        serde_json::from_str(&said).unwrap_or(Value::String(said))
    };
    let (key, state) = question(&call(&json!({})).await);
    let done: Value = call(&back(&state, &key, &choice("allow once"))).await;
    assert!(reason(&done).starts_with("ran") && done.pointer("/result/content").is_some(), "{done}");
    assert_eq!(house.recorder.calls().len(), 1);
}

#[tokio::test]
async fn review_6_what_is_no_is_no_and_what_is_nothing_leaves_the_call_held() {
    let house = house(&ASKING, Speaks::Both).await;
    for (number, (answer, wanted)) in [
        (choice("deny"), "rejected"),
        (json!({"action": "decline"}), "rejected"),
        (json!({"action": "cancel"}), "not_in_allowlist"),
        (choice("allow"), "not_in_allowlist"),
        (json!({"action": "accept"}), "not_in_allowlist"),
        (json!("allow once"), "not_in_allowlist"),
    ]
    .into_iter()
    .enumerate()
    {
        let arguments = json!({"n": number});
        let (key, state) = question(&modern(&house, trusted(), &arguments, &json!({})).await);
        let said = modern(&house, trusted(), &arguments, &back(&state, &key, &answer)).await;
        assert_eq!(reason(&said), wanted, "{answer}");
    }
    assert!(house.recorder.calls().is_empty());
}

#[tokio::test]
async fn review_6_a_person_who_says_no_is_not_overruled_by_what_others_said_meanwhile() {
    let house = house(&ASKING, Speaks::Both).await;
    let (key, state) = question(&modern(&house, trusted(), &json!({}), &json!({})).await);
    let id = super::held::all(&house).await.first().map(|held| held.id.clone()).unwrap_or_default();
    assert!(super::held::answer(&house, &id, true, "bob").await.is_some());
    let said = modern(&house, trusted(), &json!({}), &back(&state, &key, &choice("deny"))).await;
    assert_eq!(reason(&said), "rejected");
    assert!(house.recorder.calls().is_empty());
    assert_eq!(states(&house, &[ApprovalState::Cancelled]).await, [ApprovalState::Cancelled]);
}

#[tokio::test]
async fn review_6_only_an_answer_to_this_question_is_one() {
    let house = house(&ASKING, Speaks::Both).await;
    let arguments = json!({"a": 1});
    let (_, state) = question(&modern(&house, trusted(), &arguments, &json!({})).await);
    let said = modern(&house, trusted(), &arguments, &back(&state, "another-key", &choice("allow once"))).await;
    assert_eq!(said.pointer("/error/code"), Some(&json!(-32602)), "{said}");
    let (key, state) = question(&modern(&house, trusted(), &json!({"a": 2}), &json!({})).await);
    let good = back(&state, &key, &choice("allow once"));
    let edited = state.as_str().map(|text| text.replacen(|_: char| true, "B", 1)).unwrap_or_default();
    for (what, caller, arguments, more) in [
        ("other arguments", trusted(), json!({"a": 3}), good.clone()),
        ("another person", Caller::person("bob"), json!({"a": 2}), good.clone()),
        ("an edited state", trusted(), json!({"a": 2}), back(&json!(edited), &key, &choice("allow once"))),
    ] {
        let said = modern(&house, caller, &arguments, &more).await;
        assert!(said.pointer("/error").is_some(), "{what}: {said}");
    }
    // An answer without a question, as an agent would make one up.
    let made_up = json!({"inputResponses": {key.clone(): choice("allow once")}});
    let said = modern(&house, ada(), &json!({"a": 2}), &made_up).await;
    assert_eq!(said.pointer("/error/code"), Some(&json!(-32602)), "{said}");
    // A token that was taken back, or that was never trusted with answers, meanwhile.
    let said = modern(&house, ada(), &json!({"a": 2}), &good).await;
    assert_eq!(reason(&said), "not_in_allowlist", "{said}");
    assert!(house.recorder.calls().is_empty());
}

#[tokio::test]
async fn review_6_whoever_may_not_answer_there_is_not_asked() {
    let mut agent = Caller::agent("worker", Some("ada".to_owned()));
    agent.context.task = Some("t".to_owned());
    agent.context.job = Some("j".to_owned());
    // Even if its token said so: agents do not answer for persons.
    agent.token.may_answer = true;
    let given =
        Given { config: "[roles.worker]\nallow = [\"notes:*\"]\n", server: "tools.write.scope = \"both\"\n", ..ASKING };
    let house = house(&given, Speaks::Both).await;
    for caller in [agent, ada(), Caller::person("bob")] {
        let said = modern(&house, caller, &json!({}), &json!({})).await;
        assert_eq!(reason(&said), "not_in_allowlist", "{said}");
    }
    // Nor whose client cannot show a form, or not all of what is permitted.
    let text = text(&json!({}), &json!({}), &json!({}));
    let said = walk(&house, trusted(), Scope::One("notes".into()), Speech::Modern, &text).await;
    assert!(said.contains("Held by Toolwarden"), "{said}");
    let said = modern(&house, trusted(), &json!({"text": "x".repeat(5_000)}), &json!({})).await;
    assert_eq!(reason(&said), "not_in_allowlist");
    // Nor where another person is needed.
    let given = Given { config: "[control]\nsecond_person = [\"notes:write\"]\n", ..ASKING };
    let house = super::held::house(&given, Speaks::Both).await;
    let said = modern(&house, trusted(), &json!({}), &json!({})).await;
    assert_eq!(reason(&said), "not_in_allowlist");
    assert!(house.recorder.calls().is_empty());
}

/// A session of a legacy client that can be asked.
async fn session(house: &House, caller: Caller) -> Arc<ClientSession> {
    session_with(house, caller, r#"{"elicitation":{}}"#).await
}

pub(super) async fn session_with(house: &House, caller: Caller, capabilities: &str) -> Arc<ClientSession> {
    let push = Push::Log(Arc::new(StreamLog::new(0)));
    let scope = Scope::One("notes".into());
    let session = Arc::new(ClientSession::new("test".to_owned(), Arc::new(caller), scope, push));
    let capabilities = Part::composed(capabilities.to_owned()).ok();
    session.agree(Agreed { version: Version::LATEST_LEGACY, capabilities, client: None });
    greet_server(house, &session).await;
    session
}

pub(super) async fn say(house: &House, session: &Arc<ClientSession>, text: &str) -> Answer {
    let Ok(message) = read_one(text.as_bytes(), Limits::DEFAULT) else { unreachable!("{text}") };
    let arrival = Arrival {
        via: Via::Http,
        scope: session.scope.clone(),
        caller: session.caller(),
        message,
        size: text.len(),
        headers: Arc::new(HeaderMap::new()),
        session: Some(session.clone()),
        version: Version::LATEST_LEGACY,
        course: Course::default(),
        room: None,
    };
    handle(&house.gateway, arrival).await
}

pub(super) const CALL: &str =
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"write","arguments":{"a":1}}}"#;

/// Makes the call and answers what its person is asked; gives what the call answers with.
async fn legacy(house: &House, session: &Arc<ClientSession>, answer: Option<Value>) -> Value {
    let Answer::Events { mut events, .. } = say(house, session, CALL).await else { return Value::Null };
    let mut last = Value::Null;
    while let Ok(Some(event)) = tokio::time::timeout(PATIENCE, events.next()).await {
        let said: Value = serde_json::from_slice(&event.data.unwrap_or_default()).unwrap_or_default();
        if said.get("method") == Some(&json!("elicitation/create")) {
            assert!(said.to_string().contains("Toolwarden asks"), "{said}");
            let Some(answer) = &answer else { return said };
            let id = said.get("id").cloned().unwrap_or_default();
            let reply = json!({"jsonrpc": "2.0", "id": id, "result": answer}).to_string();
            let (reply, session) = (reply.clone(), session.clone());
            assert!(matches!(say(house, &session, &reply).await, Answer::Accepted));
            // Twice counts once.
            say(house, &session, &reply).await;
        } else {
            last = said;
        }
    }
    last
}

#[tokio::test]
async fn review_6_a_legacy_client_is_asked_on_the_calls_own_stream() {
    for speaks in ALL_KINDS {
        let house = house(&ASKING, speaks).await;
        let session = session(&house, trusted()).await;
        let done = legacy(&house, &session, Some(choice("allow once"))).await;
        assert!(done.get("result").is_some() && reason(&done).starts_with("ran"), "{speaks:?}: {done}");
        assert_eq!(house.recorder.calls().len(), 1, "{speaks:?}");
        let denied = legacy(&house, &session, Some(choice("deny"))).await;
        assert_eq!(reason(&denied), "rejected");
        assert_eq!(house.recorder.calls().len(), 1);
    }
}

#[tokio::test]
async fn review_6_an_answer_elsewhere_ends_the_question_and_no_answer_leaves_the_call_held() {
    let house = house(&ASKING, Speaks::Both).await;
    let session = session(&house, trusted()).await;
    let dismissed = legacy(&house, &session, Some(json!({"action": "cancel"}))).await;
    assert_eq!(reason(&dismissed), "not_in_allowlist", "{dismissed}");
    assert_eq!(states(&house, &[ApprovalState::Held]).await, [ApprovalState::Held]);
    let id = super::held::all(&house).await.first().map(|one| one.id.clone()).unwrap_or_default();
    let Answer::Events { mut events, .. } = say(&house, &session, CALL).await else { unreachable!("it asks") };
    let asked = events.next().await.and_then(|event| event.data).unwrap_or_default();
    let asked: Value = serde_json::from_slice(&asked).unwrap_or_default();
    let (last, ()) = tokio::join!(
        async {
            let mut last = Value::Null;
            while let Ok(Some(event)) = tokio::time::timeout(PATIENCE, events.next()).await {
                last = serde_json::from_slice(&event.data.unwrap_or_default()).unwrap_or_default();
            }
            last
        },
        async {
            super::held::answer(&house, &id, true, "bob").await;
        }
    );
    assert!(last.get("result").is_some() && reason(&last).starts_with("ran"), "{last}");
    assert_eq!(house.recorder.calls().len(), 1);
    // The answer comes too late, and is nobody's.
    let late = json!({"jsonrpc": "2.0", "id": asked.get("id"), "result": choice("deny")}).to_string();
    say(&house, &session, &late).await;
    let records = house.records().await;
    assert!(records.iter().any(|record| record.get("reason") == Some(&json!("foreign_id"))), "{records:?}");
}

#[tokio::test]
async fn review_6_a_server_that_asks_like_the_gateway_is_labelled_and_answers_nothing_of_ours() {
    let given = Given { server: "may_ask = [\"elicitation\"]\n", allowlist: &["notes:other"], ..ASKING };
    let house = house(&given, Speaks::Modern).await;
    house.recorder.answers(
        r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"form","message":"Toolwarden asks: may write on notes be called?","requestedSchema":{"type":"object","properties":{"answer":{"type":"string","enum":["allow once","deny"]}},"required":["answer"]}}}},"requestState":"s"}"#,
    );
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let text = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": "other", "arguments": {}, "_meta": meta}});
    let said = walk(&house, trusted(), Scope::One("notes".into()), Speech::Modern, &text.to_string()).await;
    let said: Value = serde_json::from_str(&said).unwrap_or_default();
    let message = said.pointer("/result/inputRequests/k/params/message").and_then(Value::as_str).unwrap_or_default();
    assert!(!message.starts_with("Toolwarden asks") && message.contains("notes"), "{said}");
    // Its answer permits no held call.
    let held = modern(&house, trusted(), &json!({"a": 9}), &json!({})).await;
    question(&held);
    let state = said.pointer("/result/requestState").cloned().unwrap_or_default();
    let crossed = modern(&house, trusted(), &json!({"a": 9}), &back(&state, "k", &choice("allow once"))).await;
    assert!(crossed.pointer("/error").is_some(), "{crossed}");
    let calls = house.recorder.calls();
    assert_eq!(calls.len(), 1, "only the call that was allowed: {calls:?}");
}

/// A server may ask without giving a state: the gateway's own then says that the call left under its approval.
#[tokio::test]
async fn review_6_a_server_that_asks_without_a_state_goes_on_under_the_approval() {
    let given = Given { server: "may_ask = [\"elicitation\"]\n", ..ASKING };
    let house = house(&given, Speaks::Modern).await;
    let held = modern(&house, ada(), &json!({"a": 1}), &json!({})).await;
    super::held::answer(&house, &super::held::approval_id(&held), true, "bob").await;
    house.recorder.answers(
        r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{}}}}}}"#,
    );
    let asked = modern(&house, ada(), &json!({"a": 1}), &json!({})).await;
    assert!(asked.pointer("/result/inputRequests/k").is_some(), "{asked}");
    let state = asked.pointer("/result/requestState").cloned().unwrap_or_default();
    assert!(state.is_string(), "{asked}");
    house.recorder.answers(r#"{"resultType":"complete","content":[{"type":"text","text":"done"}]}"#);
    // Another call does not go on under it, and neither does the same call without its state.
    let accept = json!({"action": "accept", "content": {}});
    let crossed = modern(&house, ada(), &json!({"a": 2}), &back(&state, "k", &accept)).await;
    assert!(crossed.pointer("/error").is_some(), "{crossed}");
    let bare = modern(&house, ada(), &json!({"a": 1}), &json!({"inputResponses": {"k": accept}})).await;
    assert_eq!(bare.pointer("/error/code"), Some(&json!(-32602)), "{bare}");
    let done = modern(&house, ada(), &json!({"a": 1}), &back(&state, "k", &accept)).await;
    assert_eq!(done.pointer("/result/content/0/text"), Some(&json!("done")), "{done}");
    let calls = house.recorder.calls();
    assert_eq!(calls.len(), 2, "{calls:?}");
    let last = calls.last().map(|(_, params)| params.clone()).unwrap_or_default();
    assert!(last.contains("inputResponses") && !last.contains("requestState"), "{last}");
    assert_eq!(states(&house, &[ApprovalState::Succeeded]).await, [ApprovalState::Succeeded]);
}
