//! Rows of the record, newest first, page by page.

use serde::{Deserialize, Serialize};

use crate::selection::Selection;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// At most so many rows come at once; `next` leads on.
const MOST_ROWS: u32 = 1000;
const USUAL_ROWS: u32 = 50;

/// The operation.
#[derive(Debug)]
pub struct AuditQuery;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    #[serde(flatten)]
    pub selection: Selection,
    pub limit: Option<u32>,
    /// `next` of the former page.
    pub after: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// Each with every field of a row.
    pub rows: Vec<serde_json::Value>,
    /// Where the next page begins; none at the end.
    pub next: Option<String>,
    /// Journals that could not be read to their end.
    pub problems: Vec<String>,
}

impl Operation for AuditQuery {
    const PATH: &'static str = "/api/v1/audit";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Index;
    const FOR: Role = Role::Auditor;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let filter = request.selection.filter()?;
        let limit = request.limit.unwrap_or(USUAL_ROWS).min(MOST_ROWS);
        let after = super::audit_export::cursor(request.after.as_deref())?;
        let (index, problems) = clerk.index().await?;
        let rows = index.query(&filter, limit, after.as_ref()).await?;
        let is_full = u32::try_from(rows.len()).is_ok_and(|count| count == limit);
        let next = rows.last().filter(|_| is_full).map(|row| row.cursor().to_string());
        let rows = rows.iter().map(|row| serde_json::to_value(row).unwrap_or_default()).collect();
        Ok(Outcome { rows, next, problems })
    }
}
