//! Agrees to a policy that files made wider, before it is in force (SELF-2).

use serde::{Deserialize, Serialize};
use toolwarden_sources::stored;

use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct PolicyConfirm;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Of exactly one policy, as the server says it where one waits.
    pub mark: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub mark: String,
    /// Why a running server does not act on it.
    pub not_in_force: Option<String>,
}

impl Operation for PolicyConfirm {
    const PATH: &'static str = "/api/v1/policy/confirm";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let mark = request.mark;
        if mark.len() != stored::MARK || !mark.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let message = format!("a mark is {} characters of 0-9 and a-f, as `doctor` shows it", stored::MARK);
            return Err(ControlError::BadInput(message));
        }
        clerk.must_not_answer_itself(actor).await?;
        let (locations, kept, now) = (clerk.parts.locations.clone(), mark.clone(), clerk.parts.clock.now());
        let change = move || Ok(stored::confirm_policy(&locations, &kept, now)?);
        let words = format!("agree to the policy {mark}, which files made wider");
        let ((), not_in_force) = clerk.change(actor, "policy_confirm", &words, change).await?;
        Ok(Outcome { mark, not_in_force })
    }
}
