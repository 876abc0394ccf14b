//! Tasks of held calls: made, found by whoever they belong to, moved on, forgotten. How far one is, is sealed with its id,
//! its owner and the approval it waits for.

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::any::AnyRow;
use toolwarden_core::{TaskStage, Weakness, weak};

use super::{State, StateError};
use crate::database::DatabaseError;
use crate::sql::{signed, unsigned};

/// Tasks of one caller that are kept, and the bytes of what they gave.
const MOST_OF_ONE: i64 = 4_000;
const MOST_BYTES_OF_ONE: i64 = 64 * 1024 * 1024;
/// What is no longer than this always has room: that a task was stopped, or why it gave nothing.
const SMALL: i64 = 4 * 1024;

/// The task of a held call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldTask {
    pub id: String,
    /// What it waits for, or waited for.
    pub approval: String,
    pub caller_mark: String,
    pub stage: TaskStage,
    pub made_at: Timestamp,
    pub changed_at: Timestamp,
    pub expires_at: Timestamp,
    version: u64,
}

/// A task that is to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewHeldTask<'a> {
    pub id: &'a str,
    pub approval: &'a str,
    pub caller_mark: &'a str,
    pub now: Timestamp,
    pub expires_at: Timestamp,
}

impl State {
    /// Makes a task of a held call, or finds the one there is; none where its caller has as many as may be.
    ///
    /// # Errors
    /// The database cannot be written; then there is none.
    pub async fn make_task(&self, new: NewHeldTask<'_>) -> Result<Option<HeldTask>, StateError> {
        let mut writing = self.begin_writing().await?;
        let query = "SELECT * FROM held_tasks WHERE approval = $1 AND caller_mark = $2 ORDER BY made_us DESC LIMIT 1";
        let query = sqlx::query(query).bind(new.approval).bind(new.caller_mark);
        if let Some(row) = query.fetch_optional(writing.connection()).await? {
            let found = self.task_of(&row)?;
            // One that was given up while its call could not be taken away is over all the same.
            if found.stage != TaskStage::Cancelled {
                writing.rollback().await?;
                return Ok(Some(found));
            }
        }
        let query = "SELECT COUNT(*) FROM held_tasks WHERE caller_mark = $1";
        let count: i64 = sqlx::query(query).bind(new.caller_mark).fetch_one(writing.connection()).await?.try_get(0)?;
        if count >= MOST_OF_ONE && !weak::is(Weakness::Limits) {
            writing.rollback().await?;
            return Ok(None);
        }
        let stage = TaskStage::Call;
        let sealed = self.seals.seal_task(new.id, &bound_to(new.caller_mark, new.approval), &stage)?;
        let query = "INSERT INTO held_tasks (id, approval, caller_mark, sealed, bytes, made_us, changed_us, expires_us, \
                     version) VALUES ($1, $2, $3, $4, $5, $6, $6, $7, 0)";
        sqlx::query(query)
            .bind(new.id)
            .bind(new.approval)
            .bind(new.caller_mark)
            .bind(sealed.clone())
            .bind(i64::try_from(sealed.len()).unwrap_or(i64::MAX))
            .bind(new.now.as_microsecond())
            .bind(new.expires_at.as_microsecond())
            .execute(writing.connection())
            .await?;
        writing.commit().await?;
        Ok(Some(HeldTask {
            id: new.id.to_owned(),
            approval: new.approval.to_owned(),
            caller_mark: new.caller_mark.to_owned(),
            stage,
            made_at: new.now,
            changed_at: new.now,
            expires_at: new.expires_at,
            version: 0,
        }))
    }

    /// A task of this caller; none where it is somebody else's, or over.
    ///
    /// # Errors
    /// The database cannot be read, or the row was not sealed for its place.
    pub async fn held_task(&self, id: &str, caller: &str, now: Timestamp) -> Result<Option<HeldTask>, StateError> {
        let mut transaction = self.begin_reading().await?;
        let query = sqlx::query("SELECT * FROM held_tasks WHERE id = $1 AND expires_us > $2");
        let row = query.bind(id).bind(now.as_microsecond()).fetch_optional(&mut *transaction).await?;
        transaction.commit().await?;
        let found = row.map(|row| self.task_of(&row)).transpose()?;
        Ok(found.filter(|task| task.caller_mark == caller || weak::is(Weakness::Owners)))
    }

