//! Cursors of gathered lists: sealed, and good for the list and the caller they were made for only.

use serde::{Deserialize, Serialize};
use toolwarden_conversations::sessions::principal;
use toolwarden_core::Purpose;
use toolwarden_core::json::{Kind, Part};
use toolwarden_mcp::headers::{base64, to_base64};

use crate::arrival::Arrival;
use crate::gateway::Gateway;
use crate::refusal::Refusal;

/// Longest cursor that is looked at, and longest own one of a server: one server's must not use up the room
/// of the others.
const LONGEST: usize = 256 * 1024;
pub(super) const LONGEST_OWN: usize = 8 * 1024;

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
