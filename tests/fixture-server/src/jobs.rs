//! Tools whose calls may go on as tasks. For clients without tasks they are ordinary tools.

use std::time::Duration;

use rmcp::ErrorData;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::asked::{Asked, Form, Outcome, Reply};
use crate::content::{line, text};
use crate::questions;

/// How many seconds `slow_compute` works at most while a caller waits for its answer.
pub const WAITED_FOR: u64 = 2;
/// The same for a task.
pub const FOLLOWED: u64 = 60;

/// Whether a modern client must know tasks to call this tool.
pub fn needs_task(name: &str) -> bool {
    matches!(name, "failing_job" | "test_tool_with_task")
}

/// Whether this call goes on as a task if the client knows tasks.
pub fn becomes_task(asked: &Asked) -> bool {
    match asked.name.as_str() {
        "slow_compute" | "failing_job" | "protocol_error_job" | "confirm_delete" | "multi_input" => true,
        // It asks first, and works once it has the answer.
        "test_tool_with_task" => matches!(asked.form("user_name"), Form::Filled(_)),
        _ => false,
    }
}

/// The reply of a tool that needs no connection while it works; nothing if the name is not one of them. `longest` is in
/// seconds.
pub async fn run(asked: &Asked, longest: u64) -> Option<Outcome> {
    Some(match asked.name.as_str() {
        "slow_compute" => Ok(Reply::Done(compute(asked, longest).await)),
        "failing_job" => {
            sleep(Duration::from_secs(1)).await;
            Ok(Reply::Done(json!({"isError": true, "content": [text("This job always fails.")]})))
        }
        "protocol_error_job" => Err(ErrorData::internal_error("this job never gives a result", None)),
        _ => return questions::tool(asked),
    })
}

async fn compute(asked: &Asked, longest: u64) -> Value {
    let seconds = asked.arguments.get("seconds").and_then(Value::as_u64).unwrap_or_default().min(longest);
    sleep(Duration::from_secs(seconds)).await;
    let label = asked.arguments.get("label").and_then(Value::as_str).unwrap_or("unnamed");
    line(format!("Computed {label} in {seconds} s."))
}
