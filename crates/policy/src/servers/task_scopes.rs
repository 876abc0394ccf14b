//! GATE-11: whether tools that are bound to ids have the fields that carry them.

use super::Servers;
use crate::finding::Finding;
use crate::input::ServerInput;

/// A task-scoped tool whose schema lacks the field could never be called.
#[must_use]
pub fn task_scopes(inputs: &[ServerInput], servers: &Servers) -> Vec<Finding> {
    let mut findings = Vec::new();
    // One user's server is no fault of the whole policy.
    for server in inputs.iter().filter(|server| server.owner.is_none()) {
        for (name, tool) in &server.tools {
            let compiled = servers.get(&server.name).and_then(|server| server.tool(name));
            let schema = compiled
                .and_then(|tool| tool.definition.as_ref())
                .and_then(|definition| definition.input_schema.as_ref());
            let Some(schema) = schema else { continue };
            for field in
                tool.task_scoped.iter().filter(|field| schema.pointer(&format!("/properties/{field}")).is_none())
            {
                let origin = tool.origin.clone().unwrap_or_else(|| server.origin.clone());
                let message = format!(
                    "`{}:{name}` is task-scoped by `{field}`, but its schema has no such property",
                    server.name
                );
                findings.push(Finding::error("task_scope_field", origin, message));
            }
        }
    }
    findings
}
