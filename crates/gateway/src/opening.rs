//! Opening a conversation through the transparent door: `initialize`, and what comes of it.
//!
//! The server hears of the client's capabilities only what it may ask for. A client that leaves
//! nothing to ask shares its principal's child; any other gets a child of its own.

use std::sync::Arc;

use http::{HeaderValue, StatusCode};
use tokio::time::timeout;
use toolwarden_core::Outbound;
use toolwarden_core::json::{Document, Limits, Part};
use toolwarden_mcp::compose::{self, push_spliced};
use toolwarden_mcp::eras::initialize_result;
use toolwarden_mcp::upstream::http::HttpUpstream;
use toolwarden_mcp::{Edit, Era, Id, Version, headers};

use crate::answer::{Answer, Reply};
use crate::arrival::Arrival;
use crate::catalog::ask;
use crate::forward::Reply as Raw;
use crate::gateway::Gateway;
use crate::inspect::result_of;
use crate::refusal::{Failure, Refusal};
use crate::resolve::Asked;
use crate::sessions::{Agreed, ClientSession, Push, SessionError, principal};
use crate::upstreams::{HttpLink, Link, Opened, Reach, Upstream, agreed_version};

/// Opens a legacy conversation with one server.
pub(crate) async fn open(gateway: &Arc<Gateway>, asked: &Asked, hello: &Outbound) -> Result<Answer, Refusal> {
    let Some(id) = &asked.id else { return Ok(Answer::Accepted) };
    if asked.arrival.session.as_ref().is_some_and(|session| session.agreed().is_some()) {
        return Err(Refusal::Order("this conversation is already open"));
    }
    let capabilities = hello.params().and_then(|params| params.member("capabilities"));
    let caller = &asked.arrival.caller;
    let cut = capabilities.as_ref().map_or("{}".to_owned(), |part| asked.upstream.may_ask.cut(caller, part.value()));
    let who = principal(&asked.arrival.caller);
    let opening = greet(&asked.upstream, hello, id, &cut, &who);
    let greeted = timeout(asked.upstream.call_time, opening).await.map_err(|_| Failure::Timeout);
    let (link, opened) = greeted.and_then(|greeted| greeted).map_err(|failure| {
        asked.upstream.fails(&failure);
        Refusal::Upstream(failure)
    })?;
    asked.upstream.works();
    let session = session(gateway, &asked.arrival)?;
    let version = shown_version(hello.params(), &opened);
    let client = hello.params().and_then(|params| params.member("clientInfo"));
    session.agree(Agreed { version, capabilities, client });
    belongs(&link, &asked.upstream, &cut, &session);
    session.keep_link(asked.upstream.name.clone(), link);
    let body = compose::result(id, &with_version(&opened.result, version));
    Ok(Answer::Message(Reply { status: StatusCode::OK, body, session: Some(session.id.clone()) }))
}

/// Whose a conversation is: a legacy child's news and questions are its session's, or everybody's.
pub(crate) fn belongs(link: &Link, upstream: &Upstream, cut: &str, session: &Arc<ClientSession>) {
    match link {
        Link::Stdio(child) if child.era() == Era::Modern => {}
        Link::Stdio(child) if upstream.wants_own_child(cut) => child.belongs_to(session),
        Link::Stdio(child) => child.heard_by(session),
        Link::Http(_) => {}
    }
}

