//! Asking for rows: newest first, by filters, page after page.
//!
//! Takes a filter and where the last page ended; gives rows. All values are bound, never pasted.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use super::row::{COLUMNS, Row};
use super::{Index, IndexError, signed};
use crate::sql::Sql;

/// Which rows; an empty filter means all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub kind: Option<String>,
    pub decision: Option<String>,
    pub status: Option<String>,
    pub server: Option<String>,
    pub tool: Option<String>,
    pub user: Option<String>,
    pub mode: Option<String>,
    /// Of the agent.
    pub role: Option<String>,
    /// A token's id.
    pub token: Option<String>,
    /// Not before.
    pub since: Option<Timestamp>,
    /// Before.
    pub until: Option<Timestamp>,
}

impl Filter {
    /// Narrows to `server:tool`, `server:*`, `*:tool` or `server`.
    #[must_use]
    pub fn with_tool(mut self, text: &str) -> Self {
        let (server, tool) = text.split_once(':').unwrap_or((text, "*"));
        let named = |name: &str| (name != "*").then(|| name.to_owned());
        self.server = named(server);
        self.tool = named(tool);
        self
    }

    /// Adds the filter as a `WHERE` clause.
    pub(super) fn push_to(&self, sql: &mut Sql) {
        sql.push(" WHERE 1 = 1");
        let texts = [
            (" AND kind = ", &self.kind),
            (" AND decision = ", &self.decision),
            (" AND status = ", &self.status),
            (" AND server = ", &self.server),
            (" AND tool = ", &self.tool),
            (" AND user_name = ", &self.user),
            (" AND mode = ", &self.mode),
            (" AND agent_type = ", &self.role),
            (" AND token_id = ", &self.token),
        ];
        for (condition, value) in texts {
            if let Some(value) = value {
                sql.push(condition).bind(value.clone());
            }
        }
        if let Some(since) = self.since {
            sql.push(" AND time_us >= ").bind(since.as_microsecond());
        }
        if let Some(until) = self.until {
            sql.push(" AND time_us < ").bind(until.as_microsecond());
        }
    }
}

/// Where a page ended; the next one begins after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageCursor {
    pub(super) time_us: i64,
    pub(super) sequence: u64,
    pub(super) node: String,
}

/// A text that is no cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of an audit query")]
pub struct CursorFault;

impl fmt::Display for PageCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.time_us, self.sequence, self.node)
    }
}

impl FromStr for PageCursor {
    type Err = CursorFault;

    fn from_str(text: &str) -> Result<Self, CursorFault> {
        let mut parts = text.splitn(3, '.');
        let (Some(time), Some(sequence), Some(node)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(CursorFault);
        };
        let time_us = time.parse().map_err(|_| CursorFault)?;
        let sequence = sequence.parse().map_err(|_| CursorFault)?;
        Ok(Self { time_us, sequence, node: node.to_owned() })
    }
}

impl Row {
    /// The place of this row in a query.
    #[must_use]
    pub fn cursor(&self) -> PageCursor {
        PageCursor { time_us: self.time_us(), sequence: self.sequence, node: self.node.clone() }
    }
}

/// Which end comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    NewestFirst,
    OldestFirst,
}

impl Index {
    /// At most `limit` rows, newest first, that come after a cursor.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn query(&self, filter: &Filter, limit: u32, after: Option<&PageCursor>) -> Result<Vec<Row>, IndexError> {
        self.page(filter, limit, after, Order::NewestFirst).await
    }

    pub(super) async fn page(
        &self,
        filter: &Filter,
        limit: u32,
        after: Option<&PageCursor>,
        order: Order,
    ) -> Result<Vec<Row>, IndexError> {
        let (comparison, ordering) = match order {
            Order::NewestFirst => {
                (" AND (time_us, node, sequence) < (", " ORDER BY time_us DESC, node DESC, sequence DESC")
            }
            Order::OldestFirst => (" AND (time_us, node, sequence) > (", " ORDER BY time_us, node, sequence"),
        };
        let mut sql = Sql::new(self.database.engine(), "SELECT ");
        sql.push(COLUMNS).push(" FROM audit_calls");
        filter.push_to(&mut sql);
        if let Some(after) = after {
            sql.push(comparison).bind(after.time_us).push(", ").bind(after.node.clone());
            sql.push(", ").bind(signed(after.sequence)).push(")");
        }
        sql.push(ordering).push(" LIMIT ").bind(i64::from(limit));
        let rows = sql.query().fetch_all(&self.database.pool).await?;
        rows.iter().map(Row::read).collect()
    }
}
