//! Forgets that a directory was trusted.

use serde::{Deserialize, Serialize};
use toolwarden_sources::trust;

use super::trust_add::Request;
use crate::clerk::blocking;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct TrustRemove;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub was_trusted: bool,
    /// Why a running server does not act on it.
    pub not_in_force: Option<String>,
}

impl Operation for TrustRemove {
    const PATH: &'static str = "/api/v1/trust/remove";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let locations = request.place.locations(&clerk.parts.locations, actor);
        let words = request.words("forget trust in");
        let (places, directory) = (locations.clone(), request.directory.clone());
        if !blocking(move || Ok(trust::is_trusted(&places, &directory)?)).await? {
            clerk.nothing_changed(actor, "trust_remove", &words).await?;
            return Ok(Outcome { was_trusted: false, not_in_force: None });
        }
        let change = move || Ok(trust::untrust(&locations, &request.directory)?);
        let (was_trusted, not_in_force) = clerk.change(actor, "trust_remove", &words, change).await?;
        if !was_trusted {
            clerk.nothing_changed(actor, "trust_remove", &words).await?;
        }
        Ok(Outcome { was_trusted, not_in_force })
    }
}
