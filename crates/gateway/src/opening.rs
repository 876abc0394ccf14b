//! Opening a conversation through the transparent door: `initialize`, and what comes of it.
//!
//! The server hears of the client's capabilities only what it may ask for. A client that leaves
//! nothing to ask shares its principal's child; any other gets a child of its own.

use std::sync::Arc;

use http::StatusCode;
use tokio::time::timeout;
use toolwarden_conversations::Failure;
use toolwarden_conversations::greeting::{Hello, belongs, greet};
use toolwarden_conversations::sessions::{Agreed, ClientSession, Push, principal};
use toolwarden_conversations::upstreams::Opened;
use toolwarden_conversations::whole;
use toolwarden_core::Outbound;
use toolwarden_core::json::Part;
use toolwarden_mcp::compose::{self, push_spliced};
use toolwarden_mcp::{Era, Version};

use toolwarden_refusals::Refusal;
use toolwarden_steps::answer::{Answer, Reply};
use toolwarden_steps::arrival::Arrival;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::pinning;
use toolwarden_steps::resolve::Asked;

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
    let opening = greet(&asked.upstream, Hello { outbound: hello, id, capabilities: &cut, principal: &who });
    let greeted = timeout(asked.upstream.bounds().silence, opening).await.map_err(|_| Failure::Timeout);
    let (link, opened) = greeted.and_then(|greeted| greeted).map_err(|failure| {
        asked.upstream.fails(&failure);
        Refusal::Upstream(failure)
    })?;
    whole::check_words(Ok(opened.result.value())).map_err(Refusal::Upstream)?;
    asked.upstream.works();
    let said = pinning::opening(gateway, &asked.upstream, caller, opened.result.clone()).await;
    let said = said.map_err(Refusal::Upstream)?;
    let session = session(gateway, &asked.arrival)?;
    let version = shown_version(hello.params(), &opened);
    let client = hello.params().and_then(|params| params.member("clientInfo"));
    session.agree(Agreed { version, capabilities, client });
    belongs(&link, &asked.upstream, &cut, &session);
    session.keep_link(&asked.upstream, link);
    let body = compose::result(id, &with_version(&said, version));
    Ok(Answer::Message(Reply { status: StatusCode::OK, body, session: Some(session.id.clone()) }))
}

/// The session a stdio door already has, or a new one of an HTTP client.
pub(crate) fn session(gateway: &Gateway, arrival: &Arrival) -> Result<Arc<ClientSession>, Refusal> {
    if let Some(session) = &arrival.session {
        return Ok(session.clone());
    }
    gateway.open_session(&arrival.caller, &arrival.scope, Push::kept())
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
