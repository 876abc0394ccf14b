//! Removes an entry from a user's allowlist wherever they may edit it, and says what still grants it.

use serde::{Deserialize, Serialize};
use toolwarden_sources::Locations;
use toolwarden_sources::edit::{self, Write};
use toolwarden_sources::records::StoredUser;

use super::allowlist_add::Request;
use super::allowlist_edit::edit_lists;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct AllowlistRemove;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// Places it was removed from; empty = it was nowhere.
    pub places: Vec<String>,
    /// What still grants the same, as entry and place.
    pub still_granted_by: Vec<(String, String)>,
    /// Why a running server does not act on it.
    pub not_in_force: Option<String>,
}

impl Operation for AllowlistRemove {
    const PATH: &'static str = "/api/v1/allowlist/remove";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::User;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let locations = request.place.locations(&clerk.parts.locations, actor);
        let (user, list) = (request.user(clerk, actor), request.list());
        actor.must_be(&user, "lists of others")?;
        let words = request.words("remove", &user);
        let remove = move |locations: &Locations, whose: (&str, &mut StoredUser), write: Write| {
            let removed = edit::remove_entry(locations, whose, (list, &request.entry), write)?;
            let in_file = removed.in_file;
            Ok((removed, in_file))
        };
        let edited = edit_lists(clerk, (actor, "allowlist_remove", &words, true), (locations, user), remove).await?;
        let (removed, not_in_force) = (edited.outcome, edited.not_in_force);
        Ok(Outcome { places: removed.places, still_granted_by: removed.still_granted_by, not_in_force })
    }
}
