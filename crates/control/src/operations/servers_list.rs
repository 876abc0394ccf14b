//! The upstream servers and how each is doing. What is one user's own is not there for others (GATE-8).

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use toolwarden_policy::input::{Launch, ServerInput};
use toolwarden_store::index::Told;

use super::Nothing;
use crate::clerk::blocking;
use crate::place;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Remark, Role, ServerView};

/// A gateway that was not heard for so long has ended without saying so.
const LATELY: SignedDuration = SignedDuration::from_secs(90);

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
    const NEEDS: Needs = Needs::IndexAndPolicy;
    const FOR: Role = Role::Viewer;
    type Request = Nothing;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, _request: Nothing) -> Result<Outcome, ControlError> {
        let (mut elsewhere, unknown) = elsewhere(clerk).await;
        elsewhere.retain(|server| actor.sees(server.owner.as_deref()));
        let mut found = here(clerk, actor).await?;
        found.servers.extend(elsewhere);
        found.findings.extend(unknown);
        Ok(found)
    }
}

/// The servers of this gateway; where none runs, those of files and store.
pub(super) async fn here(clerk: &Clerk, actor: &Actor) -> Result<Outcome, ControlError> {
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

/// What other gateways on the same store said of their servers lately. Not being able to read that keeps nobody from
/// their own.
async fn elsewhere(clerk: &Clerk) -> (Vec<ServerView>, Option<Remark>) {
    let Some(index) = &clerk.parts.index else { return (Vec::new(), None) };
    let node = clerk.parts.journal.as_ref().map(|journal| journal.node().clone());
    let since = clerk.parts.clock.now().saturating_sub(LATELY).unwrap_or(Timestamp::MIN);
    match index.servers_elsewhere(node.as_deref(), since).await {
        Ok(told) => (told.into_iter().map(view).collect(), None),
        Err(error) => {
            let message = format!("what other gateways say of their servers cannot be read: {error}");
            (Vec::new(), Some(Remark::warning("unreadable", "store", message)))
        }
    }
}

fn view(Told { node, server, .. }: Told) -> ServerView {
    ServerView {
        name: server.name,
        status: server.status,
        tools: server.tools as usize,
        detail: server.detail,
        reached_by: "none".to_owned(),
        source: format!("gateway {node}"),
        owner: server.owner,
        tools_refused: None,
        gateway: Some(node),
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
            tools_refused: None,
            gateway: None,
        }
    }
}
