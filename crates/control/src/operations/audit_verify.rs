//! Whether every chain of the record is whole, also compared with what the index has seen.

use serde::{Deserialize, Serialize};
use toolwarden_store::journal::{NodeReport, verify};

use super::Nothing;
use crate::clerk::blocking;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct AuditVerify;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub whole: bool,
    pub nodes: Vec<NodeReport>,
}

impl Operation for AuditVerify {
    const PATH: &'static str = "/api/v1/audit/verify";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::IndexAndKey;
    const FOR: Role = Role::Auditor;
    type Request = Nothing;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, _request: Nothing) -> Result<Outcome, ControlError> {
        // Nothing is delivered first: what the index remembers must be older than what is checked. A chain
        // proves itself without an index, but for its end.
        let seen = match &clerk.parts.index {
            Some(index) => index.seen().await?,
            None => Vec::new(),
        };
        let root = clerk.journal_root();
        if !root.is_dir() && seen.is_empty() {
            return Ok(Outcome { whole: true, nodes: Vec::new() });
        }
        let keyring = clerk.keyring()?;
        let report = blocking(move || Ok(verify(&root, keyring.as_ref(), &seen)?)).await?;
        Ok(Outcome { whole: report.is_whole(), nodes: report.nodes })
    }
}
