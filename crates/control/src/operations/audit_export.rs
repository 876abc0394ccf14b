//! Rows of the record as lines of text, oldest first, page by page.

use serde::{Deserialize, Serialize};
use toolwarden_store::index::{CSV_HEADER, PageCursor};

use crate::selection::Selection;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct AuditExport;

/// What the lines look like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// One JSON object per line.
    #[default]
    Jsonl,
    /// A table for spreadsheets; its first page begins with the names of the columns.
    Csv,
    /// One JSON object per line, as API Activity of the Open Cybersecurity Schema Framework.
    Ocsf,
    /// Lines of RFC 5424.
    Syslog,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    #[serde(flatten)]
    pub selection: Selection,
    pub format: Format,
    /// `next` of the former page.
    pub after: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub text: String,
    /// Where the next page begins; none at the end.
    pub next: Option<String>,
    /// Journals that could not be read to their end.
    pub problems: Vec<String>,
}

impl Operation for AuditExport {
    const PATH: &'static str = "/api/v1/audit/export";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Index;
    const FOR: Role = Role::Auditor;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let filter = request.selection.filter()?;
        let after = cursor(request.after.as_deref())?;
        let (index, problems) = clerk.index().await?;
        let begins = after.is_none();
        let rows = index.export(filter).behind(after).next_page().await?;
        let mut text = if begins && request.format == Format::Csv { CSV_HEADER.to_owned() } else { String::new() };
        for row in &rows {
            text.push_str(&match request.format {
                Format::Jsonl => row.to_json_line(),
                Format::Csv => row.to_csv_line(),
                Format::Ocsf => row.to_ocsf_line(),
                Format::Syslog => row.to_syslog_line(),
            });
        }
        let next = rows.last().map(|row| row.cursor().to_string());
        Ok(Outcome { text, next, problems })
    }
}

/// A cursor that came with a request.
pub(super) fn cursor(text: Option<&str>) -> Result<Option<PageCursor>, ControlError> {
    text.map(str::parse).transpose().map_err(|fault: toolwarden_store::index::CursorFault| {
        ControlError::BadInput(format!("`after` is {fault}; take `next` of the former page"))
    })
}
