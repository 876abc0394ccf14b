//! Takes a "deny always" back.

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;
use toolwarden_sources::edit::Write;
use toolwarden_sources::records::StoredUser;

use super::allowlist_edit::edit_lists;
use crate::editing::not_there;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct BlocksRemove;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub entry: String,
    /// Another user than the one who asks.
    pub user: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub entry: String,
    pub user: String,
    pub not_in_force: Option<String>,
}

impl Operation for BlocksRemove {
    const PATH: &'static str = "/api/v1/blocks/remove";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::User;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let user = request.user.clone().unwrap_or_else(|| clerk.whom(actor));
        actor.must_be(&user, "blocks of others")?;
        let words = format!("unblock `{}` for {}", shown(&request.entry), shown(&user));
        let entry = request.entry.clone();
        let edit = move |_: &_, (_, stored): (&str, &mut StoredUser), _: Write| {
            let before = stored.blocks.len();
            stored.blocks.retain(|known| !known.eq_ignore_ascii_case(&entry));
            Ok((stored.blocks.len() != before, false))
        };
        let whose = (clerk.parts.locations.clone(), user.clone());
        let edited = edit_lists(clerk, (actor, "blocks_remove", &words, false), whose, edit).await?;
        if !edited.outcome {
            let what = format!("`{}` is not blocked for {}", shown(&request.entry), shown(&user));
            return Err(not_there(what, "see `toolwarden allowlist`"));
        }
        Ok(Outcome { entry: request.entry, user, not_in_force: edited.not_in_force })
    }
}
