//! Takes a grant back: the next call asks.

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;

use super::grants_list::GrantView;
use crate::editing::not_there;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct GrantsRevoke;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub id: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub id: String,
}

impl Operation for GrantsRevoke {
    const PATH: &'static str = "/api/v1/grants/revoke";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::User;
    const ALSO_FOR: Option<Role> = Some(Role::Approver);
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let state = clerk.state()?;
        let gone = || {
            not_there(format!("no grant in use has the id `{}`", shown(&request.id)), "see `toolwarden grants list`")
        };
        let found = state.grants().await?.into_iter().find(|grant| grant.id == request.id).map(GrantView::from);
        found.filter(|grant| grant.is_for(actor)).ok_or_else(gone)?;
        let recorded = clerk.record(actor, "grants_revoke", &shown(&request.id)).await;
        // Whether it can be recorded or not: what takes away does not wait.
        let revoked = state.revoke_grant(&request.id, clerk.parts.clock.now()).await?;
        recorded?;
        if revoked { Ok(Outcome { id: request.id }) } else { Err(gone()) }
    }
}
