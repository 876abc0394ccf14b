//! Opening the common door: every server the caller may reach is greeted at the same time, and what
//! they offer is shown as one. A server that does not answer in time is left out and named.

use std::sync::Arc;

use futures_util::future::join_all;
use http::StatusCode;
use serde_json::{Map, Value as Json, json};
use tokio::time::timeout;
use toolwarden_conversations::ask::ask;
use toolwarden_conversations::greeting::{Hello, belongs, greet};
use toolwarden_conversations::sessions::{Agreed, ClientSession, principal};
use toolwarden_conversations::upstreams::{Link, Upstream};
use toolwarden_conversations::{Failure, Scope};
use toolwarden_core::json::{Document, Limits, Part};
use toolwarden_core::{Call, Operation};
use toolwarden_mcp::{Edit, Era, Id, Version, compose};
use toolwarden_policy::{Message as Admitted, admit, housekeeping};

use super::reachable;
use crate::opening::session as client_session;
use toolwarden_refusals::Refusal;
use toolwarden_steps::answer::{Answer, Reply};
use toolwarden_steps::arrival::Arrival;
use toolwarden_steps::following::with_tasks;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::pinning;
use toolwarden_steps::resolve::query;
use toolwarden_steps::visible::{NO_TOOLS, has_nothing};

/// Most text of merged instructions.
const MOST_INSTRUCTIONS: usize = 16 * 1024;

/// `initialize` and `server/discover`.
pub(super) async fn open(
    gateway: &Arc<Gateway>,
    arrival: &Arrival,
    id: &Id,
    params: Option<&Part>,
) -> Result<Answer, Refusal> {
    if arrival.version.era() == Era::Modern {
        let offers = gather(gateway, arrival, None).await;
        let discovered = discovered(&offers, has_nothing(gateway, &arrival.caller, &Scope::All)).to_string();
        let body = compose::result(id, &with_tasks(gateway, &discovered).unwrap_or(discovered));
        return Ok(Answer::message(body));
    }
    if arrival.session.as_ref().is_some_and(|session| session.agreed().is_some()) {
        return Err(Refusal::Order("this conversation is already open"));
    }
    let session = client_session(gateway, arrival)?;
    let asked = params.and_then(|params| params.value().get("protocolVersion")).and_then(|text| text.as_str());
    let version = asked.and_then(|text| Version::parse(&text)).filter(|version| version.era() == Era::Legacy);
    let version = version.unwrap_or(Version::LATEST_LEGACY);
    let capabilities = params.and_then(|params| params.member("capabilities"));
    let client = params.and_then(|params| params.member("clientInfo"));
    session.agree(Agreed { version, capabilities, client });
    let offers = gather(gateway, arrival, Some(&session)).await;
    let nothing = has_nothing(gateway, &session.caller(), &Scope::All);
    let body = compose::result(id, &initialized(&offers, version, nothing).to_string());
    Ok(Answer::Message(Reply { status: StatusCode::OK, body, session: Some(session.id.clone()) }))
}

/// What one server said, or why it said nothing.
struct Offer {
    server: Arc<str>,
    said: Result<Part, Failure>,
}

async fn gather(gateway: &Arc<Gateway>, arrival: &Arrival, session: Option<&Arc<ClientSession>>) -> Vec<Offer> {
    let greetings = reachable(gateway, arrival).into_iter().map(|upstream| async move {
        let greeting = async {
            match session {
                Some(session) => conversation(gateway, session, &upstream).await.map(|(_, said)| said),
                None => discover(arrival, &upstream).await,
            }
        };
        let greeting = async { pinning::opening(gateway, &upstream, &arrival.caller, greeting.await?).await };
        let said = timeout(gateway.settings.gather_time, greeting).await.unwrap_or(Err(Failure::Timeout));
        if let Err(failure) = &said {
            upstream.fails(failure);
            tracing::warn!(server = %upstream.name, "left out: {failure}");
        }
        Offer { server: upstream.name.clone(), said }
    });
    join_all(greetings).await
}

