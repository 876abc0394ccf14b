//! Removes an entry from a user's allowlist wherever they may edit it, and says what still grants it.

use serde::{Deserialize, Serialize};
use toolwarden_sources::edit;

use super::allowlist_add::Request;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation};

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
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let locations = request.place.locations(&clerk.parts.locations);
        let (user, list) = (request.user(&locations), request.list());
        let words = request.words("remove", &user);
        let change = move || Ok(edit::remove_entry(&locations, &user, list, &request.entry)?);
        let (removed, not_in_force) = clerk.change(actor, "allowlist_remove", &words, change).await?;
        if removed.places.is_empty() {
            clerk.nothing_changed(actor, "allowlist_remove", &words).await?;
        }
        Ok(Outcome { places: removed.places, still_granted_by: removed.still_granted_by, not_in_force })
    }
}
