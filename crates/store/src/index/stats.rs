//! Numbers over the rows: counts by decision, status, tool and user, and how long calls took.

use serde::{Deserialize, Serialize};
use sqlx::Row as _;

use super::query::Filter;
use super::{Index, IndexError, signed, unsigned};
use crate::sql::Sql;

/// At most so many different values are counted per question.
const MOST_VALUES: i64 = 100;

/// How often a value occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    pub name: String,
    pub count: u64,
}

/// Durations in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durations {
    pub calls: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub max: u64,
}

/// The numbers of the rows a filter names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    pub total: u64,
    pub by_decision: Vec<Count>,
    pub by_status: Vec<Count>,
    /// `server:tool`.
    pub by_tool: Vec<Count>,
    pub by_user: Vec<Count>,
    /// None where no call has ended.
    pub duration_us: Option<Durations>,
}

impl Index {
    /// Counts the rows a filter names, most frequent first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn stats(&self, filter: &Filter) -> Result<Stats, IndexError> {
        Ok(Stats {
            total: self.number("SELECT COUNT(*) FROM audit_calls", filter, "").await?,
            by_decision: self.counts("decision", filter).await?,
            by_status: self.counts("status", filter).await?,
            by_tool: self.counts("server || ':' || tool", filter).await?,
            by_user: self.counts("user_name", filter).await?,
            duration_us: self.durations(filter).await?,
        })
    }

    async fn counts(&self, expression: &'static str, filter: &Filter) -> Result<Vec<Count>, IndexError> {
        let mut sql = Sql::new(self.database.engine(), "SELECT name, COUNT(*) AS occurrences FROM (SELECT ");
        sql.push(expression).push(" AS name FROM audit_calls");
        filter.push_to(&mut sql);
        sql.push(") AS named WHERE name IS NOT NULL GROUP BY name ORDER BY occurrences DESC, name LIMIT ");
        sql.bind(MOST_VALUES);
        let rows = sql.query().fetch_all(&self.database.pool).await?;
        let count = |row: &sqlx::any::AnyRow| {
            Ok(Count { name: row.try_get("name")?, count: unsigned(row.try_get("occurrences")?) })
        };
        rows.iter().map(count).collect()
    }

    async fn durations(&self, filter: &Filter) -> Result<Option<Durations>, IndexError> {
        let ended = " AND duration_us IS NOT NULL";
        let calls = self.number("SELECT COUNT(*) FROM audit_calls", filter, ended).await?;
        if calls == 0 {
            return Ok(None);
        }
        // The nearest rank, by position: every SQL database can do that.
        let rank = |percent: u64| (calls * percent).div_ceil(100).saturating_sub(1);
        let mut at = [0; 4];
        for (value, rank) in at.iter_mut().zip([rank(50), rank(90), rank(99), calls - 1]) {
            let mut sql = Sql::new(self.database.engine(), "SELECT duration_us FROM audit_calls");
            filter.push_to(&mut sql);
            sql.push(ended).push(" ORDER BY duration_us LIMIT 1 OFFSET ").bind(signed(rank));
            let found = sql.query().fetch_optional(&self.database.pool).await?;
            *value = unsigned(found.map(|row| row.try_get(0)).transpose()?.unwrap_or_default());
        }
        let [p50, p90, p99, max] = at;
        Ok(Some(Durations { calls, p50, p90, p99, max }))
    }

    async fn number(&self, select: &'static str, filter: &Filter, more: &'static str) -> Result<u64, IndexError> {
        let mut sql = Sql::new(self.database.engine(), select);
        filter.push_to(&mut sql);
        sql.push(more);
        Ok(unsigned(sql.query().fetch_one(&self.database.pool).await?.try_get(0)?))
    }
}
