//! Which rows of the record: the filters every audit operation takes.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolwarden_store::index::Filter;

use crate::error::ControlError;

/// Filters; an empty selection means all. Texts only, so that it fits into a query string.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    pub kind: Option<String>,
    pub decision: Option<String>,
    pub status: Option<String>,
    pub server: Option<String>,
    /// `SERVER:TOOL`, where either side may be `*`.
    pub tool: Option<String>,
    pub user: Option<String>,
    pub mode: Option<String>,
    /// Of the agent.
    pub role: Option<String>,
    /// A token's id.
    pub token: Option<String>,
    /// Not before.
    pub since: Option<Timestamp>,
    /// Before.
    pub until: Option<Timestamp>,
}

const KINDS: [&str; 3] = ["intent", "refusal", "event"];
const DECISIONS: [&str; 3] = ["allow", "hold", "deny"];
const STATUSES: [&str; 9] =
    ["ok", "tool_error", "upstream_error", "timeout", "too_large", "cancelled", "denied", "held", "unknown"];

impl Selection {
    /// The filter; a word that no row can have is refused, because an empty answer would mislead.
    pub(crate) fn filter(&self) -> Result<Filter, ControlError> {
        one_of("kind", self.kind.as_deref(), &KINDS)?;
        one_of("decision", self.decision.as_deref(), &DECISIONS)?;
        one_of("status", self.status.as_deref(), &STATUSES)?;
        let mut filter = Filter::default();
        if let Some(tool) = &self.tool {
            if !tool.split_once(':').is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty()) {
                let tool = toolwarden_core::name::shown(tool);
                let message = format!("`{tool}` is no SERVER:TOOL; either side may be `*`, as in `*:{tool}`");
                return Err(ControlError::BadInput(message));
            }
            filter = filter.with_tool(tool);
        }
        if let Some(server) = &self.server {
            if filter.server.as_ref().is_some_and(|named| named != server) {
                let named = filter.server.unwrap_or_default();
                return Err(ControlError::BadInput(format!(
                    "the tool names the server `{named}`, and the server asked for is `{server}`: give one of them"
                )));
            }
            filter.server = Some(server.clone());
        }
        filter.kind.clone_from(&self.kind);
        filter.decision.clone_from(&self.decision);
        filter.status.clone_from(&self.status);
        filter.user.clone_from(&self.user);
        filter.mode.clone_from(&self.mode);
        filter.role.clone_from(&self.role);
        filter.token.clone_from(&self.token);
        (filter.since, filter.until) = (self.since, self.until);
        Ok(filter)
    }
}

fn one_of(what: &str, value: Option<&str>, known: &[&str]) -> Result<(), ControlError> {
    match value {
        Some(value) if !known.contains(&value) => {
            let value = toolwarden_core::name::shown(value);
            Err(ControlError::BadInput(format!("there is no {what} `{value}`; one of: {}", known.join(", "))))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "selection_tests.rs"]
mod tests;
