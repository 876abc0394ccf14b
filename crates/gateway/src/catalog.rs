//! Learning a server's tools before the first call: at an MCP door only listed tools exist (CORE-6).
//!
//! The gateway asks on its own account, on the caller's own conversation, and only when a call names a
//! tool nobody listed yet.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolwarden_conversations::Failure;
use toolwarden_conversations::ask::ask;
use toolwarden_conversations::upstreams::{Link, Upstream};
use toolwarden_core::{Operation, weak};

use crate::decide::reach;
use crate::forward::link;
use crate::gateway::Gateway;
use crate::refusal::Refusal;
use crate::resolve::{Asked, What};
use toolwarden_guard::live;

/// Names nobody listed are asked about again after this.
const AGAIN: Duration = Duration::from_secs(2);
const MOST_PAGES: usize = 100;

/// Makes sure the judge knows the tool, if its server lists it and the caller may reach that.
pub(crate) async fn know(gateway: &Arc<Gateway>, asked: &Asked) -> Result<(), Refusal> {
    let call = &asked.query.call;
    if !matches!(asked.what, What::Call) || call.requested_operation() != Operation::CallTool {
        return Ok(());
    }
    let server = &asked.upstream.name;
    if is_known(gateway, server, &call.tool) {
        return Ok(());
    }
    reach(gateway, &asked.arrival.caller, server, &call.tool)?;
    let link = link(&asked.arrival, &asked.upstream).await?;
    // Whether there is such a tool, only its server could have said.
    know_tool(gateway, &asked.upstream, &call.tool, &link).await.map_err(Refusal::Upstream)
}

/// The same on a conversation that is at hand.
pub(crate) async fn know_tool(
    gateway: &Arc<Gateway>,
    upstream: &Arc<Upstream>,
    tool: &str,
    link: &Link,
) -> Result<(), Failure> {
    if is_known(gateway, &upstream.name, tool) {
        return Ok(());
    }
    // Held while the server is asked: calls that come meanwhile wait for the same list.
    let mut asked = upstream.asked_for_tools.lock().await;
    let lately = asked.is_some_and(|time| time.elapsed() < AGAIN);
    if lately || is_known(gateway, &upstream.name, tool) {
        return Ok(());
    }
    let learned = learn(gateway, upstream, link).await;
    if let Err(failure) = &learned {
        tracing::warn!(server = %upstream.name, "its tools could not be listed: {failure}");
    }
    *asked = Some(Instant::now());
    learned
}

fn is_known(gateway: &Gateway, server: &str, tool: &str) -> bool {
    let policy = gateway.live.policy();
    let known = policy.servers().get(server).and_then(|server| server.tool(tool));
    known.is_some_and(|tool| tool.definition.is_some())
}

/// Lists all tools of a server, page by page.
pub(crate) async fn learn(gateway: &Arc<Gateway>, upstream: &Arc<Upstream>, link: &Link) -> Result<(), Failure> {
    let mut cursor: Option<String> = None;
    for _ in 0..weak::limit(MOST_PAGES) {
        let page = ask(upstream, link, "tools/list", cursor.as_deref()).await?;
        if let Some(tools) = page.value().get("tools") {
            gateway.live.learn(&upstream.name, &live::definitions(tools));
        }
        cursor = page.value().get("nextCursor").map(|next| next.raw().to_owned());
        if cursor.is_none() {
            return Ok(());
        }
    }
    Err(Failure::Protocol("its list of tools has no end".to_owned()))
}
