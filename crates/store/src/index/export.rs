//! Exporting rows, oldest first, as JSON lines or as a table for spreadsheets (CSV); other forms are beside.
//!
//! Reads page by page, so that an export of any size needs little memory.

use toolwarden_core::name::{shown, shown_json};

use super::query::{Filter, Order, PageCursor};
use super::row::Row;
use super::{Index, IndexError};

const PAGE: u32 = 1000;

/// The first line of a CSV export.
pub const CSV_HEADER: &str = "time,kind,decision,stage,reason,status,server,tool,user,agent_type,token_id,task_id,\
approval_id,duration_us,door,method,groups,mode,project_id,run_id,job_id,session,rule,rule_source,policy_version,\
request_bytes,response_bytes,arguments_digest,detail,node,call,sequence,hash,outcome_sequence,client,client_version,\
event,arguments\n";

/// An export under way.
#[derive(Debug)]
pub struct Export {
    index: Index,
    filter: Filter,
    after: Option<PageCursor>,
    is_done: bool,
}

impl Index {
    /// Begins an export of the rows a filter names.
    #[must_use]
    pub fn export(&self, filter: Filter) -> Export {
        Export { index: self.clone(), filter, after: None, is_done: false }
    }
}

impl Export {
    /// Goes on behind a row that was exported before.
    #[must_use]
    pub fn behind(mut self, row: Option<PageCursor>) -> Self {
        self.after = row;
        self
    }

    /// The next rows, oldest first; empty at the end.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn next_page(&mut self) -> Result<Vec<Row>, IndexError> {
        if self.is_done {
            return Ok(Vec::new());
        }
        let rows = self.index.page(&self.filter, PAGE, self.after.as_ref(), Order::OldestFirst).await?;
        self.after = rows.last().map(Row::cursor);
        self.is_done = rows.is_empty();
        Ok(rows)
    }
}

impl Row {
    /// One line of JSON.
    #[must_use]
    pub fn to_json_line(&self) -> String {
        one_line(&serde_json::to_string(self).unwrap_or_default())
    }

    /// What happened, in a few words.
    pub(super) fn summary(&self) -> String {
        let target = self.tool.as_deref().or(self.method.as_deref());
        let words = [
            self.decision.clone().or_else(|| Some(self.kind.clone())),
            Some([self.server.as_deref(), target].into_iter().flatten().collect::<Vec<_>>().join(":")),
            self.reason.clone(),
            self.status.clone().filter(|status| !matches!(status.as_str(), "held" | "denied")),
        ];
        words.into_iter().flatten().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// One line of CSV, in the order of `CSV_HEADER`.
    #[must_use]
    pub fn to_csv_line(&self) -> String {
        // The JSON has the fields in the order of the header, by construction and by test.
        let value = serde_json::to_value(self).unwrap_or_default();
        let cells = value.as_object().into_iter().flat_map(|fields| fields.values());
        let mut line = cells.map(cell).collect::<Vec<_>>().join(",");
        line.push('\n');
        line
    }
}

/// A line of JSON, in which nothing acts on a terminal or hides.
pub(super) fn one_line(json: &str) -> String {
    let mut line = shown_json(json).into_owned();
    line.push('\n');
    line
}

fn cell(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => quoted(text),
        serde_json::Value::Array(items) => {
            let texts: Vec<&str> = items.iter().filter_map(serde_json::Value::as_str).collect();
            quoted(&texts.join(" "))
        }
        object @ serde_json::Value::Object(_) => quoted(&object.to_string()),
        other => other.to_string(),
    }
}

/// Names come from servers and clients, and spreadsheets run cells that look like formulas. Some of them take
/// semicolons and tabs for the end of a cell; control characters are written out, so a row is one line.
fn quoted(text: &str) -> String {
    let is_formula = text.trim_start().starts_with(['=', '+', '-', '@']);
    let text = shown(text);
    let text = if is_formula { format!("'{text}") } else { text.into_owned() };
    if text.contains(['"', ',', ';']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
