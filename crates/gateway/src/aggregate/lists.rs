//! Lists of all servers as one: gathered at the same time, filtered by the judge, named apart.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::timeout;
use toolwarden_core::Purpose;
use toolwarden_core::json::{Part, Value};
use toolwarden_mcp::compose::{self, push_spliced, quoted};
use toolwarden_mcp::{Era, Id};

use super::names::Alias;
use super::{named, opening};
use crate::answer::Answer;
use crate::arrival::Arrival;
use crate::catalog;
use crate::gateway::Gateway;
use crate::inspect::{list_kind, shows};
use crate::live;
use crate::refusal::{Failure, Refusal};
use crate::sessions::principal;
use crate::upstreams::{Link, Upstream};

/// Entries of one page.
const PAGE: usize = 500;
const MOST_PAGES: usize = 100;
const LONGEST_CURSOR: usize = 1024;

pub(super) async fn list(
    gateway: &Arc<Gateway>,
    arrival: &Arrival,
    id: &Id,
    method: &str,
    params: Option<&Part>,
) -> Result<Answer, Refusal> {
    let Some((key, _)) = list_kind(method) else { return Err(Refusal::Method(method.to_owned())) };
    let from = start(gateway, arrival, method, params)?;
    let (entries, missing) = gather(gateway, arrival, method).await;
    let page: Vec<&str> = entries.iter().skip(from).take(PAGE).map(String::as_str).collect();
    let mut members = vec![format!("\"{key}\":[{}]", page.join(","))];
    if from + PAGE < entries.len() {
        members.push(format!("\"nextCursor\":{}", quoted(&cursor(gateway, arrival, method, from + PAGE)?)));
    }
    if arrival.version.era() == Era::Modern {
        members.push(r#""resultType":"complete","ttlMs":0,"cacheScope":"private""#.to_owned());
    }
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(|name| quoted(name)).collect();
        members.push(format!("\"_meta\":{{\"toolwarden/unavailable\":[{}]}}", names.join(",")));
    }
    Ok(Answer::message(compose::result(id, &format!("{{{}}}", members.join(",")))))
}

/// Where a page starts. A cursor counts only for the list and the caller it was made for.
fn start(gateway: &Gateway, arrival: &Arrival, method: &str, params: Option<&Part>) -> Result<usize, Refusal> {
    let Some(cursor) = params.and_then(|params| params.value().get("cursor")) else { return Ok(0) };
    let refuse = || Refusal::Params("the cursor is not one of this list".to_owned());
    let text = cursor.as_str().filter(|text| text.len() <= LONGEST_CURSOR).ok_or_else(refuse)?;
    let sealed = unhex(&text).ok_or_else(refuse)?;
    let opened = gateway.keyring.open(Purpose::Cursor, bound_to(arrival, method).as_bytes(), &sealed);
    let opened = opened.map_err(|_| refuse())?;
    std::str::from_utf8(&opened).ok().and_then(|text| text.parse().ok()).ok_or_else(refuse)
}

fn cursor(gateway: &Gateway, arrival: &Arrival, method: &str, from: usize) -> Result<String, Refusal> {
    let bound = bound_to(arrival, method);
    let sealed = gateway.keyring.seal(Purpose::Cursor, bound.as_bytes(), from.to_string().as_bytes());
    let sealed = sealed.map_err(|_| Refusal::Params("no cursor could be made".to_owned()))?;
    Ok(toolwarden_core::digest::hex(&sealed))
}

fn bound_to(arrival: &Arrival, method: &str) -> String {
    format!("{method}\u{1f}{}", principal(&arrival.caller))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    digits.chunks(2).map(|pair| u8::try_from(pair.first()? * 16 + pair.last()?).ok()).collect()
}

/// Every visible entry under its common name, and the servers that did not answer.
async fn gather(gateway: &Arc<Gateway>, arrival: &Arrival, method: &str) -> (Vec<String>, Vec<String>) {
    let asking = named(gateway, arrival).into_iter().map(|(alias, upstream)| async move {
        let listing = of_one(gateway, arrival, method, &alias, &upstream);
        let entries = timeout(gateway.settings.gather_time, listing).await.unwrap_or(Err(Failure::Timeout));
        (upstream, entries)
    });
    let (mut all, mut missing) = (Vec::new(), Vec::new());
    for (upstream, entries) in join_all(asking).await {
        match entries {
            Ok(entries) => all.extend(entries),
            Err(failure) => {
                tracing::warn!(server = %upstream.name, method, "left out of a list: {failure}");
                missing.push(upstream.name.to_string());
            }
        }
    }
    (all, missing)
}

pub(super) async fn link_of(
    gateway: &Arc<Gateway>,
    arrival: &Arrival,
    upstream: &Arc<Upstream>,
) -> Result<Link, Failure> {
    if arrival.version.era() == Era::Modern {
        return crate::forward::for_modern(arrival, upstream).await;
    }
    let Some(session) = &arrival.session else { return Err(Failure::Died) };
    match session.link(&upstream.name) {
        Some(Link::Stdio(child)) if !child.is_alive() => {}
        Some(link) => return Ok(link),
        None => {}
    }
    opening::conversation(gateway, session, upstream).await.map(|(link, _)| link)
}

async fn of_one(
    gateway: &Arc<Gateway>,
    arrival: &Arrival,
    method: &str,
    alias: &Alias,
    upstream: &Arc<Upstream>,
) -> Result<Vec<String>, Failure> {
    let Some((key, operation)) = list_kind(method) else { return Ok(Vec::new()) };
    let link = link_of(gateway, arrival, upstream).await?;
    let mut entries = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let page = match catalog::ask(upstream, &link, method, cursor.as_deref()).await {
            Ok(page) => page,
            // A server without prompts or resources says so; it simply has none.
            Err(Failure::Answered { error, .. }) if error.contains("-32601") => return Ok(entries),
            Err(failure) => return Err(failure),
        };
        let listed = page.value().get(key);
        if let (Some(tools), "tools/list") = (listed, method) {
            gateway.live.learn(&upstream.name, &live::definitions(tools));
        }
        let policy = gateway.live.snapshot();
        let visible = listed
            .into_iter()
            .flat_map(Value::items)
            .filter(|entry| shows(gateway, &arrival.caller, &upstream.name, &policy, operation, *entry));
        entries.extend(visible.map(|entry| renamed(&page, entry, method, alias)));
        cursor = page.value().get("nextCursor").map(|next| next.raw().to_owned());
        if cursor.is_none() {
            return Ok(entries);
        }
    }
    Err(Failure::Protocol("its list has no end".to_owned()))
}

/// An entry with the name or URI it has behind the common door.
fn renamed(page: &Part, entry: Value<'_>, method: &str, alias: &Alias) -> String {
    let key = match method {
        "tools/list" | "prompts/list" => "name",
        "resources/list" => "uri",
        _ => "uriTemplate",
    };
    let raw = entry.raw();
    let Some((place, own)) = entry.get(key).and_then(|value| Some((value, value.as_str()?))) else {
        return raw.to_owned();
    };
    let shown = if key == "name" { alias.expose(&own) } else { alias.expose_uri(&own) };
    let (start, span) = (page.span_of(entry).start, page.span_of(place));
    let mut text = String::with_capacity(raw.len() + 64);
    push_spliced(&mut text, raw, &[(span.start - start..span.end - start, &quoted(&shown))]);
    text
}