/// Opens a conversation for a legacy client: in its own era where the server has it, else across.
pub(crate) async fn greet(
    upstream: &Arc<Upstream>,
    hello: &Outbound,
    id: &Id,
    cut: &str,
    who: &str,
) -> Result<(Link, Opened), Failure> {
    if upstream.known_legacy() == Some(false) {
        match greet_modern(upstream, hello).await {
            // It may have been replaced: whatever was known of it is asked again.
            Err(Failure::OtherEra(_) | Failure::Answered { .. } | Failure::Wordless { .. }) => upstream.doubt(),
            greeted => return greeted,
        }
    }
    let refused = match greet_legacy(upstream, hello, id, cut, who).await {
        Ok(greeted) => {
            upstream.found_legacy(true);
            return Ok(greeted);
        }
        Err(failure) => failure,
    };
    if upstream.turns_out_by_events(&refused).await {
        return greet_legacy(upstream, hello, id, cut, who).await;
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
    greet_modern(upstream, hello).await
}

/// Whether the refusal of `initialize` is one a modern server gives.
fn is_of_modern_server(error: &str) -> bool {
    let Ok(error) = Document::parse(error, Limits::DEFAULT) else { return false };
    matches!(error.root().get("code").map(|code| code.raw()), Some("-32022" | "-32020" | "-32602"))
}

/// What a modern server says of itself, in the words of `initialize`.
async fn greet_modern(upstream: &Arc<Upstream>, hello: &Outbound) -> Result<(Link, Opened), Failure> {
    let link = upstream.modern().await?;
    let said = ask(upstream, &link, "server/discover", None).await?;
    let asked = hello.params().and_then(|params| params.value().get("protocolVersion")).and_then(|text| text.as_str());
    let asked = asked.and_then(|text| Version::parse(&text)).filter(|version| version.era() == Era::Legacy);
    let version = asked.unwrap_or(Version::LATEST_LEGACY);
    let text = initialize_result(said.value(), version, &upstream.name);
    Ok((link, Opened { result: Part::composed(text)?, version }))
}

pub(crate) async fn greet_legacy(
    upstream: &Arc<Upstream>,
    hello: &Outbound,
    id: &Id,
    cut: &str,
    who: &str,
) -> Result<(Link, Opened), Failure> {
    let edits = [Edit::OpeningCapabilities(cut)];
    match &upstream.reach {
        Reach::Http(http) if !upstream.is_by_events() => {
            let (link, opened) = greet_over_http(upstream, http, hello, id, &edits).await?;
            Ok((Link::Http(link), opened))
        }
        Reach::Http(_) | Reach::Command(_) if upstream.wants_own_child(cut) => {
            let child = upstream.legacy_own().await?;
            let opening = timeout(upstream.open_time, child.open(hello, id, &edits));
            let opened = opening.await.unwrap_or(Err(Failure::Timeout))?;
            Ok((Link::Stdio(child), opened))
        }
        Reach::Http(_) | Reach::Command(_) => {
            let child = upstream.legacy_shared(who).await?;
            let opened = child.opened().cloned().ok_or(Failure::Died)?;
            Ok((Link::Stdio(child), opened))
        }
        Reach::Nothing(why) => Err(Failure::Unreachable(why.clone())),
    }
}

pub(crate) async fn greet_over_http(
    upstream: &Arc<Upstream>,
    http: &HttpUpstream,
    hello: &Outbound,
    id: &Id,
    edits: &[Edit<'_>],
) -> Result<(Arc<HttpLink>, Opened), Failure> {
    let link = HttpLink::opening(http.clone());
    let reply = link.request(hello, id, edits, None, upstream.call_time).await?;
    if reply.status.as_u16() == 401 || reply.status.as_u16() == 403 {
        return Err(Failure::NeedsAuth);
    }
    let given: Option<HeaderValue> = reply.headers.get(headers::SESSION).cloned();
    let result = result_of(upstream, Raw::Http(reply), id).await?;
    let version = agreed_version(&result)?;
    Ok((Arc::new(link.opened(given, version)), Opened { result, version }))
}

/// The session a stdio door already has, or a new one of an HTTP client.
pub(crate) fn session(gateway: &Gateway, arrival: &Arrival) -> Result<Arc<ClientSession>, Refusal> {
    if let Some(session) = &arrival.session {
        return Ok(session.clone());
    }
    let opened = gateway.sessions.open(
        &*gateway.keyring,
        arrival.caller.clone(),
        arrival.scope.clone(),
        gateway.settings.most_sessions,
        Push::kept(),
    );
    opened.map_err(|error| {
        tracing::warn!("no session was opened: {error}");
        match error {
            SessionError::TooMany => Refusal::TooManySessions,
            SessionError::Key(_) => Refusal::NoRecord,
        }
    })
}

/// A child greeted for many speaks the newest revision; an older client is answered in its own.
fn shown_version(params: Option<&Part>, opened: &Opened) -> Version {
    let asked = params.and_then(|params| params.value().get("protocolVersion")).and_then(|text| text.as_str());
    let asked = asked.and_then(|text| Version::parse(&text)).filter(|version| version.era() == Era::Legacy);
    asked.filter(|version| *version < opened.version).unwrap_or(opened.version)
}

fn with_version(result: &Part, version: Version) -> String {
    let quoted = format!("\"{version}\"");
    let mut text = String::with_capacity(result.raw().len());
    match result.value().get("protocolVersion") {
        Some(place) => push_spliced(&mut text, result.raw(), &[(result.span_of(place), &quoted)]),
        None => text.push_str(result.raw()),
    }
    text
}
