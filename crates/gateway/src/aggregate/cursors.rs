//! Cursors of gathered lists: sealed, and good for the list and the caller they were made for only.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use toolwarden_conversations::sessions::principal;
use toolwarden_core::Purpose;
use toolwarden_core::json::{Kind, Part};
use toolwarden_mcp::headers::{base64, to_base64};

use toolwarden_refusals::Refusal;
use toolwarden_steps::arrival::Arrival;
use toolwarden_steps::gateway::Gateway;

/// Longest cursor that is looked at, and longest own one of a server: one server's must not use up the room
/// of the others.
const LONGEST: usize = 256 * 1024;
pub(super) const LONGEST_OWN: usize = 8 * 1024;
/// Before it is sealed, and written in four letters for three bytes.
const LONGEST_PLAIN: usize = LONGEST / 4 * 3 - 1024;

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Place {
    /// After the entry of this name, in a list that is gathered whole.
    After(String),
    /// With the next pages of these servers: each with its own cursor, raw.
    At(Vec<(String, String)>),
}

/// Where a request wants its page from; none for the beginning.
pub(super) fn open(
    gateway: &Gateway,
    arrival: &Arrival,
    method: &str,
    params: Option<&Part>,
) -> Result<Option<Place>, Refusal> {
    let cursor = params.and_then(|params| params.value().get("cursor"));
    let Some(cursor) = cursor.filter(|cursor| cursor.kind() != Kind::Null) else { return Ok(None) };
    let text = cursor.as_str().filter(|text| text.len() <= LONGEST).ok_or_else(foreign)?;
    let sealed = base64(&text).ok_or_else(foreign)?;
    let opened = gateway.keyring.open(Purpose::Cursor, bound_to(arrival, method).as_bytes(), &sealed);
    serde_json::from_slice(&opened.map_err(|_| foreign())?).map(Some).map_err(|_| foreign())
}

/// Takes the longest cursors of servers out until the rest is short enough to be taken back; gives their servers.
pub(super) fn fit(place: &mut Place) -> Vec<String> {
    let Place::At(left) = place else { return Vec::new() };
    // As they are written: quotes and what they hold escaped once more.
    let length = |(server, cursor): &(String, String)| {
        [server, cursor].map(|text| serde_json::to_string(text).map_or(0, |text| text.len() + 2)).iter().sum::<usize>()
    };
    let mut lengths: Vec<(usize, usize)> = left.iter().map(length).zip(0..).collect();
    lengths.sort_unstable();
    let mut whole: usize = lengths.iter().map(|(length, _)| length).sum();
    let mut dropped = BTreeSet::new();
    while whole > LONGEST_PLAIN
        && let Some((length, place)) = lengths.pop()
    {
        whole -= length;
        dropped.insert(place);
    }
    let all = std::mem::take(left).into_iter().enumerate();
    let (gone, kept): (Vec<_>, Vec<_>) = all.partition(|(place, _)| dropped.contains(place));
    *left = kept.into_iter().map(|(_, of_one)| of_one).collect();
    gone.into_iter().map(|(_, (server, _))| server).collect()
}

/// A cursor for the next page; none where it would be too long to be taken back.
pub(super) fn seal(gateway: &Gateway, arrival: &Arrival, method: &str, place: &Place) -> Option<String> {
    let plain = serde_json::to_vec(place).ok()?;
    let sealed = gateway.keyring.seal(Purpose::Cursor, bound_to(arrival, method).as_bytes(), &plain).ok()?;
    Some(to_base64(&sealed)).filter(|cursor| cursor.len() <= LONGEST)
}

pub(super) fn foreign() -> Refusal {
    Refusal::Params("the cursor is not one of this list; start again without it".to_owned())
}

fn bound_to(arrival: &Arrival, method: &str) -> String {
    format!("{method}\u{1f}{}", principal(&arrival.caller))
}
