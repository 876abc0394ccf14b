//! Tools that ask the client, in the way of each era.

use serde_json::{Map, Value, json};

use crate::program::{Server, all_capabilities, claimed, initialize, initialized, request};

/// Every tool that asks, with the arguments it needs.
const TOOLS: [(&str, &str); 15] = [
    ("test_sampling", r#"{"prompt":"Say it."}"#),
    ("test_missing_capability", "{}"),
    ("test_elicitation", r#"{"message":"Who?"}"#),
    ("test_elicitation_sep1034_defaults", "{}"),
    ("test_elicitation_sep1330_enums", "{}"),
    ("test_streaming_elicitation", "{}"),
    ("test_input_required_result_elicitation", "{}"),
    ("test_input_required_result_sampling", "{}"),
    ("test_input_required_result_list_roots", "{}"),
    ("test_input_required_result_request_state", "{}"),
    ("test_input_required_result_multiple_inputs", "{}"),
    ("test_input_required_result_multi_round", "{}"),
    ("test_input_required_result_capabilities", "{}"),
    ("confirm_delete", r#"{"filename":"a"}"#),
    ("multi_input", "{}"),
];

fn call(tool: &str, arguments: &str) -> Value {
    json!({"name": tool, "arguments": serde_json::from_str::<Value>(arguments).unwrap_or_default()})
}

/// What a helpful client says.
fn reply(question: &Value) -> Value {
    match question.get("method").and_then(Value::as_str) {
        Some("elicitation/create") => {
            json!({"action": "accept", "content": {"name": "Ada", "color": "red", "ok": true}})
        }
        Some("sampling/createMessage") => {
            json!({"role": "assistant", "model": "none", "content": {"type": "text", "text": "Hello."}})
        }
        Some("roots/list") => json!({"roots": [{"uri": "file:///tmp"}]}),
        other => unreachable!("asked for {other:?}"),
    }
}

fn open(name: &str, capabilities: &Value) -> Server {
    let mut server = Server::start(name, &["stdio", "--era", "legacy"]);
    assert!(server.ask(&initialize("2025-11-25", capabilities)).get("result").is_some());
    server.send(&initialized());
    server
}

#[test]
fn a_modern_client_is_told_to_come_back() {
    let mut server = Server::start("questions-modern", &["stdio", "--era", "modern"]);
    for (tool, arguments) in TOOLS {
        let mut answer = server.ask(&claimed(1, "tools/call", &call(tool, arguments)));
        let mut rounds = 0;
        while answer.pointer("/result/resultType") == Some(&json!("input_required")) {
            let asked = answer.pointer("/result/inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
            let replies: Map<_, _> = asked.iter().map(|(name, question)| (name.clone(), reply(question))).collect();
            let mut again = call(tool, arguments);
            if let Some(fields) = again.as_object_mut() {
                fields.insert("inputResponses".to_owned(), Value::Object(replies));
                if let Some(state) = answer.pointer("/result/requestState") {
                    fields.insert("requestState".to_owned(), state.clone());
                }
            }
            rounds += 1;
            assert!(rounds < 5, "{tool}: {answer}");
            answer = server.ask(&claimed(1 + rounds, "tools/call", &again));
        }
        assert!(rounds > 0, "{tool} asked nothing: {answer}");
        assert_eq!(answer.pointer("/result/resultType"), Some(&json!("complete")), "{tool}: {answer}");
    }
}

#[test]
fn a_legacy_client_is_asked_while_the_call_waits() {
    let mut server = open("questions-legacy", &all_capabilities());
    for (tool, arguments) in TOOLS {
        let mut message = server.ask(&request(7, "tools/call", &call(tool, arguments)));
        let mut asked = 0;
        while message.get("method").is_some() {
            let id = message.get("id").cloned().unwrap_or_default();
            server.send(&json!({"jsonrpc": "2.0", "id": id, "result": reply(&message)}));
            asked += 1;
            message = server.receive();
        }
        assert!(asked > 0, "{tool} asked nothing");
        assert!(message.pointer("/result/content/0/text").is_some(), "{tool}: {message}");
        assert!(message.pointer("/result/resultType").is_none(), "{tool}: {message}");
    }
}

#[test]
fn several_questions_of_one_round_are_all_there_before_an_answer() {
    let mut server = open("questions-at-once", &all_capabilities());
    server.send(&request(7, "tools/call", &call("test_input_required_result_multiple_inputs", "{}")));
    let questions = [server.receive(), server.receive(), server.receive()];
    let mut methods: Vec<_> = questions.iter().filter_map(|it| it.get("method")?.as_str()).collect();
    methods.sort_unstable();
    assert_eq!(methods, ["elicitation/create", "roots/list", "sampling/createMessage"]);
    // In another order than they came.
    for question in questions.iter().rev() {
        let id = question.get("id").cloned().unwrap_or_default();
        server.send(&json!({"jsonrpc": "2.0", "id": id, "result": reply(question)}));
    }
    let answer = server.receive();
    assert_eq!(answer.pointer("/result/content/0/text"), Some(&json!("Hello. (Ada, 1 roots)")), "{answer}");
}

#[test]
fn a_careless_server_asks_a_client_that_cannot_answer() {
    let mut server = open("questions-careless", &json!({}));
    let question = server.ask(&request(7, "tools/call", &call("test_missing_capability", "{}")));
    assert_eq!(question.get("method"), Some(&json!("sampling/createMessage")));
    let error = json!({"code": -32601, "message": "Method not found"});
    let answer = server.ask(&json!({"jsonrpc": "2.0", "id": question.get("id"), "error": error}));
    assert_eq!(answer.get("id"), Some(&json!(7)));
    assert!(answer.get("error").is_some(), "{answer}");
    let refused = server.ask(&request(8, "tools/call", &call("test_sampling", r#"{"prompt":"x"}"#)));
    assert!(refused.get("error").is_some() && refused.get("method").is_none(), "{refused}");
}
