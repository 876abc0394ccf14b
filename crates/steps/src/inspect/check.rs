//! The `check` path: results that are looked into before anybody gets them (GATE-12).
//!
//! Most results pass as they stream. Those of a tool with an output schema are gathered, read once, and sent
//! as the same bytes, or not at all.

use std::sync::Arc;

use toolwarden_conversations::Failure;
use toolwarden_core::json::{Kind, Value};
use toolwarden_core::{Operation, Weakness, weak};
use toolwarden_mcp::Era;
use toolwarden_policy::Schema;

use crate::gateway::Gateway;
use crate::resolve::{Asked, What};

/// What a result is checked for.
#[derive(Debug, Clone)]
pub struct Check {
    schema: Arc<Schema>,
    /// A legacy client asked for a task, whose result comes later.
    may_make_task: bool,
}

impl Check {
    /// None where a result passes as it is.
    pub fn of(gateway: &Gateway, asked: &Asked) -> Option<Self> {
        let tool = match &asked.what {
            What::Call if asked.query.call.requested_operation() == Operation::CallTool => &asked.query.call.tool,
            What::Task(Some(tool)) if &*asked.method == "tasks/result" => tool,
            _ => return None,
        };
        let policy = asked.policy(gateway);
        let schema = policy.servers().get(&asked.upstream.name)?.tool(tool)?.output.clone()?;
        (!weak::is(Weakness::Answers)).then(|| {
            let may_make_task = asked.arrival.version.era() == Era::Legacy && asked.task_maker().is_some();
            Self { schema, may_make_task }
        })
    }

    /// Whether a result may be shown.
    pub fn judge(&self, result: Value<'_>) -> Result<(), Failure> {
        let is_error = result.get("isError").is_some_and(|is| is.kind() == Kind::True);
        let kind = result.get("resultType").and_then(Value::as_str);
        let is_unfinished =
            kind.is_some_and(|kind| kind != "complete") || (self.may_make_task && result.get("task").is_some());
        if is_error || is_unfinished {
            return Ok(());
        }
        let checked = self.schema.check_result(result);
        checked.map_err(|fault| Failure::Withheld(format!("it breaks the tool's output schema: {fault}")))
    }
}
