//! What is pinned of servers, and what waits for a person: every definition, or those of one server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolwarden_guard::pins::{self, ServerPins};

use crate::clerk::blocking;
use crate::definitions::{DefinitionView, views};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation};

/// The operation.
#[derive(Debug)]
pub struct ToolsList;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub server: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub definitions: Vec<DefinitionView>,
    /// By server, a digest over everything that waits there: who accepts all of it names what they saw.
    pub waiting: BTreeMap<String, String>,
}

impl Operation for ToolsList {
    const PATH: &'static str = "/api/v1/tools";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Files;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let locations = clerk.parts.locations.clone();
        blocking(move || {
            let mut found = pins::all(&locations)?;
            found.retain(|pins| request.server.as_ref().is_none_or(|server| *server == pins.server));
            let waits = |pins: &&ServerPins| pins.waiting() > 0;
            let digest = |pins: &ServerPins| (pins.server.clone(), pins::digest_of_waiting(pins));
            Ok(Outcome {
                definitions: found.iter().flat_map(views).collect(),
                waiting: found.iter().filter(waits).map(digest).collect(),
            })
        })
        .await
    }
}