/// What a server says of itself; both eras have the same words for what counts here.
async fn discover(arrival: &Arrival, upstream: &Arc<Upstream>) -> Result<Part, Failure> {
    match upstream.modern(&principal(&arrival.caller)).await {
        Ok(link) => ask(upstream, &link, "server/discover", None).await,
        Err(Failure::OtherEra(_)) => Ok(toolwarden_steps::forward::older(arrival, upstream).await?.said().clone()),
        Err(failure) => Err(failure),
    }
}

/// The session's conversation with one server, opened if it is not: what it said then comes along.
pub(crate) async fn conversation(
    gateway: &Arc<Gateway>,
    session: &Arc<ClientSession>,
    upstream: &Arc<Upstream>,
) -> Result<(Link, Part), Failure> {
    let agreed = session.agreed();
    let version = agreed.map_or(Version::LATEST_LEGACY, |agreed| agreed.version);
    let declared = agreed.and_then(|agreed| agreed.capabilities.as_ref());
    let cut = declared.map_or("{}".to_owned(), |part| upstream.may_ask.cut(&session.caller(), part.value()));
    let params = format!(
        r#"{{"protocolVersion":"{version}","capabilities":{cut},"clientInfo":{{"name":"toolwarden","version":"{}"}}}}"#,
        env!("CARGO_PKG_VERSION")
    );
    let params = Document::parse(params, Limits::DEFAULT).map_err(|error| Failure::Protocol(error.to_string()))?;
    let call = Call::asked(upstream.name.clone(), Operation::ReadResource, Some(Part::whole(Arc::new(params))));
    let asked = query(gateway, &session.caller(), call);
    let hello = admit(&gateway.live.policy(), &asked, Admitted::Listed { method: "initialize".to_owned() });
    let hello = hello.map_err(|why| Failure::Unreachable(why.reason.sentence().to_owned()))?;
    let who = principal(&session.caller());
    let hello = Hello { outbound: &hello, id: &Id::number(0), capabilities: &cut, principal: &who };
    let (link, opened) = greet(upstream, hello).await?;
    belongs(&link, upstream, &cut, session);
    if link.era() == Era::Modern {
        crate::bridge::listen_for(gateway, session, upstream);
    } else if let Ok(ready) = housekeeping(upstream.name.clone(), "notifications/initialized", None) {
        match &link {
            Link::Http(http) => {
                drop(http.notify(&ready).await?);
                toolwarden_steps::news::follow(gateway, session, upstream, http);
            }
            Link::Stdio(child) if child.is_own() => child.notify(&ready, &[] as &[Edit<'_>]).await?,
            Link::Stdio(_) => {}
        }
    }
    upstream.works();
    session.keep_link(upstream, link.clone());
    Ok((link, opened.result))
}

/// Passes a setting on to every open conversation; nobody waits for it.
pub(super) async fn tell_all(gateway: &Arc<Gateway>, arrival: &Arrival, method: &str, params: Option<Part>) {
    let Some(session) = &arrival.session else { return };
    let id = Id::number(0);
    for (server, link) in session.links() {
        let call = Call::asked(server.clone(), Operation::ReadResource, params.clone());
        let asked = query(gateway, &arrival.caller, call);
        let Ok(outbound) = admit(&gateway.live.policy(), &asked, Admitted::Listed { method: method.to_owned() }) else {
            continue;
        };
        let told = match link {
            // A modern server is told with each request.
            Link::Http(http) if http.era() == Era::Modern => Ok(()),
            Link::Http(http) => http.request(&outbound, &id, &[], None, gateway.settings.gather_time).await.map(drop),
            Link::Stdio(child) if child.is_own() => child.request(&outbound, &id, &[]).await.map(drop),
            Link::Stdio(_) => Ok(()),
        };
        if let Err(failure) = told {
            tracing::debug!(%server, "not told: {failure}");
        }
    }
}

fn about() -> Json {
    json!({ "name": "toolwarden", "version": env!("CARGO_PKG_VERSION") })
}

fn initialized(offers: &[Offer], version: Version, nothing: bool) -> Json {
    let mut result = json!({
        "protocolVersion": version.as_str(),
        "capabilities": capabilities(offers),
        "serverInfo": about(),
    });
    add_words(&mut result, offers, nothing);
    result
}

fn discovered(offers: &[Offer], nothing: bool) -> Json {
    let versions: Vec<_> = Version::modern().map(Version::as_str).collect();
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": versions,
        "capabilities": capabilities(offers),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": about() },
    });
    add_words(&mut result, offers, nothing);
    result
}

