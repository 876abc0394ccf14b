//! Notices of an upgrade: changes that concern this database, each told once at a start.

use jiff::Timestamp;
use sqlx::Row as _;

use super::{State, StateError};

/// A change that an upgrade brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpgradeNotice {
    /// Its stable name.
    pub name: String,
    /// When a start told of it; none before.
    pub told_at: Option<Timestamp>,
}

impl State {
    /// The changes that concern this database, told or not.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn upgrade_notices(&self) -> Result<Vec<UpgradeNotice>, StateError> {
        let query = sqlx::query("SELECT name, told_us FROM upgrade_notices ORDER BY name");
        let rows = query.fetch_all(&self.database.pool).await?;
        let notice = |row: &sqlx::any::AnyRow| {
            let told: Option<i64> = row.try_get("told_us")?;
            let told_at = told.and_then(|microseconds| Timestamp::from_microsecond(microseconds).ok());
            Ok(UpgradeNotice { name: row.try_get("name")?, told_at })
        };
        rows.iter().map(notice).collect()
    }

    /// Marks a change as told; false where another start was faster.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn tell_upgrade(&self, name: &str, at: Timestamp) -> Result<bool, StateError> {
        let mut writing = self.begin_writing().await?;
        let query = "UPDATE upgrade_notices SET told_us = $1 WHERE name = $2 AND told_us IS NULL";
        let told = sqlx::query(query).bind(at.as_microsecond()).bind(name).execute(writing.connection()).await?;
        writing.commit().await?;
        Ok(told.rows_affected() > 0)
    }
}