    /// Whether somebody follows a held call as a task.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn is_followed(&self, approval: &str) -> Result<bool, StateError> {
        let query = sqlx::query("SELECT COUNT(*) FROM held_tasks WHERE approval = $1").bind(approval);
        let count: i64 = query.fetch_one(&self.database.pool).await?.try_get(0)?;
        Ok(count > 0)
    }

    /// The tasks of one caller, the newest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn tasks_of(&self, caller: &str, now: Timestamp, most: u32) -> Result<Vec<HeldTask>, StateError> {
        let mut transaction = self.begin_reading().await?;
        let query =
            "SELECT * FROM held_tasks WHERE caller_mark = $1 AND expires_us > $2 ORDER BY made_us DESC LIMIT $3";
        let query = sqlx::query(query).bind(caller).bind(now.as_microsecond()).bind(i64::from(most));
        let rows = query.fetch_all(&mut *transaction).await?;
        transaction.commit().await?;
        // A row that somebody changed must not hide the others.
        Ok(rows.iter().filter_map(|row| self.task_of(row).ok()).collect())
    }

    /// Moves a task on, unless somebody else did since it was read: then, or where what it gave has no room, nothing
    /// happens.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn move_task(&self, task: &HeldTask, to: &HeldTask) -> Result<bool, StateError> {
        let mut writing = self.begin_writing().await?;
        let sealed = self.seals.seal_task(&task.id, &bound_to(&task.caller_mark, &to.approval), &to.stage)?;
        let bytes = i64::try_from(sealed.len()).unwrap_or(i64::MAX);
        let query =
            "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM held_tasks WHERE caller_mark = $1 AND id <> $2";
        let query = sqlx::query(query).bind(&task.caller_mark).bind(&task.id);
        let kept: i64 = query.fetch_one(writing.connection()).await?.try_get(0)?;
        let is_small = bytes <= SMALL || weak::is(Weakness::Limits);
        if !is_small && kept.saturating_add(bytes) > MOST_BYTES_OF_ONE {
            writing.rollback().await?;
            return Ok(false);
        }
        let query = "UPDATE held_tasks SET sealed = $1, bytes = $2, approval = $3, changed_us = $4, expires_us = $5, \
                     version = $6 WHERE id = $7 AND version = $8";
        let moved = sqlx::query(query)
            .bind(sealed)
            .bind(bytes)
            .bind(&to.approval)
            .bind(to.changed_at.as_microsecond())
            .bind(to.expires_at.as_microsecond())
            .bind(signed(task.version + 1))
            .bind(&task.id)
            .bind(signed(task.version))
            .execute(writing.connection())
            .await?;
        writing.commit().await?;
        Ok(moved.rows_affected() == 1)
    }

    /// Forgets tasks that are over.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn forget_tasks(&self, now: Timestamp) -> Result<u64, StateError> {
        let query = sqlx::query("DELETE FROM held_tasks WHERE expires_us <= $1").bind(now.as_microsecond());
        Ok(query.execute(&self.database.pool).await?.rows_affected())
    }

    fn task_of(&self, row: &AnyRow) -> Result<HeldTask, StateError> {
        let (id, caller_mark): (String, String) = (row.try_get("id")?, row.try_get("caller_mark")?);
        let sealed: Vec<u8> = row.try_get("sealed")?;
        let time = |name: &str| -> Result<Timestamp, StateError> {
            let microseconds: i64 = row.try_get(name)?;
            Ok(Timestamp::from_microsecond(microseconds).map_err(|error| DatabaseError::Value(error.to_string()))?)
        };
        let approval: String = row.try_get("approval")?;
        Ok(HeldTask {
            stage: self.seals.open_task(&id, &bound_to(&caller_mark, &approval), &sealed)?,
            approval,
            made_at: time("made_us")?,
            changed_at: time("changed_us")?,
            expires_at: time("expires_us")?,
            version: unsigned(row.try_get("version")?),
            id,
            caller_mark,
        })
    }
}

/// Whose it is, and what it waits for: neither can be changed without the key.
pub(super) fn bound_to(caller_mark: &str, approval: &str) -> String {
    format!("{caller_mark}:{approval}")
}
