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
use toolwarden_core::{Caller, Operation, weak};
use toolwarden_guard::pins::Kind;

use crate::decide::reach;
use crate::forward::link;
use crate::gateway::Gateway;
use crate::pinning;
use crate::resolve::{Asked, What};
use toolwarden_refusals::Refusal;

/// Names nobody listed are asked about again after this.
const AGAIN: Duration = Duration::from_secs(2);
const MOST_PAGES: usize = 100;

/// Makes sure the judge knows the tool, if its server lists it and the caller may reach that; and that
/// what the server lists by now was compared with what was accepted (GATE-12).
pub async fn know(gateway: &Arc<Gateway>, asked: &Asked) -> Result<(), Refusal> {
    let call = &asked.query.call;
    let kind = match call.requested_operation() {
        Operation::CallTool => Kind::Tool,
        Operation::GetPrompt => Kind::Prompt,
        Operation::ReadResource | Operation::Complete => return Ok(()),
    };
    let (server, caller) = (&asked.upstream.name, &asked.arrival.caller);
    let is_call = matches!(asked.what, What::Call);
    // Nothing is asked of a server that may not be started; its calls are held.
    if !is_call || is_known(gateway, server, kind, &call.tool, caller) || !gateway.pins.may_start(server) {
        return Ok(());
    }
    reach(gateway, caller, server, &call.tool)?;
    let link = link(&asked.arrival, &asked.upstream).await?;
    // Whether there is such a tool, only its server could have said.
    know_on(gateway, &asked.upstream, caller, (kind, &call.tool), &link).await.map_err(Refusal::Upstream)
}

/// The same on a conversation that is at hand.
pub async fn know_on(
    gateway: &Arc<Gateway>,
    upstream: &Arc<Upstream>,
    caller: &Arc<Caller>,
    (kind, name): (Kind, &str),
    link: &Link,
) -> Result<(), Failure> {
    if is_known(gateway, &upstream.name, kind, name, caller) {
        return Ok(());
    }
    // Held while the server is asked: calls that come meanwhile wait for the same list.
    let mut asked = upstream.asked_for_tools.lock().await;
    let lately = asked.is_some_and(|time| time.elapsed() < AGAIN);
    let has_looked = gateway.pins.has_looked(&upstream.name, kind, caller);
    if (lately && has_looked) || is_known(gateway, &upstream.name, kind, name, caller) {
        return Ok(());
    }
    let learned = learn(gateway, upstream, caller, kind, link).await;
    if let Err(failure) = &learned {
        tracing::warn!(server = %upstream.name, "its {}s could not be listed: {failure}", kind.as_str());
    }
    *asked = Some(Instant::now());
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

/// Lists everything of a kind a server has, page by page.
pub async fn learn(
    gateway: &Arc<Gateway>,
    upstream: &Arc<Upstream>,
    caller: &Arc<Caller>,
    kind: Kind,
    link: &Link,
) -> Result<(), Failure> {
    let method = if kind == Kind::Prompt { "prompts/list" } else { "tools/list" };
    let Some((kind, key)) = pinning::kind_of(method) else { return Ok(()) };
    let mut pages = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..weak::limit(MOST_PAGES) {
        let page = match ask(upstream, link, method, cursor.as_deref()).await {
            Ok(page) => page,
            // A server without prompts says so; it simply has none.
            Err(Failure::Answered { error, .. }) if kind == Kind::Prompt && error.contains("-32601") => {
                pinning::pages(gateway, upstream, caller, (kind, key), pages, true).await?;
                return Ok(());
            }
            Err(failure) => return Err(failure),
        };
        cursor = page.value().get("nextCursor").map(|next| next.raw().to_owned());
        pages.push(page);
        if cursor.is_none() {
            pinning::pages(gateway, upstream, caller, (kind, key), pages, true).await?;
            return Ok(());
        }
    }
    Err(Failure::Protocol("its list of tools has no end".to_owned()))
}
