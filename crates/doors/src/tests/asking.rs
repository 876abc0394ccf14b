//! What servers ask of clients (GATE-18), and the state of an exchange: judged, labelled, recorded, sealed.

use serde_json::{Value, json};
use toolwarden_conversations::Scope;
use toolwarden_core::Caller;

use super::doors::{Speech, walk};
use super::house::{Given, House, ada};
use super::recorder::Speaks;

async fn house(server: &'static str) -> House {
    let given = Given { config: "[auto_run]\nmode = \"run_everything\"\n", server, ..Given::default() };
    let house = House::before(&given, Speaks::Modern).await;
    assert!(house.is_some());
    let Some(house) = house else { unreachable!("asserted") };
    house
}

/// A call of a modern client that can be asked everything; further members of params come along.
fn call(tool: &str, more: &Value) -> String {
    let mut params = json!({"name": tool, "arguments": {"n": 1}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}},
    }});
    if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
        params.extend(more.clone());
    }
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string()
}

async fn say(house: &House, caller: Caller, text: &str) -> Value {
    let said = walk(house, caller, Scope::One("notes".into()), Speech::Modern, text).await;
    serde_json::from_str(&said).unwrap_or(Value::String(said))
}

fn form(message: &str) -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message,
        "requestedSchema": {"type": "object", "properties": {"x": {"type": "string"}}}}})
}

fn asks(question: &Value) -> String {
    json!({"resultType": "input_required", "inputRequests": {"k": question}, "requestState": "own"}).to_string()
}

/// The events of the journal: method, decision, detail.
async fn events(house: &House) -> Vec<(String, String, String)> {
    let text = |record: &Value, key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let records = house.records().await;
    let events =
        records.iter().filter(|record| record.get("kind") == Some(&json!("event")) && record.get("server").is_some());
    events.map(|record| (text(record, "method"), text(record, "decision"), text(record, "detail"))).collect()
}

#[tokio::test]
async fn gate_18_questions_say_who_asks_and_are_recorded() {
    let house = house("may_ask = [\"elicitation\", \"url\"]").await;
    house.recorder.answers(&asks(&form("Toolwarden: approve everything?")));
    let said = say(&house, ada(), &call("write", &json!({}))).await;
    let shown = said.pointer("/result/inputRequests/k/params/message");
    assert_eq!(shown, Some(&json!("Server \"notes\" asks: Toolwarden: approve everything?")), "{said}");

    let url = json!({"method": "elicitation/create", "params": {"mode": "url", "message": "pay", "url": "https://pay.example.com/x"}});
    house.recorder.answers(&asks(&url));
    let said = say(&house, ada(), &call("write", &json!({}))).await;
    let shown = said.pointer("/result/inputRequests/k/params/message");
    assert_eq!(shown, Some(&json!("Server \"notes\" asks you to open pay.example.com: pay")), "{said}");

    let expected = [("allow", "asks"), ("allow", "asks to open pay.example.com")];
    let events = events(&house).await;
    let told: Vec<_> = events.iter().map(|(_, decision, detail)| (decision.as_str(), detail.as_str())).collect();
    assert_eq!(told, expected, "{events:?}");
}

#[tokio::test]
async fn gate_18_what_a_server_may_not_ask_reaches_nobody() {
    let secret = json!({"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {
        "type": "object", "properties": {"password": {"type": "string"}}}}});
    let local =
        json!({"method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": "https://127.0.0.1/"}});
    let sampling = json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}});
    for (server, question) in [
        ("", &sampling),
        ("", &json!({"method": "roots/list"})),
        ("", &local),
        ("may_ask = [\"url\"]", &local),
        ("may_ask = [\"elicitation\"]", &secret),
        ("may_ask = []", &form("m")),
        ("", &json!({"method": "tools/call", "params": {"name": "other"}})),
        ("", &json!("no question")),
    ] {
        let house = house(server).await;
        house.recorder.answers(&asks(question));
        let said = say(&house, ada(), &call("write", &json!({}))).await;
        assert!(said.pointer("/error/message").is_some() && said.pointer("/result").is_none(), "{question}: {said}");
        let events = events(&house).await;
        assert!(
            events.iter().all(|(_, decision, _)| decision == "deny") && events.len() == 1,
            "{question}: {events:?}"
        );
    }
}

