//! Tools that go on as tasks for modern clients that know tasks, and answer plainly for all others.

use serde_json::{Value, json};

use crate::program::{Server, claimed, code, initialize, request};

/// A modern request of a client that knows tasks, and can fill in forms.
fn knowing(method: &str, params: &Value) -> Value {
    let mut message = claimed(7, method, params);
    let declared = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    if let Some(meta) = message.pointer_mut("/params/_meta").and_then(Value::as_object_mut) {
        meta.insert("io.modelcontextprotocol/clientCapabilities".to_owned(), declared);
    }
    message
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

/// Calls a tool and gives the id of its task.
fn begin(server: &mut Server, tool: &str, arguments: &Value) -> String {
    let made = server.ask(&knowing("tools/call", &call(tool, arguments)));
    assert_eq!(made.pointer("/result/resultType"), Some(&json!("task")), "{tool}: {made}");
    made.pointer("/result/taskId").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Asks for a task until it is in this state; gives what is said of it then.
fn follow(server: &mut Server, task: &str, status: &str) -> Value {
    let mut said = Value::Null;
    for _ in 0..250 {
        said = server.ask(&knowing("tasks/get", &json!({"taskId": task})));
        if said.pointer("/result/status") == Some(&json!(status)) {
            return said;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
    unreachable!("not {status}: {said}");
}

fn update(server: &mut Server, task: &str, answers: &Value) {
    let said = server.ask(&knowing("tasks/update", &json!({"taskId": task, "inputResponses": answers})));
    assert_eq!(said.pointer("/result/resultType"), Some(&json!("complete")), "{said}");
}

#[test]
fn a_task_ends_with_what_its_tool_gives() {
    let mut server = Server::start("tasks-end", &["stdio", "--era", "modern"]);
    let task = begin(&mut server, "slow_compute", &json!({"seconds": 0, "label": "x"}));
    let said = follow(&mut server, &task, "completed");
    assert_eq!(said.pointer("/result/result/content/0/text"), Some(&json!("Computed x in 0 s.")), "{said}");
    let task = begin(&mut server, "failing_job", &json!({}));
    let said = follow(&mut server, &task, "completed");
    assert_eq!(said.pointer("/result/result/isError"), Some(&json!(true)), "{said}");
    let task = begin(&mut server, "protocol_error_job", &json!({}));
    let said = follow(&mut server, &task, "failed");
    assert_eq!(said.pointer("/result/error/code"), Some(&json!(-32603)), "{said}");
    let task = begin(&mut server, "slow_compute", &json!({"seconds": 60}));
    server.ask(&knowing("tasks/cancel", &json!({"taskId": task})));
    follow(&mut server, &task, "cancelled");
    assert_eq!(server.recorded().lines().count(), 4, "one line for each call");
}

#[test]
fn a_task_takes_each_answer_once() {
    let mut server = Server::start("tasks-answers", &["stdio", "--era", "modern"]);
    let task = begin(&mut server, "multi_input", &json!({}));
    let asked = follow(&mut server, &task, "input_required");
    let questions = asked.pointer("/result/inputRequests").and_then(Value::as_object).map(serde_json::Map::len);
    assert_eq!(questions, Some(2), "{asked}");
    let filled = json!({"action": "accept", "content": {"name": "Ada"}});
    update(&mut server, &task, &json!({"first": filled, "third": filled}));
    let asked = follow(&mut server, &task, "input_required");
    let questions = asked.pointer("/result/inputRequests").and_then(Value::as_object);
    assert!(questions.is_some_and(|left| left.len() == 1 && left.contains_key("second")), "{asked}");
    update(&mut server, &task, &json!({"second": filled}));
    follow(&mut server, &task, "completed");
    // An answer that is of no use ends the task: a question is not asked twice.
    let task = begin(&mut server, "confirm_delete", &json!({"filename": "a"}));
    follow(&mut server, &task, "input_required");
    update(&mut server, &task, &json!({"confirm": {}}));
    follow(&mut server, &task, "failed");
}

#[test]
fn a_call_may_ask_before_it_is_a_task() {
    let mut server = Server::start("tasks-asking", &["stdio", "--era", "modern"]);
    let asked = server.ask(&knowing("tools/call", &call("test_tool_with_task", &json!({}))));
    assert_eq!(asked.pointer("/result/resultType"), Some(&json!("input_required")), "{asked}");
    let mut again = call("test_tool_with_task", &json!({}));
    if let Some(fields) = again.as_object_mut() {
        let answers = json!({"user_name": {"action": "accept", "content": {"name": "Ada"}}});
        fields.insert("inputResponses".to_owned(), answers);
    }
    let made = server.ask(&knowing("tools/call", &again));
    let task = made.pointer("/result/taskId").and_then(Value::as_str).unwrap_or_default().to_owned();
    let said = follow(&mut server, &task, "completed");
    assert_eq!(said.pointer("/result/result/content/0/text"), Some(&json!("Hello, Ada!")), "{said}");
}

#[test]
fn clients_without_tasks_get_none() {
    let mut server = Server::start("tasks-unknown", &["stdio", "--era", "modern"]);
    let said = server.ask(&claimed(1, "tools/call", &call("slow_compute", &json!({"seconds": 0}))));
    assert_eq!(said.pointer("/result/resultType"), Some(&json!("complete")), "{said}");
    for (method, params) in [("tools/call", call("failing_job", &json!({}))), ("tasks/get", json!({"taskId": "x"}))] {
        let said = server.ask(&claimed(2, method, &params));
        assert_eq!(code(&said), Some(-32021), "{said}");
    }
    let said = server.ask(&knowing("tasks/get", &json!({"taskId": "x"})));
    assert_eq!(code(&said), Some(-32602), "{said}");
}

#[test]
fn the_legacy_era_has_no_such_tasks() {
    let mut server = Server::start("tasks-legacy", &["stdio", "--era", "legacy"]);
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let opened = server.ask(&initialize("2025-11-25", &tasks));
    assert!(opened.pointer("/result/capabilities/tools").is_some(), "{opened}");
    assert!(opened.pointer("/result/capabilities/extensions").is_none(), "{opened}");
    let said = server.ask(&request(2, "tools/call", &call("failing_job", &json!({}))));
    assert_eq!(said.pointer("/result/isError"), Some(&json!(true)), "{said}");
    let said = server.ask(&request(3, "tasks/get", &json!({"taskId": "x"})));
    assert_eq!(code(&said), Some(-32601), "{said}");
}
