//! Definitions of servers on their way to clients (GATE-12): nobody is shown what no person accepted.
//!
//! Takes what a server listed or said of itself, in its own words; gives what is shown of it. What is
//! new is on record before anybody sees anything.

use std::sync::Arc;

use toolwarden_conversations::Failure;
use toolwarden_conversations::upstreams::{Link, Upstream};
use toolwarden_core::json::{Document, Kind as JsonKind, Limits, Part, Value};
use toolwarden_core::{Caller, Weakness, name, weak};
use toolwarden_guard::live::definition;
use toolwarden_mcp::compose::{object_with, push_spliced};
use toolwarden_pins::{How, Kind, Noted, Shown, Sighted, Sighting, short};
use toolwarden_policy::input::ToolDefinition;

use crate::catalog;
use crate::gateway::Gateway;
use crate::visible;

/// Pages of more bytes are looked at away from the threads that serve.
const LARGE: usize = 32 * 1024;

/// A list of definitions that are pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinnedList {
    pub kind: Kind,
    pub method: &'static str,
    /// Of its entries.
    pub key: &'static str,
}

pub const TOOLS: PinnedList = PinnedList { kind: Kind::Tool, method: "tools/list", key: "tools" };
pub const PROMPTS: PinnedList = PinnedList { kind: Kind::Prompt, method: "prompts/list", key: "prompts" };

/// The list a method asks for; none where nothing of it is pinned.
pub fn list_of(method: &str) -> Option<PinnedList> {
    [TOOLS, PROMPTS].into_iter().find(|list| list.method == method)
}

/// Pages of a list as a server gave them.
#[derive(Debug)]
pub struct Given {
    pub pages: Vec<Part>,
    /// Whether this is all of it.
    pub is_whole: bool,
    /// How many changes of the server were heard of before it was asked.
    pub after: u64,
}