#[tokio::test]
async fn a_state_comes_back_once_to_the_call_it_belongs_to() {
    let house = house("").await;
    house.recorder.answers(&asks(&form("who?")));
    let said = say(&house, ada(), &call("write", &json!({}))).await;
    let state = said.pointer("/result/requestState").cloned().unwrap_or_default();
    assert!(state.is_string() && state != "own", "{said}");
    let back = json!({"requestState": state, "inputResponses": {"k": {"action": "accept", "content": {"x": "y"}}}});
    let mut bob = ada();
    bob.user = Some("bob".to_owned());
    house.recorder.forget();
    let (again, other) = (call("write", &back), call("other", &back));
    let changed = again.replace("\"n\":1", "\"n\":1.0");
    for (caller, text) in [(bob, again.as_str()), (ada(), other.as_str()), (ada(), changed.as_str())] {
        let said = say(&house, caller, text).await;
        assert_eq!(said.pointer("/error/code"), Some(&json!(-32602)), "{text}: {said}");
    }
    for forged in [json!("own"), json!(""), json!(7), json!("AAAA")] {
        let said = say(&house, ada(), &call("write", &json!({"requestState": forged}))).await;
        assert_eq!(said.pointer("/error/code"), Some(&json!(-32602)), "{forged}: {said}");
    }
    assert!(house.recorder.calls().is_empty(), "nothing reached the server");

    house.recorder.answers(r#"{"resultType":"complete","content":[]}"#);
    let said = say(&house, ada(), &again).await;
    assert!(said.pointer("/result/content").is_some(), "{said}");
    let sent: Vec<Value> =
        house.recorder.calls().iter().filter_map(|(_, text)| serde_json::from_str(text).ok()).collect();
    let sent = sent.first().cloned().unwrap_or_default();
    assert_eq!(sent.pointer("/params/requestState"), Some(&json!("own")), "the server's own state: {sent}");
    assert_eq!(sent.pointer("/params/inputResponses/k/action"), Some(&json!("accept")), "{sent}");
    let said = say(&house, ada(), &again).await;
    assert!(said.to_string().contains("used before"), "{said}");
    assert_eq!(house.recorder.calls().len(), 1);
}

#[tokio::test]
async fn an_exchange_asks_sixteen_times_at_most() {
    let house = house("").await;
    house.recorder.answers(&asks(&form("again?")));
    let mut state = Value::Null;
    let mut rounds = 0;
    for _ in 0..20 {
        let said = say(&house, ada(), &call("write", &json!({"requestState": state}))).await;
        match said.pointer("/result/requestState") {
            Some(next) => state = next.clone(),
            None => break,
        }
        rounds += 1;
    }
    assert_eq!(rounds, 16);
}

#[tokio::test]
async fn only_calls_may_be_answered_with_questions() {
    let house = house("").await;
    for method in ["tools/list", "prompts/list", "completion/complete"] {
        house.recorder.lists(method, vec![serde_json::from_str(&asks(&form("m"))).unwrap_or_default()]);
        let params = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}});
        let text = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
        let said = say(&house, ada(), &text).await;
        assert!(!said.to_string().contains("inputRequests"), "{method}: {said}");
    }
}

/// GATE-18: what a client answers is recorded, and of roots a server gets those the caller may pass on, asked
/// for or not.
#[tokio::test]
async fn gate_18_answers_are_recorded_and_roots_are_judged() {
    let roots = json!({"roots": [{"uri": "file:///srv/work"}, {"uri": "file:///"}]});
    let brings = json!({"r": roots, "f": {"action": "accept", "content": {"x": "y"}}});
    let form = json!({"action": "accept", "content": {"x": "y"}});
    for (server, wanted) in [
        ("may_ask = [\"roots\", \"elicitation\"]", json!({"r": {"roots": [{"uri": "file:///srv/work"}]}, "f": form})),
        ("", json!({"f": form})),
    ] {
        let house = house(server).await;
        // What an answer is shows in its form, whatever was asked.
        let questions = json!({"r": self::form("where?"), "f": self::form("who?")});
        let asking = json!({"resultType": "input_required", "inputRequests": questions, "requestState": "own"});
        house.recorder.answers(&asking.to_string());
        let said = say(&house, ada(), &call("write", &json!({}))).await;
        let state = said.pointer("/result/requestState").cloned().unwrap_or_default();
        house.recorder.answers(r#"{"resultType":"complete","content":[]}"#);
        let brings = json!({"inputResponses": brings, "requestState": state});
        say(&house, ada(), &call("write", &brings)).await;
        let sent = house.recorder.calls().pop().map(|(_, text)| text).unwrap_or_default();
        let sent: Value = serde_json::from_str(&sent).unwrap_or_default();
        assert_eq!(sent.pointer("/params/inputResponses"), Some(&wanted), "{server}: {sent}");
        let recorded = events(&house).await;
        let count = wanted.as_object().map_or(0, serde_json::Map::len);
        let answered =
            recorded.iter().filter(|(_, decision, detail)| decision == "allow" && detail.starts_with("answered"));
        assert_eq!(answered.count(), count, "{recorded:?}");
    }
}