/// What any server offers, and the common door routes. Lists can always change: the policy can.
fn capabilities(offers: &[Offer]) -> Json {
    let mut merged = Map::new();
    let offered = |name: &str, inner: Option<&str>| {
        offers.iter().filter_map(|offer| offer.said.as_ref().ok()).any(|said| {
            let found = said.value().get("capabilities").and_then(|all| all.get(name));
            match inner {
                None => found.is_some(),
                Some(inner) => found.and_then(|found| found.get(inner)).is_some_and(|flag| flag.raw() == "true"),
            }
        })
    };
    // Tools are always offered: a server that is down now may come back with some.
    merged.insert("tools".to_owned(), json!({ "listChanged": true }));
    if offered("prompts", None) {
        merged.insert("prompts".to_owned(), json!({ "listChanged": true }));
    }
    if offered("resources", None) {
        let subscribe = offered("resources", Some("subscribe"));
        merged.insert("resources".to_owned(), json!({ "listChanged": true, "subscribe": subscribe }));
    }
    for name in ["completions", "logging"] {
        if offered(name, None) {
            merged.insert(name.to_owned(), json!({}));
        }
    }
    Json::Object(merged)
}

/// Instructions of all servers; where the caller may use nothing, that is said first (MODE-5).
fn add_words(result: &mut Json, offers: &[Offer], nothing: bool) {
    let Some(result) = result.as_object_mut() else { return };
    let mut text = if nothing { format!("{NO_TOOLS}\n\n") } else { String::new() };
    let mut missing = Vec::new();
    for offer in offers {
        match &offer.said {
            Ok(said) => {
                if let Some(words) = said.value().get("instructions").and_then(|words| words.as_str()) {
                    text.push_str(&format!("## {}\n{words}\n\n", toolwarden_core::name::shown(&offer.server)));
                }
            }
            Err(_) => missing.push(offer.server.to_string()),
        }
    }
    if !text.is_empty() {
        text.truncate(text.floor_char_boundary(MOST_INSTRUCTIONS));
        result.insert("instructions".to_owned(), text.trim_end().into());
    }
    if !missing.is_empty() {
        let meta = result.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert("toolwarden/unavailable".to_owned(), missing.into());
        }
    }
}

#[cfg(test)]
#[test]
fn long_instructions_are_cut_between_characters() {
    let words = "ä".repeat(MOST_INSTRUCTIONS);
    let said = json!({ "instructions": words }).to_string();
    let limits = Limits { bytes: said.len(), depth: 8 };
    for pad in ["", "x"] {
        let said = said.replacen("ä", &format!("{pad}ä"), 1);
        let limits = Limits { bytes: limits.bytes + 1, ..limits };
        let Ok(document) = Document::parse(said, limits) else { unreachable!("it is JSON") };
        let offers = [Offer { server: "s".into(), said: Ok(Part::whole(Arc::new(document))) }];
        let mut result = json!({});
        add_words(&mut result, &offers, false);
        let length = result.get("instructions").and_then(Json::as_str).map_or(0, str::len);
        assert!(length <= MOST_INSTRUCTIONS && length > MOST_INSTRUCTIONS - 8, "{length}");
    }
}
