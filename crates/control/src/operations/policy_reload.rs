//! Reads the policy's files again now, as they are read when they change.

use serde::{Deserialize, Serialize};

use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct PolicyReload;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// False where no gateway runs that could read anything.
    pub running: bool,
    /// Why the former policy stays in force.
    pub not_in_force: Option<String>,
}

impl Operation for PolicyReload {
    const PATH: &'static str = "/api/v1/policy/reload";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, _request: Request) -> Result<Outcome, ControlError> {
        if clerk.parts.servers.is_none() {
            return Ok(Outcome { running: false, not_in_force: None });
        }
        clerk.record(actor, "policy_reload", "read the policy again").await?;
        Ok(Outcome { running: true, not_in_force: clerk.changes().announce(clerk.author(actor)).await })
    }
}
