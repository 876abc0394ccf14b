//! How the store is sealed: where the master key comes from, the roots, and what each of them sealed.

use serde::{Deserialize, Serialize};
use toolwarden_store::state::Sealed;
use toolwarden_store::{Phase, Standing};

use super::Nothing;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// How an unfinished rotation goes on.
pub const RESUME: &str = "toolwarden vault rotate-key";

/// The operation.
#[derive(Debug)]
pub struct VaultStatus;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// The stable word: `file`, `gnome_libsecret`, `basic_text`, ..
    pub backend: String,
    /// `[vault] key`.
    pub source: String,
    /// Where the key is, in words.
    pub place: String,
    /// Tells the master key from others, and nothing of it.
    pub mark: String,
    /// False where whoever has the data has the key.
    pub protected: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    pub roots: Vec<RootView>,
    /// What no root that is kept can have sealed: somebody changed it.
    pub unknown: Values,
    /// The rotation that is not over.
    pub rotation: Option<RotationView>,
}

/// One root.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RootView {
    pub root: u32,
    /// `waiting`, `current`, `former` or `retired`.
    pub state: String,
    #[serde(flatten)]
    pub sealed: Values,
}

/// How many values are sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Values {
    pub records: u64,
    pub changes: u64,
    pub tokens: u64,
    pub approvals: u64,
}

impl Values {
    #[must_use]
    pub fn all(&self) -> u64 {
        self.records + self.changes + self.tokens + self.approvals
    }
}

impl From<Sealed> for Values {
    fn from(sealed: Sealed) -> Self {
        Self { records: sealed.records, changes: sealed.changes, tokens: sealed.tokens, approvals: sealed.approvals }
    }
}

/// A rotation that is not over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RotationView {
    pub root: u32,
    /// `waiting` or `sealing`.
    pub state: String,
    /// Values that other roots sealed.
    pub left: u64,
    /// The command that goes on with it.
    pub resume: String,
}

impl Operation for VaultStatus {
    const PATH: &'static str = "/api/v1/vault/status";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::State;
    const FOR: Role = Role::Viewer;
    type Request = Nothing;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, _request: Nothing) -> Result<Outcome, ControlError> {
        let state = clerk.state()?;
        let key = state.roots().ok_or(ControlError::Without("the key"))?.master_key();
        let inventory = state.inventory().await?;
        let warning = (!key.is_protected)
            .then(|| "[vault] key = \"plaintext\": whoever can read the database can read everything in it".to_owned());
        let others = inventory.roots.iter().filter(|(row, _)| row.id != inventory.standing.root);
        let left = others.map(|(_, sealed)| sealed.all()).sum();
        let view = |(row, sealed): &(toolwarden_store::KeyRow, Sealed)| RootView {
            root: row.id,
            state: row.state.clone(),
            sealed: (*sealed).into(),
        };
        Ok(Outcome {
            backend: key.backend.to_owned(),
            source: key.source,
            place: key.place,
            mark: key.mark,
            protected: key.is_protected,
            warning,
            roots: inventory.roots.iter().map(view).collect(),
            unknown: inventory.unknown.into(),
            rotation: rotation(inventory.standing, left),
        })
    }
}

fn rotation(standing: Standing, left: u64) -> Option<RotationView> {
    let state = word(standing.phase)?.to_owned();
    Some(RotationView { root: standing.root, state, left, resume: RESUME.to_owned() })
}

/// The stable word for where a rotation stands; none where there is none.
pub(super) fn word(phase: Phase) -> Option<&'static str> {
    match phase {
        Phase::Settled => None,
        Phase::Waiting => Some("waiting"),
        Phase::Sealing => Some("sealing"),
    }
}
