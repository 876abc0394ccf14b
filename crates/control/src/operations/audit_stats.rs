//! Numbers over the record: decisions, statuses, tools, users, durations.

use serde::{Deserialize, Serialize};
use toolwarden_store::index::Stats;

use crate::selection::Selection;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct AuditStats;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub stats: Stats,
    /// Journals that could not be read to their end.
    pub problems: Vec<String>,
}

impl Operation for AuditStats {
    const PATH: &'static str = "/api/v1/audit/stats";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Index;
    const FOR: Role = Role::Auditor;
    type Request = Selection;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, request: Selection) -> Result<Outcome, ControlError> {
        let filter = request.filter()?;
        let (index, problems) = clerk.index().await?;
        Ok(Outcome { stats: index.stats(&filter).await?, problems })
    }
}
