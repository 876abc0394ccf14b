//! The versions of what people decided: who, when, from where, what and why (GATE-16).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// As many as fit a screen or two.
const USUAL: u32 = 50;
const MOST: u32 = 1_000;

/// The operation.
#[derive(Debug)]
pub struct PolicyHistory;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub limit: Option<u32>,
    /// Only older ones.
    pub before: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// Newest first.
    pub versions: Vec<View>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    pub version: u64,
    pub author: String,
    pub time: Timestamp,
    pub summary: String,
    pub reason: Option<String>,
    pub door: String,
}

impl Operation for PolicyHistory {
    const PATH: &'static str = "/api/v1/policy/history";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Policy;
    const FOR: Role = Role::Auditor;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let Some(state) = &clerk.parts.state else { return Ok(Outcome { versions: Vec::new() }) };
        let limit = request.limit.unwrap_or(USUAL).min(MOST);
        let found = state.history(limit, request.before).await?;
        let view = |version: toolwarden_store::state::Version| View {
            version: version.version,
            author: version.author,
            time: version.time,
            summary: version.summary,
            reason: version.reason,
            door: version.door,
        };
        Ok(Outcome { versions: found.into_iter().map(view).collect() })
    }
}
