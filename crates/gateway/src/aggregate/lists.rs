//! Lists of all servers as one: gathered at the same time, filtered by the judge, named apart.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::timeout;
use toolwarden_conversations::Failure;
use toolwarden_conversations::alias::{Alias, is_web};
use toolwarden_conversations::ask::ask;
use toolwarden_conversations::listing::{MOST_PAGES, Pages};
use toolwarden_conversations::sessions::principal;
use toolwarden_conversations::upstreams::{Link, Upstream};
use toolwarden_core::json::{Part, Value};
use toolwarden_core::weak;
use toolwarden_mcp::compose::{self, object_with, quoted};
use toolwarden_mcp::eras::{result_to_legacy, result_to_modern};
use toolwarden_mcp::{Era, Id};

use super::cursors::{self, Place};
use super::{named, opening};
use toolwarden_refusals::Refusal;
use toolwarden_steps::answer::Answer;
use toolwarden_steps::arrival::Arrival;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::inspect::{list_kind, shows};
use toolwarden_steps::pinning;
use toolwarden_steps::visible::{NO_TOOLS, NOTICE};

/// Entries of one page.
const PAGE: usize = 500;
/// No gathered list is fresh for longer: the policy may change what is visible.
const LONGEST_FRESH: u64 = 60_000;

