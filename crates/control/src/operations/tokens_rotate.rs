//! Gives a token another secret; the former one counts no more.

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;

use super::tokens_issue::{ShownOnce, new_token};
use super::tokens_revoke::{Request, is_in_use, no_such};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct TokensRotate;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub id: String,
    pub token: ShownOnce,
}

impl Operation for TokensRotate {
    const PATH: &'static str = "/api/v1/tokens/rotate";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        // The id stays, so that records of the same token belong together: only the secret is new.
        let fresh = new_token(clerk)?.with_id(&request.id);
        if !is_in_use(clerk, &request.id).await? {
            clerk.nothing_changed(actor, "tokens_rotate", &shown(&request.id)).await?;
            return Err(no_such(&request.id));
        }
        if let Some(token) = clerk.state()?.token_of(&request.id).await? {
            actor.must_cover(&token.claims)?;
        }
        clerk.record(actor, "tokens_rotate", &shown(&request.id)).await?;
        let line = actor.acting_token().map(|token| token.line()).unwrap_or_default();
        let rotated = clerk.state()?.rotate_token(&request.id, fresh.digest, &line).await?;
        clerk.caught_up().await;
        if !rotated {
            clerk.nothing_changed(actor, "tokens_rotate", &shown(&request.id)).await?;
            return Err(no_such(&request.id));
        }
        Ok(Outcome { id: request.id, token: ShownOnce(fresh.text.reveal_to_upstream().to_owned()) })
    }
}
