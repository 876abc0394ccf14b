//! The upstream servers and how each is doing. What is one user's own is not there for others (GATE-8).

use serde::{Deserialize, Serialize};
use toolwarden_policy::input::{Launch, ServerInput};

use super::Nothing;
use crate::clerk::blocking;
use crate::place;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Remark, Role, ServerView};

/// The operation.
#[derive(Debug)]
pub struct ServersList;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub servers: Vec<ServerView>,
    pub findings: Vec<Remark>,
}

impl Operation for ServersList {
    const PATH: &'static str = "/api/v1/servers";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Policy;
    const FOR: Role = Role::Viewer;
    type Request = Nothing;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, _request: Nothing) -> Result<Outcome, ControlError> {
        if let Some(servers) = &clerk.parts.servers {
            let mut servers = servers.list();
            servers.retain(|server| actor.sees(server.owner.as_deref()));
            return Ok(Outcome { servers, findings: Vec::new() });
        }
        let actor = actor.clone();
        let locations = clerk.parts.locations.clone();
        let store = clerk.records().await?;
        blocking(move || {
            let opened = place::open(&locations, &[], &store)?;
            let seen = opened.loaded.input.servers.iter().filter(|server| actor.sees(server.owner.as_deref()));
            let servers = seen.map(ServerView::configured).collect();
            Ok(Outcome { servers, findings: opened.remarks() })
        })
        .await
    }
}

impl ServerView {
    /// A server as files have it, while no gateway runs.
    #[must_use]
    pub fn configured(input: &ServerInput) -> Self {
        let reached_by = match input.launch {
            Launch::Command { .. } => "command",
            Launch::Url(_) => "url",
            Launch::Nothing => "none",
        };
        Self {
            name: input.name.clone(),
            status: if input.enabled { "not running" } else { "disabled" }.to_owned(),
            tools: input.catalog.as_ref().map_or(0, Vec::len),
            detail: None,
            reached_by: reached_by.to_owned(),
            source: input.origin.to_string(),
            owner: input.owner.clone(),
        }
    }
}
