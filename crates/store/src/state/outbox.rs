//! The outbox: what is to be told elsewhere of held calls. A message is written with the move it tells of, carried by one
//! gateway at a time (one conditional write), and gone once it was taken or given up.

use std::sync::Arc;

use jiff::Timestamp;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row as _};
use toolwarden_core::ApprovalState;

use super::{State, StateError};
use crate::database::DatabaseError;
use crate::sql::{signed, unsigned};

/// Who is told of which moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    pub webhook: String,
    pub states: Vec<ApprovalState>,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub id: String,
    pub webhook: String,
    pub approval: String,
    pub state: ApprovalState,
    /// How often somebody tried.
    pub attempts: u32,
    due_us: i64,
}

impl State {
    /// Tells these of moves from now on.
    #[must_use]
    pub fn with_subscriptions(mut self, subscriptions: Vec<Subscription>) -> Self {
        self.subscriptions = Arc::from(subscriptions);
        self
    }

    /// Writes down, with a move, who is to be told of it.
    pub(super) async fn post(
        &self,
        connection: &mut AnyConnection,
        (approval, state, version): (&str, ApprovalState, u64),
        now: Timestamp,
    ) -> Result<(), StateError> {
        let told = self.subscriptions.iter().filter(|subscription| subscription.states.contains(&state));
        for subscription in told {
            let query = "INSERT INTO outbox (id, webhook, approval, state, attempts, due_us) VALUES ($1, $2, $3, $4, 0, \
                         $5)";
            sqlx::query(query)
                .bind(format!("{approval}.{version}.{}", subscription.webhook))
                .bind(&subscription.webhook)
                .bind(approval)
                .bind(state.as_str())
                .bind(now.as_microsecond())
                .execute(&mut *connection)
                .await?;
        }
        Ok(())
    }

    /// Messages to one webhook that somebody should carry now, the oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn due_notices(&self, webhook: &str, now: Timestamp, most: u32) -> Result<Vec<Notice>, StateError> {
        let query = "SELECT * FROM outbox WHERE webhook = $1 AND due_us <= $2 ORDER BY due_us LIMIT $3";
        let rows = sqlx::query(query).bind(webhook).bind(now.as_microsecond()).bind(i64::from(most));
        let rows = rows.fetch_all(&self.database.pool).await?;
        // One that a newer version wrote is that one's to carry.
        Ok(rows.iter().filter_map(|row| notice_of(row).ok()).collect())
    }

    /// Takes a message, to carry it until then: one does, whoever else tries.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn claim_notice(&self, notice: &Notice, until: Timestamp) -> Result<bool, StateError> {
        let query = "UPDATE outbox SET due_us = $1, attempts = attempts + 1 WHERE id = $2 AND due_us = $3";
        let claimed = sqlx::query(query).bind(until.as_microsecond()).bind(&notice.id).bind(notice.due_us);
        Ok(claimed.execute(&self.database.pool).await?.rows_affected() == 1)
    }

    /// Leaves it for later.
    ///
    /// # Errors
    /// The database cannot be written; then it is tried again when its claim ends.
    pub async fn put_off_notice(&self, id: &str, until: Timestamp) -> Result<(), StateError> {
        let query = "UPDATE outbox SET due_us = $1 WHERE id = $2";
        sqlx::query(query).bind(until.as_microsecond()).bind(id).execute(&self.database.pool).await?;
        Ok(())
    }

    /// Forgets what nobody carried for long: its webhook is gone.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn forget_notices(&self, before: Timestamp) -> Result<(), StateError> {
        let query = sqlx::query("DELETE FROM outbox WHERE due_us < $1").bind(before.as_microsecond());
        query.execute(&self.database.pool).await?;
        Ok(())
    }

    /// It was taken, or nobody tries any more.
    ///
    /// # Errors
    /// The database cannot be written; then it is told once more.
    pub async fn end_notice(&self, id: &str) -> Result<(), StateError> {
        sqlx::query("DELETE FROM outbox WHERE id = $1").bind(id).execute(&self.database.pool).await?;
        Ok(())
    }
}

fn notice_of(row: &AnyRow) -> Result<Notice, StateError> {
    let state: String = row.try_get("state")?;
    let unknown = || DatabaseError::Value(format!("a message on the unknown state `{state}`"));
    Ok(Notice {
        id: row.try_get("id")?,
        webhook: row.try_get("webhook")?,
        approval: row.try_get("approval")?,
        state: ApprovalState::parse(&state).ok_or_else(unknown)?,
        attempts: u32::try_from(unsigned(row.try_get("attempts")?)).unwrap_or(u32::MAX),
        due_us: signed(unsigned(row.try_get("due_us")?)),
    })
}
