//! Takes a token back: from the next call on here, within moments at other gateways.

use serde::{Deserialize, Serialize};
use toolwarden_core::ApprovalState;
use toolwarden_core::name::shown;
use toolwarden_store::state::{ApprovalFilter, Moved};

use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// Held calls that are looked at together.
const PAGE: u32 = 500;

/// The operation.
#[derive(Debug)]
pub struct TokensRevoke;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub id: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub id: String,
}

impl Operation for TokensRevoke {
    const PATH: &'static str = "/api/v1/tokens/revoke";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        // Where that cannot be seen it is revoked all the same.
        if matches!(is_in_use(clerk, &request.id).await, Ok(false)) {
            clerk.nothing_changed(actor, "tokens_revoke", &shown(&request.id)).await?;
            return Err(no_such(&request.id));
        }
        let recorded = clerk.record(actor, "tokens_revoke", &shown(&request.id)).await;
        // Whether it can be recorded or not: what takes away does not wait.
        let revoked = clerk.state()?.revoke_token(&request.id, clerk.parts.clock.now()).await?;
        clerk.caught_up().await;
        recorded?;
        if revoked {
            cancel_held(clerk, actor, &request.id).await;
            return Ok(Outcome { id: request.id });
        }
        clerk.nothing_changed(actor, "tokens_revoke", &shown(&request.id)).await?;
        Err(no_such(&request.id))
    }
}

/// Whether there is something to take back, or to change: what is not there is not recorded as changed.
pub(super) async fn is_in_use(clerk: &Clerk, id: &str) -> Result<bool, ControlError> {
    Ok(clerk.state()?.token_of(id).await?.is_some_and(|token| token.revoked_at.is_none()))
}

/// Calls of the token that wait for an answer, or for being made, wait for nothing any more. They would be denied anyway,
/// so that a failure here only leaves them on the list until they expire.
async fn cancel_held(clerk: &Clerk, actor: &Actor, id: &str) {
    let mut filter = ApprovalFilter {
        states: vec![ApprovalState::Held, ApprovalState::Approved],
        limit: PAGE,
        ..ApprovalFilter::default()
    };
    loop {
        let Ok(state) = clerk.state() else { return };
        let Ok(found) = state.approvals(&filter).await else { return };
        for approval in found.approvals.iter().filter(|approval| approval.call.caller.token.as_deref() == Some(id)) {
            let moved = state.move_approval(&approval.id, ApprovalState::Cancelled, clerk.parts.clock.now()).await;
            let recorded = match moved {
                Ok(Moved::Done(cancelled)) => {
                    let (what, why) = (("approval_cancelled", "cancelled"), "its token was revoked");
                    clerk.record_approval(actor, what, why, &cancelled).await
                }
                Ok(Moved::Not(_) | Moved::NoSuch) => Ok(()),
                Err(error) => Err(error.into()),
            };
            if let Err(error) = recorded {
                tracing::warn!("a held call of a revoked token was not cancelled, or that is not recorded: {error}");
            }
        }
        match found.next {
            Some(next) => filter.after = Some(next),
            None => return,
        }
    }
}

pub(super) fn no_such(id: &str) -> ControlError {
    ControlError::NotFound {
        message: format!("no token in use has the id `{}`", shown(id)),
        help: "see `toolwarden tokens list`".to_owned(),
    }
}
