//! One line of a segment: the hash in hexadecimal, a space, the JSON of a record, a line end.
//!
//! The hash is SHA-256 over the hash before and the bytes of the JSON, so that a line proves
//! everything in front of it. The JSON opens with the sequence number and then the kind.

use std::fmt;
use std::io::Write;

use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// A hash of the chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChainHash([u8; 32]);

/// Hexadecimal digits of a hash.
pub(crate) const HASH_DIGITS: usize = 64;

impl ChainHash {
    /// What the first line of a node follows.
    pub const START: Self = Self([0; 32]);

    pub(crate) fn after(self, json: &[u8]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update(json);
        Self(hasher.finalize().into())
    }

    /// Reads lower-case digits, the only spelling there is.
    #[must_use]
    pub fn parse(digits: &[u8]) -> Option<Self> {
        bytes_from_hex(digits).map(Self)
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&toolwarden_core::digest::hex(&self.0))
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for ChainHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

pub(crate) fn bytes_from_hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

pub(crate) fn push_hex(buffer: &mut Vec<u8>, bytes: &[u8]) {
    let letter = |half: u8| if half < 10 { b'0' + half } else { b'a' + half - 10 };
    buffer.reserve(2 * bytes.len());
    buffer.extend(bytes.iter().flat_map(|byte| [letter(byte >> 4), letter(byte & 15)]));
}

/// Appends one line and gives its hash. `members` is the JSON of the record without its opening
/// brace: the sequence number is only known where the order is.
pub(crate) fn push_line(buffer: &mut Vec<u8>, previous: ChainHash, sequence: u64, members: &[u8]) -> ChainHash {
    let start = buffer.len();
    buffer.extend_from_slice(&[b'0'; HASH_DIGITS]);
    buffer.extend_from_slice(b" {\"seq\":");
    // Writing to a vector cannot fail.
    let _ = write!(buffer, "{sequence}");
    buffer.push(b',');
    buffer.extend_from_slice(members);
    let (_, line) = buffer.split_at_mut(start);
    let (digits, rest) = line.split_at_mut(HASH_DIGITS);
    let hash = previous.after(rest.strip_prefix(b" ").unwrap_or_default());
    let letter = |half: u8| if half < 10 { b'0' + half } else { b'a' + half - 10 };
    for (pair, byte) in digits.chunks_exact_mut(2).zip(hash.0) {
        pair.copy_from_slice(&[letter(byte >> 4), letter(byte & 15)]);
    }
    buffer.push(b'\n');
    hash
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    #[error("the line is not a hash and a record")]
    Shape,
    #[error("the record does not carry the sequence number that follows the line before")]
    Sequence,
    #[error("the hash does not fit the record and the line before: something was changed, removed or inserted")]
    Hash,
}

/// Checks a line (without its end) against the one before; gives its hash and JSON.
pub(crate) fn check_line(line: &[u8], previous: ChainHash, sequence: u64) -> Result<(ChainHash, &[u8]), LineFault> {
    let (digits, rest) = line.split_at_checked(HASH_DIGITS).ok_or(LineFault::Shape)?;
    let json = rest.strip_prefix(b" ").ok_or(LineFault::Shape)?;
    let written = ChainHash::parse(digits).ok_or(LineFault::Shape)?;
    let number = json.strip_prefix(b"{\"seq\":").ok_or(LineFault::Shape)?;
    let end = number.iter().position(|byte| *byte == b',').ok_or(LineFault::Shape)?;
    let number = number.get(..end).unwrap_or_default();
    if written != previous.after(json) {
        return Err(LineFault::Hash);
    }
    if number == sequence.to_string().as_bytes() { Ok((written, json)) } else { Err(LineFault::Sequence) }
}

/// What a line is, as far as the journal itself cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LineKind {
    Intent,
    Outcome,
    Refusal,
    Event,
    Segment,
    Checkpoint,
}

/// The members of any line that recovery needs.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Outline {
    pub(crate) kind: LineKind,
    #[serde(default)]
    pub(crate) call: u64,
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
