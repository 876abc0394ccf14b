//! What a held call would meet, without holding it: whoever asks a machine first must not go over a person's head.

use jiff::Timestamp;
use toolwarden_core::{ApprovalState, Opinion};

use super::approvals::{Approval, Moved, NewApproval, Step, rejected_until, stands};
use super::{State, StateError};

/// What a call meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Nothing,
    /// The same call is there: it waits, was answered, is on its way, or ended in a way that counts.
    There(Box<Approval>),
    /// Calls of this tool were rejected so often that nobody is asked.
    Rejected,
}

impl State {
    /// Looks, and writes nothing.
    ///
    /// # Errors
    /// The database cannot be read, or the row was not sealed for its place.
    pub async fn call_standing(&self, new: &NewApproval<'_>) -> Result<Standing, StateError> {
        let mut transaction = self.begin_reading().await?;
        let query = "SELECT * FROM approvals WHERE call_mark = $1 ORDER BY held_us DESC, version DESC LIMIT 1";
        let found = sqlx::query(query).bind(new.call_mark).fetch_optional(&mut *transaction).await?;
        let rejected = rejected_until(&mut transaction, new).await?;
        transaction.commit().await?;
        let there = found.map(|row| self.approval_of(&row)).transpose()?.filter(|there| stands(there, new.now));
        Ok(match (there, rejected) {
            (Some(there), _) => Standing::There(Box::new(there)),
            (None, Some(_)) => Standing::Rejected,
            (None, None) => Standing::Nothing,
        })
    }

    /// Keeps what a machine says by now with a call that waits; one that was answered meanwhile stays as it was answered.
    ///
    /// # Errors
    /// The database cannot be written, or the row was not sealed for its place.
    pub async fn keep_opinion(&self, id: &str, opinion: &Opinion) -> Result<(), StateError> {
        let mut writing = self.begin_writing().await?;
        let query = sqlx::query("SELECT * FROM approvals WHERE id = $1 AND state = 'held'").bind(id);
        let Some(row) = query.fetch_optional(writing.connection()).await? else { return Ok(writing.rollback().await?) };
        let mut approval = self.approval_of(&row)?;
        approval.call.opinion = Some(opinion.clone());
        let sealed = self.seals.seal_held(id, &approval.call_mark, &approval.call)?;
        let query = sqlx::query("UPDATE approvals SET sealed = $1 WHERE id = $2 AND state = 'held'");
        query.bind(sealed).bind(id).execute(writing.connection()).await?;
        Ok(writing.commit().await?)
    }

    /// Takes a call away that waits for an answer; not one that somebody answered meanwhile.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn withdraw_approval(&self, id: &str, now: Timestamp) -> Result<Moved, StateError> {
        let (to, from) = (ApprovalState::Cancelled, Some(ApprovalState::Held));
        self.step(id, &Step { to, now, from, ..Step::default() }).await
    }
}
