//! From judged messages to bytes on the wire, and the gateway's own bytes to clients.
//!
//! Params and results go out exactly as they were judged. The only things ever spliced are ids,
//! progress tokens and what belongs to one hop: `_meta`, its place in a trace, and the state and answers of an exchange.
//! Each edit finds its own place.

use std::ops::Range;

use bytes::Bytes;
use toolwarden_core::json::{Part, Value, unescape};
use toolwarden_core::{Content, Outbound};

use crate::message::Id;
use crate::trace::Trace;

/// Bytes an upstream connection may send. Made only from an `Outbound`.
#[derive(Debug, Clone)]
pub struct Wire {
    bytes: Bytes,
    request: Option<Id>,
}

impl Wire {
    #[cfg(test)]
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { bytes, request: None }
    }

    #[cfg(test)]
    pub(crate) fn asking(bytes: Bytes, request: Id) -> Self {
        Self { bytes, request: Some(request) }
    }

    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The id under which it wants an answer; none where it wants none.
    #[must_use]
    pub fn request(&self) -> Option<&Id> {
        self.request.as_ref()
    }

    /// A request under the id given, or an answer to the server's request of that id.
    #[must_use]
    pub fn with_id(outbound: &Outbound, id: &Id, edits: &[Edit<'_>]) -> Self {
        Self::compose(outbound, Some(id), edits)
    }

    /// A notification.
    #[must_use]
    pub fn notification(outbound: &Outbound, edits: &[Edit<'_>]) -> Self {
        Self::compose(outbound, None, edits)
    }

    fn compose(outbound: &Outbound, id: Option<&Id>, edits: &[Edit<'_>]) -> Self {
        let room = 128 + outbound.params().map_or(0, |params| params.raw().len());
        let mut text = envelope(id, room);
        match outbound.content() {
            Content::Method { method, params } => {
                push_member(&mut text, "method", &quoted(method));
                push_params(&mut text, params.as_ref(), edits);
            }
            Content::Result(result) => push_member(&mut text, "result", result.raw()),
            Content::Error(error) => push_member(&mut text, "error", error.raw()),
        }
        text.push('}');
        // An answer has an id, too, which is the server's.
        let asks = matches!(outbound.content(), Content::Method { .. });
        Self { bytes: Bytes::from(text), request: id.filter(|_| asks).cloned() }
    }
}

/// What may differ between the params that were judged and those that are sent.
#[derive(Debug, Clone, Copy)]
pub enum Edit<'a> {
    /// `_meta.progressToken`, where there is one.
    ProgressToken(&'a str),
    /// `requestId` of a cancellation.
    CancelledRequest(&'a str),
    /// The client capabilities of a modern request: never more than the client declared.
    ClientCapabilities(&'a str),
    /// The client capabilities of `initialize`: never more than the client declared.
    OpeningCapabilities(&'a str),
    /// `_meta.traceparent`, where there is one; over HTTP also a header.
    Trace(&'a Trace),
    /// One of the members that belong to a hop, not to the call: put in, replaced, or with nothing
    /// taken out.
    Hop(HopMember, Option<&'a str>),
}

/// Members of params that two eras write differently, and that no call consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HopMember {
    Meta,
    InputResponses,
    RequestState,
    /// What `subscriptions/listen` wants to hear: never more than the client asked for.
    Notifications,
}

impl HopMember {
    fn key(self) -> &'static str {
        match self {
            Self::Meta => "_meta",
            Self::InputResponses => "inputResponses",
            Self::RequestState => "requestState",
            Self::Notifications => "notifications",
        }
    }
}

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

impl Edit<'_> {
    /// The place in a trace, if that is what it changes.
    #[must_use]
    pub fn trace(&self) -> Option<&Trace> {
        match self {
            Self::Trace(trace) => Some(trace),
            _ => None,
        }
    }

    fn place<'v>(self, params: Value<'v>) -> Option<Value<'v>> {
        match self {
            Self::ProgressToken(_) => params.get("_meta")?.get("progressToken"),
            Self::CancelledRequest(_) => params.get("requestId"),
            Self::ClientCapabilities(_) => params.get("_meta")?.get(CAPABILITIES),
            Self::OpeningCapabilities(_) => params.get("capabilities"),
            Self::Trace(_) => params.get("_meta")?.get("traceparent"),
            Self::Hop(..) => None,
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::ProgressToken(text)
            | Self::CancelledRequest(text)
            | Self::ClientCapabilities(text)
            | Self::OpeningCapabilities(text) => text,
            Self::Trace(trace) => trace.quoted(),
            Self::Hop(_, text) => text.unwrap_or_default(),
        }
    }
}

fn push_params(text: &mut String, params: Option<&Part>, edits: &[Edit<'_>]) {
    let hops = |edit: &Edit<'_>| matches!(edit, Edit::Hop(..));
    if !edits.iter().any(hops) {
        if let Some(params) = params {
            text.push_str(",\"params\":");
            push_edited(text, params, edits);
        }
        return;
    }
    // Whole members first; the places of other edits are looked for in what came of it.
    let rebuilt = with_members(params.map(Part::value), edits);
    text.push_str(",\"params\":");
    match Part::composed(rebuilt.clone()) {
        Ok(params) => push_edited(text, &params, edits),
        Err(_) => text.push_str(&rebuilt),
    }
}

/// `params` with the members of this hop.
fn with_members(params: Option<Value<'_>>, edits: &[Edit<'_>]) -> String {
    let hops = edits.iter().filter_map(|edit| match edit {
        Edit::Hop(member, text) => Some((member.key(), *text)),
        _ => None,
    });
    let changed: Vec<(&str, Option<&str>)> = hops.collect();
    object_with(params, &changed)
}

/// An object with some members put in, replaced or, with nothing, taken out. All others stay as written.
#[must_use]
pub fn object_with(object: Option<Value<'_>>, changed: &[(&str, Option<&str>)]) -> String {
    let mut text = String::with_capacity(64 + object.map_or(0, |object| object.raw().len()));
    let mut separator = '{';
    let mut push = |key: &str, value: &str| {
        text.push(separator);
        text.push_str(key);
        text.push(':');
        text.push_str(value);
        separator = ',';
    };
    let mut is_new = vec![true; changed.len()];
    for (key, value) in object.into_iter().flat_map(Value::entries) {
        let plain = unescape(key);
        let place = changed.iter().position(|(name, _)| *name == plain);
        match place.and_then(|place| changed.get(place)) {
            None => push(key, value.raw()),
            Some((_, None)) => {}
            Some((_, Some(other))) => push(key, other),
        }
        if let Some(is_new) = place.and_then(|place| is_new.get_mut(place)) {
            *is_new = false;
        }
    }
    for ((key, value), is_new) in changed.iter().zip(is_new) {
        if let (Some(value), true) = (value, is_new) {
            push(&quoted(key), value);
        }
    }
    text.push_str(if text.is_empty() { "{}" } else { "}" });
    text
}

fn push_edited(text: &mut String, params: &Part, edits: &[Edit<'_>]) {
    let mut splices: Vec<(Range<usize>, &str)> = edits
        .iter()
        .filter_map(|edit| edit.place(params.value()).map(|value| (params.span_of(value), edit.text())))
        .collect();
    splices.sort_unstable_by_key(|(range, _)| range.start);
    push_spliced(text, params.raw(), &splices);
}

/// `source` with ranges replaced; ranges are sorted and apart.
pub fn push_spliced(text: &mut String, source: &str, splices: &[(Range<usize>, &str)]) {
    let mut done = 0;
    for (range, replacement) in splices {
        text.push_str(source.get(done..range.start).unwrap_or_default());
        text.push_str(replacement);
        done = range.end;
    }
    text.push_str(source.get(done..).unwrap_or_default());
}

/// The beginning of a message, with room for so much more.
fn envelope(id: Option<&Id>, more: usize) -> String {
    let mut text = String::with_capacity(64 + id.map_or(0, |id| id.raw().len()) + more);
    text.push_str("{\"jsonrpc\":\"2.0\"");
    if let Some(id) = id {
        push_member(&mut text, "id", id.raw());
    }
    text
}

fn push_member(text: &mut String, key: &str, raw: &str) {
    text.push_str(",\"");
    text.push_str(key);
    text.push_str("\":");
    text.push_str(raw);
}

/// A text as a JSON string.
#[must_use]
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A response for a client, around a raw result.
#[must_use]
pub fn result(id: &Id, result: &str) -> Bytes {
    let mut text = envelope(Some(id), result.len());
    push_member(&mut text, "result", result);
    text.push('}');
    text.into()
}

/// An error for a client. Without an id where the request's could not be read.
#[must_use]
pub fn error(id: Option<&Id>, code: i64, message: &str, data: Option<&serde_json::Value>) -> Bytes {
    let mut error = serde_json::json!({ "code": code, "message": message });
    if let (Some(data), Some(object)) = (data, error.as_object_mut()) {
        object.insert("data".to_owned(), data.clone());
    }
    raw_error(id, &error.to_string())
}

/// An error for a client, around a raw error object.
#[must_use]
pub fn raw_error(id: Option<&Id>, error: &str) -> Bytes {
    let mut text = envelope(None, 64 + error.len());
    // JSON-RPC wants `null` where the id is unknown.
    push_member(&mut text, "id", id.map_or("null", Id::raw));
    push_member(&mut text, "error", error);
    text.push('}');
    text.into()
}

/// A request or notification for a client.
#[must_use]
pub fn to_client(id: Option<&Id>, method: &str, params: Option<&str>) -> Bytes {
    let mut text = envelope(id, 64 + method.len() + params.map_or(0, str::len));
    push_member(&mut text, "method", &quoted(method));
    if let Some(params) = params {
        push_member(&mut text, "params", params);
    }
    text.push('}');
    text.into()
}

#[cfg(test)]
#[path = "compose_tests.rs"]
mod tests;
