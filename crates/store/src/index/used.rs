//! Which tools were used, by those a filter names: what a mode or role has to permit at least.

use serde::{Deserialize, Serialize};
use sqlx::Row as _;

use super::query::Filter;
use super::{Index, IndexError, unsigned};
use crate::sql::Sql;

/// More different tools nobody uses.
const MOST: i64 = 10_000;

/// A tool, and how often it was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    pub server: String,
    pub tool: String,
    pub calls: u64,
}

impl Index {
    /// The tools of calls that left, by name.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn used(&self, filter: &Filter) -> Result<Vec<Used>, IndexError> {
        let filter = Filter { kind: Some("intent".to_owned()), ..filter.clone() };
        let mut sql = Sql::new(self.database.engine(), "SELECT server, tool, COUNT(*) AS calls FROM audit_calls");
        filter.push_to(&mut sql);
        sql.push(" AND server IS NOT NULL AND tool IS NOT NULL GROUP BY server, tool ORDER BY server, tool LIMIT ");
        sql.bind(MOST);
        let rows = sql.query().fetch_all(&self.database.pool).await?;
        let used = |row: &sqlx::any::AnyRow| {
            let (server, tool) = (row.try_get("server")?, row.try_get("tool")?);
            Ok(Used { server, tool, calls: unsigned(row.try_get("calls")?) })
        };
        rows.iter().map(used).collect()
    }
}
