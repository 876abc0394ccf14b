//! Opening a conversation with a server, in its own era or across: `initialize`, and what comes of it.

use std::sync::Arc;

use http::HeaderValue;
use tokio::time::timeout;
use toolwarden_core::Outbound;
use toolwarden_core::json::{Document, Limits, Part};
use toolwarden_mcp::eras::initialize_result;
use toolwarden_mcp::upstream::http::HttpUpstream;
use toolwarden_mcp::{Edit, Era, Id, Version, headers};

use crate::ask::ask;
use crate::failure::Failure;
use crate::sessions::ClientSession;
use crate::upstreams::{HttpLink, Link, Opened, Reach, Upstream, agreed_version};
use crate::whole::{Reply, result_of};

/// Whose a conversation is: a legacy child's news and questions are its session's, or everybody's.
pub fn belongs(link: &Link, upstream: &Upstream, cut: &str, session: &Arc<ClientSession>) {
    match link {
        Link::Stdio(child) if child.era() == Era::Modern => {}
        Link::Stdio(child) if upstream.wants_own_child(cut) => child.belongs_to(session),
        Link::Stdio(child) => child.heard_by(session),
        Link::Http(_) => {}
    }
}

/// How a legacy client introduces itself.
#[derive(Debug, Clone, Copy)]
pub struct Hello<'a> {
    pub outbound: &'a Outbound,
    pub id: &'a Id,
    /// What of its capabilities the server may hear of, raw.
    pub capabilities: &'a str,
    /// The principal it belongs to.
    pub principal: &'a str,
}

/// Opens a conversation for a legacy client: in its own era where the server has it, else across.
pub async fn greet(upstream: &Arc<Upstream>, hello: Hello<'_>) -> Result<(Link, Opened), Failure> {
    match greet_as_known(upstream, hello).await {
        // It was replaced by one of another transport, and nothing is known of it any more.
        Err(Failure::Forgotten) => greet_as_known(upstream, hello).await,
        greeted => greeted,
    }
}

async fn greet_as_known(upstream: &Arc<Upstream>, hello: Hello<'_>) -> Result<(Link, Opened), Failure> {
    if upstream.known_legacy() == Some(false) {
        match greet_modern(upstream, hello.outbound, hello.principal).await {
            // It may have been replaced: whatever was known of it is asked again.
            Err(Failure::OtherEra(_) | Failure::Answered { .. } | Failure::Wordless { .. }) => upstream.doubt(),
            greeted => return greeted,
        }
    }
    let was_by_events = upstream.is_by_events();
    let refused = match greet_legacy(upstream, hello).await {
        Ok(greeted) => {
            upstream.found_legacy(true);
            return Ok(greeted);
        }
        Err(failure) => failure,
    };
    if !was_by_events && upstream.turns_out_by_events(&refused).await {
        return greet_legacy(upstream, hello).await;
    }
    let may_be_modern = matches!(refused, Failure::Answered { .. } | Failure::Wordless { .. });
    if matches!(&refused, Failure::Answered { error, .. } if is_of_modern_server(error)) {
        // Evidence against an earlier verdict, which may have been a slow start.
        upstream.doubt_modern();
    }
    if !may_be_modern || !upstream.speaks_modern().await.unwrap_or(false) {
        return Err(refused);
    }
    upstream.found_legacy(false);
    greet_modern(upstream, hello.outbound, hello.principal).await
}

/// Whether the refusal of `initialize` is one a modern server gives.
fn is_of_modern_server(error: &str) -> bool {
    let Ok(error) = Document::parse(error, Limits::DEFAULT) else { return false };
    matches!(error.root().get("code").map(|code| code.raw()), Some("-32022" | "-32020" | "-32602"))
}

/// What a modern server says of itself, in the words of `initialize`.
async fn greet_modern(upstream: &Arc<Upstream>, hello: &Outbound, principal: &str) -> Result<(Link, Opened), Failure> {
    let link = upstream.modern(principal).await?;
    let said = ask(upstream, &link, "server/discover", None).await?;
    let asked = hello.params().and_then(|params| params.value().get("protocolVersion")).and_then(|text| text.as_str());
    let asked = asked.and_then(|text| Version::parse(&text)).filter(|version| version.era() == Era::Legacy);
    let version = asked.unwrap_or(Version::LATEST_LEGACY);
    let text = initialize_result(said.value(), version, &upstream.name);
    Ok((link, Opened { result: Part::composed(text)?, version }))
}

async fn greet_legacy(upstream: &Arc<Upstream>, hello: Hello<'_>) -> Result<(Link, Opened), Failure> {
    let edits = [Edit::OpeningCapabilities(hello.capabilities)];
    match upstream.reach() {
        Reach::Http(http) if !upstream.is_by_events() => {
            let (link, opened) = greet_over_http(upstream, http, hello.outbound, hello.id, &edits).await?;
            Ok((Link::Http(link), opened))
        }
        Reach::Http(_) | Reach::Command(_) if upstream.wants_own_child(hello.capabilities) => {
            let child = upstream.legacy_own().await?;
            let opening = timeout(upstream.open_time, child.open(hello.outbound, hello.id, &edits));
            let opened = opening.await.unwrap_or(Err(Failure::Timeout))?;
            Ok((Link::Stdio(child), opened))
        }
        Reach::Http(_) | Reach::Command(_) => {
            let child = upstream.legacy_shared(hello.principal).await?;
            let opened = child.opened().cloned().ok_or(Failure::Died)?;
            Ok((Link::Stdio(child), opened))
        }
        Reach::Nothing(why) => Err(Failure::Unreachable(why.clone())),
    }
}

pub async fn greet_over_http(
    upstream: &Arc<Upstream>,
    http: &HttpUpstream,
    hello: &Outbound,
    id: &Id,
    edits: &[Edit<'_>],
) -> Result<(Arc<HttpLink>, Opened), Failure> {
    let link = HttpLink::opening(upstream, http);
    let reply = link.request(hello, id, edits, None, upstream.bounds().silence).await?;
    if reply.status.as_u16() == 401 || reply.status.as_u16() == 403 {
        return Err(Failure::NeedsAuth);
    }
    let given: Option<HeaderValue> = reply.headers.get(headers::SESSION).cloned();
    let result = result_of(upstream, Reply::Http(reply), id).await?;
    let version = agreed_version(&result)?;
    Ok((Arc::new(link.opened(given, version)), Opened { result, version }))
}
