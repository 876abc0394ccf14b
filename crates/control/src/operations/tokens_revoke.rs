//! Takes a token back: from the next call on here, within moments at other gateways.

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;

use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

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
        let recorded = clerk.record(actor, "tokens_revoke", &shown(&request.id)).await;
        // Whether it can be recorded or not: what takes away does not wait.
        let revoked = clerk.state()?.revoke_token(&request.id, clerk.parts.clock.now()).await?;
        clerk.caught_up().await;
        recorded?;
        if revoked {
            return Ok(Outcome { id: request.id });
        }
        clerk.nothing_changed(actor, "tokens_revoke", &shown(&request.id)).await?;
        Err(no_such(&request.id))
    }
}

pub(super) fn no_such(id: &str) -> ControlError {
    ControlError::NotFound {
        message: format!("no token in use has the id `{}`", shown(id)),
        help: "see `toolwarden tokens list`".to_owned(),
    }
}
