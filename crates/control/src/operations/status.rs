//! Who answers here: version, process and address of the server behind a control socket.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Nothing;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, RefusedPolicy, Role};

/// The operation.
#[derive(Debug)]
pub struct Status;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub version: String,
    pub process: u32,
    /// Where it listens for clients; none where no gateway runs.
    pub address: Option<std::net::SocketAddr>,
    /// Why the policy that was read last is not in force; none where it is.
    #[serde(default)]
    pub refused_policy: Option<RefusedPolicy>,
    /// What is written otherwise than at the start, and acts after a restart only.
    #[serde(default)]
    pub waits_for_restart: Vec<String>,
    /// The config and the workspace it judges by, for administrators; none where there is none.
    #[serde(default)]
    pub config: Option<PathBuf>,
    #[serde(default)]
    pub workspace: Option<PathBuf>,
    /// Whether anybody would hear of a held call; none where no gateway runs.
    #[serde(default)]
    pub is_attended: Option<bool>,
}

impl Operation for Status {
    const PATH: &'static str = "/api/v1/status";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Files;
    const FOR: Role = Role::Viewer;
    type Request = Nothing;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, _request: Nothing) -> Result<Outcome, ControlError> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let servers = clerk.parts.servers.as_ref();
        let locations = Some(&clerk.parts.locations).filter(|_| actor.is_admin());
        Ok(Outcome {
            version,
            config: locations.and_then(|locations| locations.config_file()),
            workspace: locations.and_then(|locations| locations.workspace_root()),
            process: std::process::id(),
            address: clerk.parts.address,
            refused_policy: servers.and_then(|servers| servers.refused_policy()).map(|refused| RefusedPolicy {
                // It names files, and servers that are not everybody's.
                error: if actor.is_admin() { refused.error } else { "an admin can see why".to_owned() },
                ..refused
            }),
            is_attended: clerk.parts.feed.as_ref().map(|feed| feed.is_attended(clerk.parts.clock.now())),
            waits_for_restart: servers.map(|servers| servers.waits_for_restart()).unwrap_or_default(),
        })
    }
}
