//! Sealing records: what is in the database can be neither read nor moved without the key.
//!
//! The place, the version and whether it is a record or a piece of history are part of every seal, so a row that
//! was copied elsewhere, or that stands under another user's name, does not open.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row as _;
use sqlx::any::AnyRow;
use toolwarden_core::{Claims, GrantClaims, HeldAnswer, HeldCall, Keyring, Purpose, TaskStage};

use super::Place;
use super::{Record, StateError};
use crate::database::DatabaseError;
use crate::sql::unsigned;

/// What a sealed text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Record,
    Former,
    Latter,
}

/// What is sealed of a held call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfApproval {
    Call,
    Answer,
    /// Not of a held call: a grant, which has only its id.
    Grant,
    /// How far the task of one is, with whose it is and what it waits for.
    Task,
}

/// The key, and the forms it seals.
#[derive(Clone)]
pub(super) struct Seals {
    keyring: Arc<dyn Keyring>,
}

impl fmt::Debug for Seals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Seals")
    }
}

impl Seals {
    pub(super) fn new(keyring: Arc<dyn Keyring>) -> Self {
        Self { keyring }
    }

    pub(super) fn seal(
        &self,
        part: Part,
        version: u64,
        place: &Place,
        content: &serde_json::Value,
    ) -> Result<Vec<u8>, StateError> {
        let text = content.to_string();
        let bound_to = binding(part, version, place);
        self.keyring.seal(Purpose::Record, &bound_to, text.as_bytes()).map_err(|_| StateError::Key)
    }

    pub(super) fn open(
        &self,
        part: Part,
        version: u64,
        place: &Place,
        sealed: &[u8],
    ) -> Result<serde_json::Value, StateError> {
        let opened = self.keyring.open(Purpose::Record, &binding(part, version, place), sealed);
        let text = opened.map_err(|_| StateError::NotAuthentic(place.clone()))?;
        // What is authentic was written by this program; another version of it may have other limits.
        serde_json::from_slice(&text).map_err(|error| DatabaseError::Value(format!("{place}: {error}")).into())
    }

    pub(super) fn seal_token(&self, id: &str, digest: &str, claims: &Claims) -> Result<Vec<u8>, StateError> {
        let text = serde_json::to_vec(claims).map_err(|error| DatabaseError::Value(error.to_string()))?;
        self.keyring.seal(Purpose::Token, &token_binding(id, digest), &text).map_err(|_| StateError::Key)
    }

    pub(super) fn open_token(&self, id: &str, digest: &str, sealed: &[u8]) -> Result<Claims, StateError> {
        let opened = self.keyring.open(Purpose::Token, &token_binding(id, digest), sealed);
        // One that says what this version does not understand is as good as none: it must not stop the others.
        let text = opened.map_err(|_| StateError::Token(id.to_owned()))?;
        serde_json::from_slice(&text).map_err(|_| StateError::Token(id.to_owned()))
    }

    pub(super) fn seal_held(&self, id: &str, mark: &str, call: &HeldCall) -> Result<Vec<u8>, StateError> {
        self.seal_of_approval(OfApproval::Call, id, mark, call)
    }

    pub(super) fn open_held(&self, id: &str, mark: &str, sealed: &[u8]) -> Result<HeldCall, StateError> {
        self.open_of_approval(OfApproval::Call, id, mark, sealed)
    }

    pub(super) fn seal_answer(&self, id: &str, mark: &str, answer: &HeldAnswer) -> Result<Vec<u8>, StateError> {
        self.seal_of_approval(OfApproval::Answer, id, mark, answer)
    }

    pub(super) fn open_answer(&self, id: &str, mark: &str, sealed: &[u8]) -> Result<HeldAnswer, StateError> {
        self.open_of_approval(OfApproval::Answer, id, mark, sealed)
    }

    pub(super) fn seal_grant(&self, id: &str, claims: &GrantClaims) -> Result<Vec<u8>, StateError> {
        self.seal_of_approval(OfApproval::Grant, id, "", claims)
    }

    pub(super) fn open_grant(&self, id: &str, sealed: &[u8]) -> Result<GrantClaims, StateError> {
        self.open_of_approval(OfApproval::Grant, id, "", sealed)
    }

