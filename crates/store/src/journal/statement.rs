//! What the journal signs: the opening of a segment, checkpoints inside it, and the file `head`.
//!
//! A statement names the node, the segment, a sequence number and the hash there, and what kind of
//! statement it is, so that none can stand in another's place.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolwarden_core::keyring::Signature;
use toolwarden_core::{Keyring, KeyringError, Purpose};

use super::line::{ChainHash, bytes_from_hex, push_hex};

/// The format of lines, segments and statements.
pub(crate) const FORMAT: u32 = 1;

/// Which statement it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matter {
    Segment,
    Checkpoint,
    Head,
    /// Everything up to here was removed.
    Pruned,
}

/// What is said: up to here the node wrote, and this was the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Statement<'a> {
    pub(crate) matter: Matter,
    pub(crate) node: &'a str,
    pub(crate) segment: u64,
    pub(crate) sequence: u64,
    pub(crate) hash: ChainHash,
}

impl Statement<'_> {
    fn text(&self) -> String {
        let matter = match self.matter {
            Matter::Segment => "segment",
            Matter::Checkpoint => "checkpoint",
            Matter::Head => "head",
            Matter::Pruned => "pruned",
        };
        let Self { node, segment, sequence, hash, .. } = self;
        format!("toolwarden journal {FORMAT} {matter}\n{node}\n{segment}\n{sequence}\n{hash}\n")
    }

    pub(crate) fn sign(&self, keyring: &dyn Keyring) -> Result<Signed, KeyringError> {
        let signature = keyring.sign(Purpose::Checkpoint, self.text().as_bytes())?;
        Ok(Signed { public_key: hex(&signature.public_key), signature: hex(&signature.bytes) })
    }

    pub(crate) fn is_signed(&self, keyring: &dyn Keyring, signed: &Signed) -> bool {
        let (Some(public_key), Some(bytes)) =
            (bytes_from_hex(signed.public_key.as_bytes()), bytes_from_hex(signed.signature.as_bytes()))
        else {
            return false;
        };
        keyring.verifies(Purpose::Checkpoint, self.text().as_bytes(), &Signature { public_key, bytes })
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = Vec::with_capacity(bytes.len() * 2);
    push_hex(&mut digits, bytes);
    String::from_utf8(digits).unwrap_or_default()
}

/// A signature as it stands in a line or file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Signed {
    pub(crate) public_key: String,
    pub(crate) signature: String,
}

/// The first record of a segment. It also says what a reader of this segment alone must know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SegmentHeader {
    pub(crate) seq: u64,
    pub(crate) kind: SegmentKind,
    pub(crate) time: Timestamp,
    pub(crate) node: String,
    pub(crate) segment: u64,
    pub(crate) format: u32,
    pub(crate) previous: String,
    /// The smallest call id not given out when the segment began.
    pub(crate) next_call: u64,
    /// Calls that had left and not ended when the segment began.
    pub(crate) open_calls: Vec<u64>,
    #[serde(flatten)]
    pub(crate) signed: Signed,
}

/// A checkpoint inside a segment: about the line in front of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    pub(crate) seq: u64,
    pub(crate) kind: CheckpointKind,
    pub(crate) time: Timestamp,
    #[serde(flatten)]
    pub(crate) signed: Signed,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SegmentKind {
    Segment,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckpointKind {
    Checkpoint,
}

/// The file `head`: how far the node had written when it last signed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) node: String,
    pub(crate) segment: u64,
    pub(crate) sequence: u64,
    pub(crate) hash: String,
    pub(crate) signed: Signed,
}

impl Head {
    pub(crate) fn sign(
        keyring: &dyn Keyring,
        node: &str,
        segment: u64,
        sequence: u64,
        hash: ChainHash,
    ) -> Result<Self, KeyringError> {
        Self::sign_as(Matter::Head, keyring, node, segment, sequence, hash)
    }

    pub(crate) fn sign_as(
        matter: Matter,
        keyring: &dyn Keyring,
        node: &str,
        segment: u64,
        sequence: u64,
        hash: ChainHash,
    ) -> Result<Self, KeyringError> {
        let signed = Statement { matter, node, segment, sequence, hash }.sign(keyring)?;
        Ok(Self { node: node.to_owned(), segment, sequence, hash: hash.to_string(), signed })
    }

    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// Reads a head that is byte for byte what this node signed.
    pub(crate) fn read(text: &[u8], keyring: &dyn Keyring, node: &str) -> Option<(Self, ChainHash)> {
        Self::read_as(Matter::Head, text, keyring, node)
    }

    pub(crate) fn read_as(matter: Matter, text: &[u8], keyring: &dyn Keyring, node: &str) -> Option<(Self, ChainHash)> {
        let head: Self = serde_json::from_slice(text).ok()?;
        let hash = ChainHash::parse(head.hash.as_bytes())?;
        let (segment, sequence) = (head.segment, head.sequence);
        let statement = Statement { matter, node, segment, sequence, hash };
        let is_own = head.node == node && head.text() == text && statement.is_signed(keyring, &head.signed);
        is_own.then_some((head, hash))
    }
}
