//! The digest of a call (REVIEW-5): what an approval is bound to.
//!
//! SHA-256 over the whole params with keys sorted, number text and string bytes as sent, without
//! the members that may differ between two sendings of the same call.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::json::{Document, Kind, Part, Value};

/// Members of params that belong to the exchange, not to the call.
const LEFT_OUT: [&str; 2] = ["\"inputResponses\"", "\"requestState\""];

/// Members of `_meta` that belong to the transport, not to the call; with their quotes. What travels under these names
/// is bounded (`mcp::fitting_meta`).
pub const LEFT_OUT_OF_META: [&str; 8] = [
    "\"progressToken\"",
    "\"io.modelcontextprotocol/protocolVersion\"",
    "\"io.modelcontextprotocol/clientInfo\"",
    "\"io.modelcontextprotocol/clientCapabilities\"",
    "\"io.modelcontextprotocol/logLevel\"",
    "\"traceparent\"",
    "\"tracestate\"",
    "\"baggage\"",
];

/// A SHA-256 value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a call's params.
    #[must_use]
    pub fn of_params(params: &Document) -> Self {
        Self::of_value(params.root())
    }

    /// The same for params that stand inside a message.
    #[must_use]
    pub fn of_part(params: &Part) -> Self {
        Self::of_value(params.value())
    }

    /// The digest of any JSON value, whatever the order of its keys.
    #[must_use]
    pub fn of_json(value: Value<'_>) -> Self {
        let mut hasher = Sha256::new();
        write_value(&mut hasher, value);
        Self(hasher.finalize().into())
    }

    fn of_value(params: Value<'_>) -> Self {
        let mut hasher = Sha256::new();
        write_object(&mut hasher, params, &LEFT_OUT, Place::Params);
        Self(hasher.finalize().into())
    }

    /// A value computed elsewhere, such as a keyed mark.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest of plain bytes: a file, a shell line.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |value: u8| DIGITS.get(usize::from(value & 0xf)).copied().unwrap_or('0');
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]));
    text
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Params,
    Elsewhere,
}

/// Depth is bounded by the limits the document was parsed under, so recursion is too.
fn write_value(hasher: &mut Sha256, value: Value<'_>) {
    match value.kind() {
        Kind::Object => write_object(hasher, value, &[], Place::Elsewhere),
        Kind::Array => {
            hasher.update(b"[");
            for (index, item) in value.items().enumerate() {
                hasher.update(if index == 0 { "" } else { "," });
                write_value(hasher, item);
            }
            hasher.update(b"]");
        }
        Kind::Null | Kind::True | Kind::False | Kind::Number | Kind::String => hasher.update(value.raw()),
    }
}

fn write_object(hasher: &mut Sha256, object: Value<'_>, left_out: &[&str], place: Place) {
    if object.kind() != Kind::Object {
        return write_value(hasher, object);
    }
    let mut members: Vec<_> = object.entries().filter(|(key, _)| !left_out.contains(key)).collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    hasher.update(b"{");
    for (index, (key, value)) in members.into_iter().enumerate() {
        hasher.update(if index == 0 { "" } else { "," });
        hasher.update(key);
        hasher.update(b":");
        if place == Place::Params && key == "\"_meta\"" {
            write_object(hasher, value, &LEFT_OUT_OF_META, Place::Elsewhere);
        } else {
            write_value(hasher, value);
        }
    }
    hasher.update(b"}");
}

#[cfg(test)]
#[path = "digest_tests.rs"]
mod tests;
