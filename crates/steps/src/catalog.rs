//! Learning a server's tools before the first call: at an MCP door only listed tools exist (CORE-6).
//!
//! The gateway asks on its own account, on the caller's own conversation, and only when a call names a
//! tool nobody listed yet.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use toolwarden_conversations::Failure;
use toolwarden_conversations::ask::ask;
use toolwarden_conversations::listing::{LONGEST, LastListing, MOST_PAGES, Pages};
use toolwarden_conversations::upstreams::{Link, Upstream};
use toolwarden_core::{Caller, Operation, weak};
use toolwarden_pins::Kind;

use crate::arrival::Arrival;
use crate::decide::reach;
use crate::forward::link;
use crate::gateway::Gateway;
use crate::pinning::{self, Given, PROMPTS, PinnedList, TOOLS};
use crate::resolve::{Asked, What};
use toolwarden_refusals::Refusal;

/// Names nobody listed are asked about again after this.
const AGAIN: Duration = Duration::from_secs(2);

/// Makes sure the judge knows the tool, if its server lists it and the caller may reach that; and that
/// what the server lists by now was compared with what was accepted (GATE-12).
pub async fn know(gateway: &Arc<Gateway>, asked: &Asked) -> Result<(), Refusal> {
    let call = &asked.query.call;
    let list = match call.requested_operation() {
        Operation::CallTool => TOOLS,
        Operation::GetPrompt => PROMPTS,
        Operation::ReadResource | Operation::Complete => return Ok(()),
    };
    if !matches!(asked.what, What::Call) {
        return Ok(());
    }
    know_for(gateway, &asked.arrival, &asked.upstream, (list, &call.tool)).await
}

/// The same for a tool that is spoken of without being called.
pub async fn know_tool(
    gateway: &Arc<Gateway>,
    arrival: &Arrival,
    upstream: &Arc<Upstream>,
    tool: &str,
) -> Result<(), Refusal> {
    know_for(gateway, arrival, upstream, (TOOLS, tool)).await
}

async fn know_for(
    gateway: &Arc<Gateway>,
    arrival: &Arrival,
    upstream: &Arc<Upstream>,
    (list, name): (PinnedList, &str),
) -> Result<(), Refusal> {
    let (server, caller) = (&upstream.name, &arrival.caller);
    // Nothing is asked of a server that may not be started; its calls are held.
    if is_known(gateway, server, list.kind, name, caller) || !gateway.pins.may_start(server) {
        return Ok(());
    }
    reach(gateway, caller, server, name)?;
    let link = link(arrival, upstream).await?;
    // Whether there is such a tool, only its server could have said.
    know_on(gateway, upstream, caller, (list, name), &link).await.map_err(Refusal::Upstream)
}

/// The same on a conversation that is at hand.
pub async fn know_on(
    gateway: &Arc<Gateway>,
    upstream: &Arc<Upstream>,
    caller: &Arc<Caller>,
    (list, name): (PinnedList, &str),
    link: &Link,
) -> Result<(), Failure> {
    if is_known(gateway, &upstream.name, list.kind, name, caller) {
        return Ok(());
    }
    let began = Instant::now();
    // Held while the server is asked: calls that come meanwhile wait for the same list, or share its failure.
    let mut last = upstream.listing.lock().await;
    let lately = last.as_ref().is_some_and(|last| last.ended.elapsed() < AGAIN);
    let has_looked = gateway.pins.has_looked(&upstream.name, list.kind, caller);
    if (lately && has_looked) || is_known(gateway, &upstream.name, list.kind, name, caller) {
        return Ok(());
    }
    if let Some(failure) = last.as_ref().and_then(|last| last.shared(list.method, caller, began)) {
        return Err(failure);
    }
    let learned = learn(gateway, upstream, caller, list, link).await;
    if let Err(failure) = &learned {
        tracing::warn!(server = %upstream.name, "its {} could not be listed: {failure}", list.key);
        upstream.fails(failure);
    }
    *last = Some(LastListing::new(list.method, caller, &learned));
    learned
}

/// Whether nothing is to be asked: the caller looked since the server may have changed, and the judge
/// knows the tool.
fn is_known(gateway: &Gateway, server: &str, kind: Kind, name: &str, caller: &Caller) -> bool {
    if !gateway.pins.has_looked(server, kind, caller) {
        return false;
    }
    let policy = gateway.live.policy();
    let known = || policy.servers().get(server).and_then(|server| server.tool(name));
    kind != Kind::Tool || known().is_some_and(|tool| tool.definition.is_some())
}

/// Takes in a whole list of a server, page by page.
pub async fn learn(
    gateway: &Arc<Gateway>,
    upstream: &Arc<Upstream>,
    caller: &Arc<Caller>,
    list: PinnedList,
    link: &Link,
) -> Result<(), Failure> {
    let after = gateway.pins.changes_heard(&upstream.name);
    let time = upstream.bounds().silence.min(LONGEST);
    let pages = timeout(time, whole(upstream, list, link)).await.map_err(|_| Failure::Timeout)??;
    let given = Given { pages: pages.into_parts(), is_whole: true, after };
    pinning::pages(gateway, upstream, caller, list, given).await.map(drop)
}

async fn whole(upstream: &Arc<Upstream>, list: PinnedList, link: &Link) -> Result<Pages, Failure> {
    let mut pages = Pages::default();
    let mut cursor: Option<String> = None;
    for _ in 0..weak::limit(MOST_PAGES) {
        let page = match ask(upstream, link, list.method, cursor.as_deref()).await {
            Ok(page) => page,
            // A server without prompts says so; it simply has none.
            Err(failure) if list == PROMPTS && failure.is_unknown_method() => return Ok(pages),
            Err(failure) => return Err(failure),
        };
        cursor = pages.add(page)?;
        if cursor.is_none() {
            return Ok(pages);
        }
    }
    Err(Failure::Protocol(format!("its list of {} has no end", list.key)))
}
