//! Makes everything as it was at a version, as the next version (GATE-16). Tokens are none of it.

use serde::{Deserialize, Serialize};

use crate::deciding::{Deciding, Done, Terms};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct PolicyRollback;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// The version to go back to; 0 = before the first.
    pub version: u64,
    pub terms: Terms,
}

impl Operation for PolicyRollback {
    const PATH: &'static str = "/api/v1/policy/rollback";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Done;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Done, ControlError> {
        let draft = clerk.state()?.back_to(request.version).await?;
        if let Some(expected) = request.terms.if_version
            && draft.before().version != expected
        {
            let found = draft.before().version;
            return Err(ControlError::BadInput(format!("the policy is at version {found} by now, not at {expected}")));
        }
        let before = clerk.opened(draft.before().clone()).await?;
        let words = format!("go back to version {}", request.version);
        let deciding = Deciding {
            actor,
            operation: "policy_rollback",
            terms: &request.terms,
            about: None,
            is_recorded: false,
            narrows: false,
        };
        clerk.settle(&deciding, draft, &before, &words).await
    }
}
