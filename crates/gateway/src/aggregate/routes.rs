//! Calls at the common door: brought back to the names their server knows, then the same corridor.

use std::sync::Arc;

use toolwarden_conversations::alias::{Alias, is_web};
use toolwarden_conversations::known::KnownLists;
use toolwarden_conversations::upstreams::Upstream;
use toolwarden_core::json::Part;
use toolwarden_core::{Weakness, name, weak};
use toolwarden_mcp::Message;
use toolwarden_mcp::compose::{push_spliced, quoted};

use super::lists::link_of;
use super::{named, results, with_params};
use crate::pipeline::{drop_foreign, pass};
use toolwarden_refusals::Refusal;
use toolwarden_steps::answer::Answer;
use toolwarden_steps::arrival::Arrival;
use toolwarden_steps::audit::Trail;
use toolwarden_steps::catalog;
use toolwarden_steps::decide::reach;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::pinning::TOOLS;
use toolwarden_steps::resolve::{Resolved, resolve, text_member};

pub(super) async fn call(
    gateway: &Arc<Gateway>,
    arrival: Arrival,
    method: &str,
    params: Option<Part>,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    let (place, exposed) = target(method, params.as_ref())?;
    let servers = named(gateway, &arrival);
    let found = match place.last() {
        Some(&"uri") => by_uri(&servers, &exposed)?,
        _ => by_name(gateway, &arrival, &servers, &exposed).await,
    };
    let Some((alias, upstream, own)) = found else {
        return Err(match place.last() {
            Some(&"uri") => Refusal::Params(format!("Unknown resource: {}", name::shown(&exposed))),
            _ => shut(gateway, &arrival, &exposed, method, trail).unwrap_or(Refusal::UnknownTool(exposed)),
        });
    };
    if let Some(trail) = trail.as_mut() {
        trail.names(&upstream, &own, method);
    }
    let params = params.and_then(|params| replaced(&params, place, &own)).ok_or_else(|| missing(method))?;
    let arrival = with_params(&arrival, params);
    if arrival.version.era() == toolwarden_mcp::Era::Legacy {
        link_of(gateway, &arrival, &upstream).await.map_err(Refusal::Upstream)?;
    }
    match resolve(gateway, arrival, &upstream.name)? {
        Resolved::Asked(mut asked) => {
            if let Some(asked) = Arc::get_mut(&mut asked) {
                mirror(&mut asked.arrival, &own);
            }
            let answer = pass(gateway, &asked, trail).await?;
            Ok(results::shown(answer, alias, method).await)
        }
        Resolved::Dropped(_) => Ok(Answer::Accepted),
        Resolved::Foreign(what) => Ok(drop_foreign(what, trail).await),
    }
}

/// Why a name leads nowhere whose server is there and shut to this caller.
fn shut(
    gateway: &Gateway,
    arrival: &Arrival,
    exposed: &str,
    method: &str,
    trail: &mut Option<Trail>,
) -> Option<Refusal> {
    let servers = gateway.upstreams.snapshot();
    servers.all().iter().filter(|upstream| upstream.is_for(&arrival.caller)).find_map(|upstream| {
        let own = upstream.alias.reveal(exposed, Vec::new)?;
        let refusal = reach(gateway, &arrival.caller, &upstream.name, exposed).err()?;
        if let Some(trail) = trail.as_mut() {
            trail.names(upstream, &own, method);
        }
        Some(refusal)
    })
}

fn missing(method: &str) -> Refusal {
    Refusal::Params(format!("`{method}` does not say what it is about"))
}

/// Where a method names its target, and the name.
fn target(method: &str, params: Option<&Part>) -> Result<(&'static [&'static str], String), Refusal> {
    let place: &'static [&'static str] = match method {
        "tools/call" | "prompts/get" => &["name"],
        "completion/complete" => match params.and_then(|params| params.member("ref")) {
            Some(reference) if text_member(Some(&reference), "uri").is_some() => &["ref", "uri"],
            _ => &["ref", "name"],
        },
        _ => &["uri"],
    };
    let found = params.and_then(|params| {
        let value = place.iter().try_fold(params.value(), |value, key| value.get(key))?;
        value.as_str().map(std::borrow::Cow::into_owned)
    });
    found.map(|name| (place, name)).ok_or_else(|| missing(method))
}