pub(super) async fn list(
    gateway: &Arc<Gateway>,
    arrival: &Arrival,
    id: &Id,
    method: &str,
    params: Option<&Part>,
) -> Result<Answer, Refusal> {
    let Some((key, _)) = list_kind(method) else { return Err(Refusal::Method(method.to_owned())) };
    let place = cursors::open(gateway, arrival, method, params)?;
    let is_first = place.is_none();
    let mut page = match (method, place) {
        // There may be very many, so they are not gathered whole.
        ("resources/list", place) => resources(gateway, arrival, place).await?,
        (_, None) => after(gather(gateway, arrival, method, None, MOST_PAGES).await, None)?,
        (_, Some(Place::After(last))) => after(gather(gateway, arrival, method, None, MOST_PAGES).await, Some(&last))?,
        (_, Some(Place::At(_))) => return Err(cursors::foreign()),
    };
    for server in page.next.as_mut().map(cursors::fit).unwrap_or_default() {
        tracing::warn!(%server, method, "too many servers have long cursors: the rest of its list is missing");
        page.missing.push(server);
    }
    let entries: Vec<&str> = page.entries.iter().map(|entry| entry.text.as_str()).collect();
    let mut members = vec![format!("\"{key}\":[{}]", entries.join(","))];
    if let Some(cursor) = page.next.and_then(|next| cursors::seal(gateway, arrival, method, &next)) {
        members.push(format!("\"nextCursor\":{}", quoted(&cursor)));
    }
    if arrival.version.era() == Era::Modern {
        members.push(format!(r#""resultType":"complete","ttlMs":{},"cacheScope":"private""#, page.fresh));
    }
    let mut said = Vec::new();
    if !page.missing.is_empty() {
        let names: Vec<String> = page.missing.iter().map(|name| quoted(name)).collect();
        said.push(format!("\"toolwarden/unavailable\":[{}]", names.join(",")));
    } else if method == "tools/list" && is_first && page.entries.is_empty() {
        // An empty list reads like a fault; clients show this where they show anything (MODE-5).
        said.push(format!("\"{NOTICE}\":{}", quoted(NO_TOOLS)));
    }
    if !said.is_empty() {
        members.push(format!("\"_meta\":{{{}}}", said.join(",")));
    }
    Ok(Answer::message(compose::result(id, &format!("{{{}}}", members.join(",")))))
}

/// A gathered list, or a page of it.
#[derive(Debug)]
struct Gathered {
    entries: Vec<Entry>,
    /// Servers that did not answer; what they listed last may still be among the entries.
    missing: Vec<String>,
    /// For how many milliseconds it may be kept.
    fresh: u64,
    next: Option<Place>,
}

#[derive(Debug)]
struct Entry {
    /// The name or URI it has behind the common door.
    key: String,
    text: String,
}

/// The page after an entry.
fn after(mut gathered: Gathered, last: Option<&str>) -> Result<Gathered, Refusal> {
    if let Some(last) = last {
        let place = gathered.entries.iter().position(|entry| entry.key == last);
        let place = place.ok_or_else(cursors::foreign)?;
        gathered.entries.drain(..=place);
    }
    if gathered.entries.len() > PAGE {
        gathered.entries.truncate(PAGE);
        gathered.next = gathered.entries.last().map(|entry| Place::After(entry.key.clone()));
    } else {
        gathered.next = None;
    }
    Ok(gathered)
}

/// First the first pages of all servers, then server by server what they have left.
async fn resources(gateway: &Arc<Gateway>, arrival: &Arrival, place: Option<Place>) -> Result<Gathered, Refusal> {
    match place {
        None => Ok(gather(gateway, arrival, "resources/list", None, 1).await),
        Some(Place::At(mut left)) if !left.is_empty() => {
            let (server, cursor) = left.remove(0);
            let mut page = gather(gateway, arrival, "resources/list", Some((&server, &cursor)), 1).await;
            let more = match page.next.take() {
                Some(Place::At(more)) => more,
                _ => Vec::new(),
            };
            left.splice(..0, more);
            page.next = (!left.is_empty()).then_some(Place::At(left));
            Ok(page)
        }
        Some(_) => Err(cursors::foreign()),
    }
}

/// Every visible entry under its common name. With `from`, of one server from its own cursor on.
async fn gather(
    gateway: &Arc<Gateway>,
    arrival: &Arrival,
    method: &str,
    from: Option<(&str, &str)>,
    pages: usize,
) -> Gathered {
    let servers = named(gateway, arrival).into_iter();
    let servers = servers.filter(|(_, upstream)| from.is_none_or(|(server, _)| *upstream.name == *server));
    let cursor = from.map(|(_, cursor)| cursor.to_owned());
    let asking = servers.map(|(alias, upstream)| {
        let cursor = cursor.clone();
        async move {
            let listing = of_one(gateway, arrival, method, &upstream, cursor, pages);
            let listed = timeout(gateway.settings.gather_time, listing).await.unwrap_or(Err(Failure::Timeout));
            (alias, upstream, listed)
        }
    });
    let mut gathered = Gathered { entries: Vec::new(), missing: Vec::new(), fresh: LONGEST_FRESH, next: None };
    let mut left = Vec::new();
    for (alias, upstream, listed) in join_all(asking).await {
        let mut listed = match listed {
            Ok(listed) => listed,
            Err(failure) => {
                tracing::warn!(server = %upstream.name, method, "it does not list: {failure}");
                gathered.missing.push(upstream.name.to_string());
                let last = upstream.known.last(method, &principal(&arrival.caller)).filter(|_| from.is_none());
                Listed { pages: last.unwrap_or_default(), fresh: 0, more: None }
            }
        };
        gathered.fresh = gathered.fresh.min(listed.fresh);
        if listed.more.as_ref().is_some_and(|more| more.len() > cursors::LONGEST_OWN) {
            tracing::warn!(server = %upstream.name, method, "its cursor is too long: the rest of its list is missing");
            gathered.missing.push(upstream.name.to_string());
            listed.more = None;
        }
        left.extend(listed.more.map(|more| (upstream.name.to_string(), more)));
        for page in &listed.pages {
            show(gateway, arrival, method, (&alias, &upstream), page, &mut gathered.entries);
        }
    }
    gathered.next = (!left.is_empty()).then_some(Place::At(left));
    gathered
}

/// What one server listed, in its own words but in the client's era.
struct Listed {
    pages: Vec<Part>,
    fresh: u64,
    /// Its own cursor, raw, where it has more.
    more: Option<String>,
}

pub(super) async fn link_of(
    gateway: &Arc<Gateway>,
    arrival: &Arrival,
    upstream: &Arc<Upstream>,
) -> Result<Link, Failure> {
    if arrival.version.era() == Era::Modern {
        return toolwarden_steps::forward::for_modern(arrival, upstream).await;
    }
    let Some(session) = &arrival.session else { return Err(Failure::Died) };
    if let Some(link) = session.link(upstream).filter(Link::is_open) {
        return Ok(link);
    }
    opening::conversation(gateway, session, upstream).await.map(|(link, _)| link)
}

async fn of_one(
    gateway: &Arc<Gateway>,
    arrival: &Arrival,
    method: &str,
    upstream: &Arc<Upstream>,
    mut cursor: Option<String>,
    pages: usize,
) -> Result<Listed, Failure> {
    let mut link = link_of(gateway, arrival, upstream).await?;
    let is_first = cursor.is_none();
    let mut after = gateway.pins.changes_heard(&upstream.name);
    let mut said = ask(upstream, &link, method, cursor.as_deref()).await;
    if said.is_err() && !link.is_open() {
        // It was started anew since: so is the conversation.
        link = link_of(gateway, arrival, upstream).await?;
        after = gateway.pins.changes_heard(&upstream.name);
        said = ask(upstream, &link, method, cursor.as_deref()).await;
    }
    let mut listed = Listed { pages: Vec::new(), fresh: LONGEST_FRESH, more: None };
    let mut given = Pages::default();
    loop {
        let page = match said {
            Ok(page) => page,
            // A server without prompts or resources says so; it simply has none.
            Err(failure) if failure.is_unknown_method() => break,
            Err(failure) => return Err(failure),
        };
        // Only the modern era has words for it.
        let fresh = page.value().get("ttlMs").filter(|_| link.era() == Era::Modern);
        let fresh = fresh.and_then(|fresh| fresh.raw().parse().ok());
        listed.fresh = listed.fresh.min(fresh.unwrap_or(0));
        cursor = given.add(page)?;
        if cursor.is_none() || given.count() >= weak::limit(pages) {
            break;
        }
        said = ask(upstream, &link, method, cursor.as_deref()).await;
    }
    if cursor.is_some() && pages == MOST_PAGES {
        return Err(Failure::Protocol("its list has no end".to_owned()));
    }
    let mut parts = given.into_parts();
    if let Some(list) = pinning::list_of(method) {
        let given = pinning::Given { pages: parts, is_whole: true, after };
        parts = pinning::pages(gateway, upstream, &arrival.caller, list, given).await?;
    }
    let era = arrival.version.era();
    listed.pages = parts.into_iter().map(|page| in_words_of(era, &link, method, page)).collect::<Result<_, _>>()?;
    listed.more = cursor;
    if is_first {
        upstream.known.keep(method, &principal(&arrival.caller), &listed.pages);
    }
    Ok(listed)
}

fn in_words_of(era: Era, link: &Link, method: &str, page: Part) -> Result<Part, Failure> {
    let text = match (era, link.era()) {
        (Era::Legacy, Era::Modern) => result_to_legacy(method, page.value()),
        (Era::Modern, Era::Legacy) => result_to_modern(method, page.value(), None),
        _ => return Ok(page),
    };
    Ok(Part::composed(text)?)
}

/// The entries of a page that the caller may see, under their common names.
fn show(
    gateway: &Gateway,
    arrival: &Arrival,
    method: &str,
    (alias, upstream): (&Alias, &Arc<Upstream>),
    page: &Part,
    entries: &mut Vec<Entry>,
) {
    let Some((key, operation)) = list_kind(method) else { return };
    let listed = page.value().get(key);
    let (policy, speaker) = (gateway.live.snapshot(), arrival.speaker());
    let visible = listed
        .into_iter()
        .flat_map(Value::items)
        .filter(|entry| shows(gateway, &speaker, &upstream.name, &policy, operation, *entry));
    for entry in visible {
        entries.extend(renamed(entry, method, alias, upstream));
    }
}

/// An entry with the name or URI it has behind the common door; none for one that has none.
fn renamed(entry: Value<'_>, method: &str, alias: &Alias, upstream: &Upstream) -> Option<Entry> {
    let member = match method {
        "tools/list" | "prompts/list" => "name",
        "resources/list" => "uri",
        _ => "uriTemplate",
    };
    let own = entry.get(member)?.as_str()?;
    let key = if member == "name" { alias.expose(&own) } else { alias.expose_uri(&own) };
    if member != "name" && is_web(&own) {
        upstream.known.lists_address(&own);
    }
    let name = quoted(&key);
    let meta = entry.get("_meta").and_then(|meta| shown_meta(meta, alias));
    let mut changed = vec![(member, Some(name.as_str()))];
    changed.extend(meta.as_deref().map(|meta| ("_meta", Some(meta))));
    Some(Entry { text: object_with(Some(entry), &changed), key })
}

/// A tool's own page is a resource, too: its address must be one the common door knows.
fn shown_meta(meta: Value<'_>, alias: &Alias) -> Option<String> {
    let page = meta.get("ui")?;
    let uri = quoted(&alias.expose_uri(&page.get("resourceUri")?.as_str()?));
    let page = object_with(Some(page), &[("resourceUri", Some(&uri))]);
    Some(object_with(Some(meta), &[("ui", Some(&page))]))
}