    pub(super) fn seal_task(&self, id: &str, bound_to: &str, stage: &TaskStage) -> Result<Vec<u8>, StateError> {
        self.seal_of_approval(OfApproval::Task, id, bound_to, stage)
    }

    pub(super) fn open_task(&self, id: &str, bound_to: &str, sealed: &[u8]) -> Result<TaskStage, StateError> {
        let opened = self.open_of_approval(OfApproval::Task, id, bound_to, sealed);
        opened.map_err(|_| StateError::Task(id.to_owned()))
    }

    fn seal_of_approval(
        &self,
        part: OfApproval,
        id: &str,
        mark: &str,
        content: &impl Serialize,
    ) -> Result<Vec<u8>, StateError> {
        let text = serde_json::to_vec(content).map_err(|error| DatabaseError::Value(error.to_string()))?;
        self.keyring.seal(Purpose::Record, &approval_binding(part, id, mark), &text).map_err(|_| StateError::Key)
    }

    fn open_of_approval<T: DeserializeOwned>(
        &self,
        part: OfApproval,
        id: &str,
        mark: &str,
        sealed: &[u8],
    ) -> Result<T, StateError> {
        let opened = self.keyring.open(Purpose::Record, &approval_binding(part, id, mark), sealed);
        let text = opened.map_err(|_| StateError::Approval(id.to_owned()))?;
        serde_json::from_slice(&text).map_err(|_| StateError::Approval(id.to_owned()))
    }

    /// The same content, sealed by the root that seals now; none where it does not open.
    pub(super) fn again(
        &self,
        part: Part,
        version: u64,
        place: &Place,
        sealed: &[u8],
    ) -> Result<Option<Vec<u8>>, StateError> {
        self.sealed_again(Purpose::Record, &binding(part, version, place), sealed)
    }

    /// The same for a token, also for one that says what this version does not understand.
    pub(super) fn token_again(&self, id: &str, digest: &str, sealed: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        self.sealed_again(Purpose::Token, &token_binding(id, digest), sealed)
    }

    /// The same for what is kept of a held call.
    pub(super) fn approval_again(
        &self,
        part: OfApproval,
        id: &str,
        mark: &str,
        sealed: &[u8],
    ) -> Result<Option<Vec<u8>>, StateError> {
        self.sealed_again(Purpose::Record, &approval_binding(part, id, mark), sealed)
    }

    fn sealed_again(&self, purpose: Purpose, bound_to: &[u8], sealed: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        let Ok(plain) = self.keyring.open(purpose, bound_to, sealed) else { return Ok(None) };
        self.keyring.seal(purpose, bound_to, &plain).map(Some).map_err(|_| StateError::Key)
    }

    /// The record of a row with `version` and `sealed`.
    pub(super) fn record(&self, place: &Place, row: &AnyRow) -> Result<Record, StateError> {
        let version = unsigned(row.try_get("version")?);
        let sealed: Vec<u8> = row.try_get("sealed")?;
        Ok(Record { version, content: self.open(Part::Record, version, place, &sealed)? })
    }
}

/// Lengths stand before texts, so that no two places are bound to the same bytes.
fn binding(part: Part, version: u64, place: &Place) -> Vec<u8> {
    let part = match part {
        Part::Record => 0_u8,
        Part::Former => 1,
        Part::Latter => 2,
    };
    let mut bytes = vec![part];
    bytes.extend(version.to_be_bytes());
    add_texts(&mut bytes, &[place.kind.as_str(), &place.owner, &place.name]);
    bytes
}

fn token_binding(id: &str, digest: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    add_texts(&mut bytes, &[id, digest]);
    bytes
}

/// The first byte is none that a record's begins with.
fn approval_binding(part: OfApproval, id: &str, mark: &str) -> Vec<u8> {
    let mut bytes = vec![match part {
        OfApproval::Call => 3_u8,
        OfApproval::Answer => 4,
        OfApproval::Grant => 5,
        OfApproval::Task => 6,
    }];
    add_texts(&mut bytes, &[id, mark]);
    bytes
}

fn add_texts(bytes: &mut Vec<u8>, texts: &[&str]) {
    for text in texts {
        bytes.extend((text.len() as u64).to_be_bytes());
        bytes.extend(text.as_bytes());
    }
}
