//! Tells the store how this gateway's servers are: for the other gateways on it, and for commands.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;
use toolwarden_control::{ServerView, Servers};
use toolwarden_core::Clock;
use toolwarden_gateway::Gateway;
use toolwarden_store::Index;
use toolwarden_store::index::ServerStatus;

use super::control::GatewayServers;
use crate::environment::SystemClock;

/// How often it is looked whether something changed.
const LOOK: Duration = Duration::from_secs(1);
/// And how often it is said that nothing did: whoever is silent for thrice as long has ended.
const STILL_HERE: Duration = Duration::from_secs(30);

/// Tells it until the gateway is gone.
pub(super) async fn tell(gateway: Weak<Gateway>, index: Index, node: Arc<str>) {
    let mut known: Option<(Vec<ServerStatus>, Instant)> = None;
    let mut is_heard = true;
    loop {
        let servers = GatewayServers { gateway: gateway.clone() };
        if gateway.strong_count() == 0 {
            return;
        }
        let now: Vec<ServerStatus> = servers.list().into_iter().map(status).collect();
        let is_known = known.as_ref().is_some_and(|(last, told)| *last == now && told.elapsed() < STILL_HERE);
        if !is_known {
            match index.tell_servers(&node, &now, SystemClock.now()).await {
                Ok(()) => (known, is_heard) = (Some((now, Instant::now())), true),
                Err(error) if is_heard => {
                    is_heard = false;
                    tracing::warn!("other gateways are not told how the servers are: {error}");
                }
                Err(_) => {}
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Takes back what was told, because the gateway ends.
pub(super) async fn take_back(index: &Index, node: &str) {
    // It is forgotten after a while anyway.
    let _ = index.tell_servers(node, &[], SystemClock.now()).await;
}

fn status(view: ServerView) -> ServerStatus {
    let ServerView { name, owner, status, tools, detail, .. } = view;
    ServerStatus { name, owner, status, tools: u32::try_from(tools).unwrap_or(u32::MAX), detail }
}
