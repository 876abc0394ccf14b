//! Flow labels that callers have met (GATE-20), shared by everyone who uses this store (WORK-3).
//!
//! One row for each anchor and label, so that two processes that add labels at the same time lose none. Labels are only
//! ever added; those of a person end after eight idle hours, those of a token or run with it.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::Row as _;

use super::{State, StateError};
use crate::sql::Sql;

/// Labels of a person end after so long without a call.
pub const IDLE_LIFE: Duration = Duration::from_secs(8 * 60 * 60);
/// Calls are noted at least this often, not one by one. Labels live longer by as much, so that none ends early.
pub const NOTED_WITHIN: Duration = Duration::from_secs(2 * 60);
/// Anchors in one statement.
const AT_ONCE: usize = 200;

/// What labels are kept for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AnchorKind {
    Token,
    Run,
    /// A person without a token, in a workspace.
    Person,
}

impl AnchorKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Run => "run",
            Self::Person => "person",
        }
    }
}

/// A keyed mark of a token, a run, or a person in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Anchor {
    pub kind: AnchorKind,
    pub mark: String,
}

impl State {
    /// The labels met under these anchors, each with the mark of its anchor.
    ///
    /// # Errors
    /// The database cannot be read; then nobody knows, which is not the same as none.
    pub async fn labels(&self, anchors: &[Anchor], now: Timestamp) -> Result<Vec<(String, String)>, StateError> {
        if anchors.is_empty() {
            return Ok(Vec::new());
        }
        let mut sql = Sql::new(self.database.engine(), "SELECT anchor, label FROM flow_labels WHERE (kind <> ");
        sql.bind("person").push(" OR used_us > ").bind(oldest(now)).push(") AND anchor IN (");
        for anchor in anchors {
            sql.value(anchor.mark.clone());
        }
        sql.push(") ORDER BY anchor, label");
        let rows = sql.query().fetch_all(&self.database.pool).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Adds labels to every one of these anchors, durably.
    ///
    /// # Errors
    /// The database cannot be written; then the call that would meet them must not be made.
    pub async fn add_labels(&self, anchors: &[Anchor], labels: &[String], now: Timestamp) -> Result<(), StateError> {
        let rows: Vec<_> = anchors.iter().flat_map(|anchor| labels.iter().map(move |label| (anchor, label))).collect();
        for rows in rows.chunks(AT_ONCE) {
            let mut sql =
                Sql::new(self.database.engine(), "INSERT INTO flow_labels (anchor, label, kind, used_us) VALUES ");
            sql.rows(rows, |sql, (anchor, label)| {
                sql.value(anchor.mark.clone()).value((*label).clone());
                sql.value(anchor.kind.as_str()).value(now.as_microsecond());
            });
            sql.push(
                " ON CONFLICT (anchor, label) DO UPDATE SET used_us = CASE WHEN excluded.used_us > flow_labels.used_us \
                 THEN excluded.used_us ELSE flow_labels.used_us END",
            );
            sql.query().execute(&self.database.pool).await?;
        }
        Ok(())
    }

    /// Notes that calls were made under these anchors: the labels they have met live on. Those that had ended stay ended.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn note_use(&self, anchors: &[Anchor], now: Timestamp) -> Result<(), StateError> {
        for anchors in anchors.chunks(AT_ONCE) {
            let mut sql = Sql::new(self.database.engine(), "UPDATE flow_labels SET used_us = ");
            sql.bind(now.as_microsecond()).push(" WHERE used_us < ").bind(now.as_microsecond());
            sql.push(" AND (kind <> ")
                .bind("person")
                .push(" OR used_us > ")
                .bind(oldest(now))
                .push(") AND anchor IN (");
            for anchor in anchors {
                sql.value(anchor.mark.clone());
            }
            sql.push(")");
            sql.query().execute(&self.database.pool).await?;
        }
        Ok(())
    }

    /// Deletes what has ended: labels of persons after eight idle hours; those of tokens and runs after as long, where
    /// `is_live` says that their token, or every token of their run, has ended.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn forget_labels(&self, now: Timestamp, is_live: impl Fn(&str) -> bool + Send) -> Result<(), StateError> {
        let old = oldest(now);
        let query = "DELETE FROM flow_labels WHERE kind = 'person' AND used_us <= $1";
        sqlx::query(query).bind(old).execute(&self.database.pool).await?;
        let query = "SELECT DISTINCT anchor FROM flow_labels WHERE kind <> 'person' AND used_us <= $1";
        let rows = sqlx::query(query).bind(old).fetch_all(&self.database.pool).await?;
        for row in &rows {
            let anchor: String = row.try_get(0)?;
            if !is_live(&anchor) {
                let query = "DELETE FROM flow_labels WHERE anchor = $1 AND used_us <= $2";
                sqlx::query(query).bind(&anchor).bind(old).execute(&self.database.pool).await?;
            }
        }
        Ok(())
    }
}

fn oldest(now: Timestamp) -> i64 {
    let oldest = now.checked_sub(IDLE_LIFE + NOTED_WITHIN).unwrap_or(Timestamp::MIN);
    oldest.as_microsecond()
}