/// A page of a list as clients are shown it. `from` is where the client wanted it from, `after` as in `Given`.
pub async fn page(
    gateway: &Arc<Gateway>,
    (upstream, link): (&Arc<Upstream>, &Link),
    caller: &Arc<Caller>,
    list: PinnedList,
    (from, after): (Option<Value<'_>>, u64),
    page: &Part,
) -> Result<Part, Failure> {
    let is_whole = from.is_none() && page.value().get("nextCursor").is_none();
    if !is_whole && !gateway.pins.has_baseline(&upstream.name, list.kind) {
        // The baseline is everything, or a server could add to it page by page for ever.
        catalog::learn(gateway, upstream, caller, list, link).await?;
    }
    let given = Given { pages: vec![page.clone()], is_whole, after };
    let pages = pages(gateway, upstream, caller, list, given).await?;
    pages.into_iter().next().ok_or_else(|| Failure::Protocol("its list cannot be read".to_owned()))
}

/// Pages of a list as clients are shown them.
pub async fn pages(
    gateway: &Arc<Gateway>,
    upstream: &Arc<Upstream>,
    caller: &Arc<Caller>,
    PinnedList { kind, key, .. }: PinnedList,
    Given { pages, is_whole, after }: Given,
) -> Result<Vec<Part>, Failure> {
    // What a server listed that is another one by now says nothing of that one.
    upstream.tenure().check()?;
    let (server, caller) = (upstream.name.clone(), caller.clone());
    let sighting = Sighting { server, kind, caller, pages, is_whole, after };
    let shown = look(gateway, &sighting).await?.shown;
    let mut rest = shown.as_slice();
    let mut made = Vec::with_capacity(sighting.pages.len());
    for page in &sighting.pages {
        let listed: Vec<Value<'_>> = page.value().get(key).into_iter().flat_map(Value::items).collect();
        let (here, after) = rest.split_at_checked(listed.len()).unwrap_or((rest, &[]));
        rest = after;
        made.push(shown_page(page, key, &listed, here)?);
        if kind == Kind::Tool {
            teach(gateway, upstream, (page, key), here).await;
        }
    }
    Ok(made)
}

/// What a server says of itself when a conversation is opened: with the instructions that are accepted, and
/// lists that can change.
pub async fn opening(
    gateway: &Arc<Gateway>,
    upstream: &Upstream,
    caller: &Arc<Caller>,
    said: Part,
) -> Result<Part, Failure> {
    upstream.tenure().check()?;
    let said = with_readable_words(said)?;
    let (server, caller) = (upstream.name.clone(), caller.clone());
    let pages = vec![said.clone()];
    let sighting = Sighting { server, kind: Kind::Instructions, caller, pages, is_whole: true, after: 0 };
    let words = match look(gateway, &sighting).await?.shown.into_iter().next() {
        None | Some(Shown::AsGiven) => return Ok(visible::offered(&said).unwrap_or(said)),
        Some(Shown::Instead(words)) => Some(words),
        Some(Shown::Hidden) => None,
    };
    let said = Part::composed(object_with(Some(said.value()), &[("instructions", words.as_deref())]))?;
    Ok(visible::offered(&said).unwrap_or(said))
}

/// Instructions are a text. What is none cannot be compared, and a client might read it all the same.
fn with_readable_words(said: Part) -> Result<Part, Failure> {
    let is_no_text = said.value().get("instructions").is_some_and(|words| words.kind() != JsonKind::String);
    if !is_no_text || weak::is(Weakness::Pins) {
        return Ok(said);
    }
    Ok(Part::composed(object_with(Some(said.value()), &[("instructions", None)]))?)
}

/// Compares, and records what is new.
async fn look(gateway: &Arc<Gateway>, sighting: &Sighting) -> Result<Sighted, Failure> {
    if let Some(seen) = gateway.pins.sight(sighting) {
        return Ok(seen);
    }
    let (pins, now, owned) = (gateway.pins.clone(), gateway.clock.now(), sighting.clone());
    let recorded = tokio::task::spawn_blocking(move || pins.record(&owned, now)).await;
    let seen = match recorded {
        Ok(Ok(seen)) => seen,
        Ok(Err(error)) => {
            tracing::error!(server = %sighting.server, "its definitions cannot be recorded, so nobody sees them: {error}");
            return Err(Failure::Unreachable("its definitions could not be recorded".to_owned()));
        }
        Err(_) => return Err(Failure::Lost),
    };
    gateway.tell_pinned(&sighting.server, &seen.noted);
    Ok(seen)
}

impl Gateway {
    /// Records, and says, what became of definitions that were put on record.
    pub fn tell_pinned(&self, server: &Arc<str>, noted: &[Noted]) {
        let (first, later): (Vec<&Noted>, Vec<&Noted>) = noted.iter().partition(|noted| noted.how == How::Baseline);
        for kind in Kind::ALL {
            // One record for all of them: a server may have thousands.
            let count = first.iter().filter(|noted| noted.kind == kind).count();
            if count > 0 {
                self.record_pinned(server, None, &format!("{} first seen: {count}, accepted as found", kind.as_str()));
            }
        }
        later.into_iter().for_each(|noted| self.tell_change(server, noted));
    }

    fn tell_change(&self, server: &Arc<str>, noted: &Noted) {
        let address = noted.kind.address(&noted.name);
        let shown = name::shown(&address);
        let what = match noted.how {
            How::Baseline => " was first seen",
            How::Addition => ": an optional field was added, which is accepted without its words",
            How::Followed => " changed, and changes are followed",
            How::Accepted { .. } => " was accepted",
            How::Waiting if noted.is_new => " is new and waits for a person",
            How::Waiting => " changed and waits for a person",
            How::TooLarge => " is too large to be shown",
        };
        // Whoever reads a line of the log wants to know of what before anything else.
        let whole = format!("{}:{shown}", name::shown(server));
        match noted.how {
            How::Waiting | How::TooLarge => tracing::warn!(
                %server,
                definition = %shown,
                "{whole}{what}; see `toolwarden tools diff {whole}`"
            ),
            _ => tracing::info!(%server, definition = %shown, "{whole}{what}"),
        }
        let detail = format!("{shown}{what} (version {})", short(&noted.digest));
        self.record_pinned(server, (noted.kind == Kind::Tool).then_some(noted.name.as_str()), &detail);
    }

    fn record_pinned(&self, server: &str, tool: Option<&str>, detail: &str) {
        self.note_event("definitions", detail, |record| (record.server, record.tool) = (Some(server), tool));
    }
}

/// The judge knows tools as they are shown; those that are not shown as they were listed, and holds them. What it does not
/// know yet is compiled away from the threads that serve, and so is a large page looked at (WORK-1).
async fn teach(gateway: &Arc<Gateway>, upstream: &Arc<Upstream>, (page, key): (&Part, &'static str), shown: &[Shown]) {
    let mut known = None;
    if page.raw().len() <= LARGE {
        let tools = learned(page, key, shown);
        if gateway.live.knows(&upstream.name, &tools) {
            return;
        }
        known = Some(tools);
    }
    let (gateway, upstream, page, shown) = (gateway.clone(), upstream.clone(), page.clone(), shown.to_vec());
    let teaching = tokio::task::spawn_blocking(move || {
        let tools = known.unwrap_or_else(|| learned(&page, key, &shown));
        gateway.live.learn(&upstream.name, &tools, || !upstream.is_over());
    });
    // It ended without a word: the gateway is being stopped.
    let _ = teaching.await;
}

fn learned(page: &Part, key: &str, shown: &[Shown]) -> Vec<ToolDefinition> {
    let listed = page.value().get(key).into_iter().flat_map(Value::items);
    let learned = listed.zip(shown).filter_map(|(entry, shown)| match shown {
        Shown::AsGiven | Shown::Hidden => definition(entry),
        Shown::Instead(text) => {
            let limits = Limits::again(text.len());
            definition(Document::parse(&**text, limits).ok()?.root())
        }
    });
    learned.collect()
}

fn shown_page(page: &Part, key: &str, listed: &[Value<'_>], shown: &[Shown]) -> Result<Part, Failure> {
    let entries = page.value().get(key).filter(|entries| entries.kind() == JsonKind::Array);
    let (Some(entries), true) = (entries, shown.iter().any(|shown| *shown != Shown::AsGiven)) else {
        return Ok(page.clone());
    };
    let kept: Vec<&str> = listed
        .iter()
        .zip(shown)
        .filter_map(|(entry, shown)| match shown {
            Shown::AsGiven => Some(entry.raw()),
            Shown::Instead(text) => Some(text),
            Shown::Hidden => None,
        })
        .collect();
    let mut text = String::with_capacity(page.raw().len());
    push_spliced(&mut text, page.raw(), &[(page.span_of(entries), &format!("[{}]", kept.join(",")))]);
    Ok(Part::composed(text)?)
}