fn replaced(params: &Part, place: &[&str], own: &str) -> Option<Part> {
    let value = place.iter().try_fold(params.value(), |value, key| value.get(key))?;
    let mut text = String::with_capacity(params.raw().len());
    push_spliced(&mut text, params.raw(), &[(params.span_of(value), &quoted(own))]);
    Part::composed(text).ok()
}

async fn by_name(
    gateway: &Arc<Gateway>,
    arrival: &Arrival,
    servers: &[(Alias, Arc<Upstream>)],
    exposed: &str,
) -> Option<(Alias, Arc<Upstream>, String)> {
    for (alias, upstream) in servers {
        if !exposed.starts_with(alias.as_str()) {
            continue;
        }
        let listed = || {
            let policy = gateway.live.policy();
            let server = policy.servers().get(&upstream.name).cloned();
            server.map(|server| server.known_tools().map(str::to_owned).collect()).unwrap_or_default()
        };
        if let Some(own) = alias.reveal(exposed, listed) {
            let own = own.into_owned();
            if let Message::Request(request) = &arrival.message
                && &*request.method == "tools/call"
                && let Ok(link) = link_of(gateway, arrival, upstream).await
            {
                // What went wrong is in the log; an unknown tool is refused.
                let _ = catalog::know_on(gateway, upstream, &arrival.caller, (TOOLS, &own), &link).await;
            }
            return Some((alias.clone(), upstream.clone(), own));
        }
    }
    None
}

/// Web addresses carry no server: they belong to the one that listed them, or to the only server there is. One
/// that several listed is nobody's: the wrong one would hear what is read.
fn by_uri(
    servers: &[(Alias, Arc<Upstream>)],
    exposed: &str,
) -> Result<Option<(Alias, Arc<Upstream>, String)>, Refusal> {
    let own = |(alias, upstream): &(Alias, Arc<Upstream>)| {
        alias.reveal_uri(exposed).map(|own| (alias.clone(), upstream.clone(), own.into_owned()))
    };
    if let Some(found) = servers.iter().find_map(own) {
        return Ok(Some(found));
    }
    if !is_web(exposed) {
        return Ok(None);
    }
    let listed_by = |has: fn(&KnownLists, &str) -> bool| -> Vec<&(Alias, Arc<Upstream>)> {
        servers.iter().filter(|(_, upstream)| has(&upstream.known, exposed)).collect()
    };
    let mut owners = listed_by(KnownLists::has_address);
    if owners.is_empty() {
        owners = listed_by(KnownLists::may_have_address);
    }
    let owner = match (owners.as_slice(), servers) {
        ([first, _, ..], _) if weak::is(Weakness::Names) => Some(*first),
        ([], [first, ..]) if weak::is(Weakness::Names) => Some(first),
        ([], [only]) => Some(only),
        ([], _) => None,
        ([owner], _) => Some(*owner),
        (owners, _) => {
            let names: Vec<String> = owners.iter().map(|(_, one)| format!("`{}`", name::shown(&one.name))).collect();
            let shown = name::shown(exposed);
            return Err(Refusal::Params(format!(
                "{shown} is listed by {}: read it at the door of one of them, /mcp/SERVER",
                names.join(" and ")
            )));
        }
    };
    Ok(owner.map(|(alias, upstream)| (alias.clone(), upstream.clone(), exposed.to_owned())))
}

/// The header that mirrors the name must say what the body says now.
pub(crate) fn mirror(arrival: &mut Arrival, own: &str) {
    if arrival.headers.contains_key(toolwarden_mcp::headers::NAME) {
        let mut headers = (*arrival.headers).clone();
        headers.insert(toolwarden_mcp::headers::NAME, toolwarden_mcp::headers::encode(own));
        arrival.headers = Arc::new(headers);
    }
}
