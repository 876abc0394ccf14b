//! What is pinned of servers, and what waits for a person: every definition, those of one server, or one of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolwarden_pins::{self as pins, All, ServerPins};

use crate::clerk::blocking;
use crate::definitions::{DefinitionView, views};
use crate::seen::{self, Configured};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct ToolsList;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub server: Option<String>,
    /// One definition of that server, as the list names it.
    pub name: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub definitions: Vec<DefinitionView>,
    /// By server, a digest over everything that waits there: who accepts all of it names what they saw.
    pub waiting: BTreeMap<String, String>,
    /// How many definitions of the server wait beside the one that was asked for.
    pub others_waiting: usize,
    /// Why nothing can be said of some servers.
    pub unreadable: Vec<String>,
    /// Servers of a running gateway whose lists cannot be had at the moment, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
}

impl Operation for ToolsList {
    const PATH: &'static str = "/api/v1/tools";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Policy;
    const FOR: Role = Role::Viewer;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let (locations, running) = (clerk.parts.locations.clone(), Configured::running(clerk));
        let failing = failing(clerk, actor, request.server.as_deref());
        let store = clerk.records().await?;
        let actor = actor.clone();
        blocking(move || {
            let configured = running.or_written(&locations, &store);
            let All { mut readable, mut unreadable } = match &request.server {
                // Others may be past reading.
                Some(server) => {
                    let pins = seen::server(&locations, server, (&configured, &actor))?;
                    All { readable: vec![pins], unreadable: Vec::new() }
                }
                None => pins::all(&locations),
            };
            readable.retain(|pins| configured.shows(&pins.server, &actor));
            if !actor.is_admin() {
                // Nobody can tell whose they are.
                unreadable.clear();
            }
            let mut definitions: Vec<DefinitionView> =
                readable.iter().flat_map(|pins| views(pins, &configured)).collect();
            let waiting = |all: &[DefinitionView]| all.iter().filter(|one| !one.waiting.is_empty()).count();
            let mut others_waiting = 0;
            if let (Some(name), [pins]) = (&request.name, readable.as_slice()) {
                seen::definition(pins, name)?;
                let all = waiting(&definitions);
                definitions.retain(|one| one.name == *name);
                others_waiting = all - waiting(&definitions);
            }
            let waits = |pins: &&ServerPins| pins.waiting() > 0;
            let digest = |pins: &ServerPins| (pins.server.clone(), pins::digest_of_waiting(pins));
            Ok(Outcome {
                definitions,
                waiting: readable.iter().filter(waits).map(digest).collect(),
                others_waiting,
                unreadable: unreadable.iter().map(ToString::to_string).collect(),
                failing,
            })
        })
        .await
    }
}

/// Servers of a running gateway whose lists cannot be had at the moment, and why.
fn failing(clerk: &Clerk, actor: &Actor, only: Option<&str>) -> Vec<String> {
    let servers = clerk.parts.servers.as_ref().map(|servers| servers.list()).unwrap_or_default();
    let asked = servers.into_iter().filter(|server| only.is_none_or(|only| server.name == only));
    let failing = asked.filter(|server| server.status == "error" && actor.sees(server.owner.as_deref()));
    failing
        .map(|server| format!("{}: {}", server.name, server.detail.as_deref().unwrap_or("it cannot be reached")))
        .collect()
}
