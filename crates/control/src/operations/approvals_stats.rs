//! How often persons answered held calls as the classifier would have: what tells whether its word can be relied on.

use serde::{Deserialize, Serialize};
use toolwarden_core::Agreement;

use super::Nothing;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct ApprovalsStats;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Answers to calls of which the classifier had a verdict, since the store was made.
    pub agreement: Agreement,
}

impl Operation for ApprovalsStats {
    const PATH: &'static str = "/api/v1/approvals/stats";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::State;
    const FOR: Role = Role::Auditor;
    const ALSO_FOR: Option<Role> = Some(Role::Approver);
    type Request = Nothing;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, _request: Nothing) -> Result<Outcome, ControlError> {
        Ok(Outcome { agreement: clerk.state()?.agreement().await? })
    }
}
