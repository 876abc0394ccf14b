//! Held calls: kept, answered, used once, and told how they ended. Every step is one conditional write.
//!
//! Takes a call with its marks, and moves from one state to the next; gives what is kept, and whether this one made the
//! move. Refuses a move that the table of states does not have, and an answer that was not sealed for its call.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row as _};
use toolwarden_core::{ApprovalState, HeldAnswer, HeldCall, Weakness, weak};

use super::agreement::agreed;
use super::{State, StateError, counter};
use crate::database::{DatabaseError, Writing};
use crate::sql::{signed, unsigned};

mod listing;
mod room;

pub use listing::{ApprovalFilter, Listed, Whose};
pub use room::{MOST_HELD_BYTES_OF_ONE, MOST_HELD_OF_ONE};

/// So many rejections of one tool within this time, and its caller is not heard with it for a while.
pub const REJECTIONS: i64 = 3;
pub const REJECTED_WITHIN: Duration = Duration::from_secs(10 * 60);
/// How long nobody may make a call again of which it is not known how it ended.
const UNKNOWN_COUNTS: Duration = Duration::from_secs(24 * 60 * 60);
/// Rows that one look for expired ones takes.
const BATCH: i64 = 500;

/// A held call as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    pub id: String,
    pub state: ApprovalState,
    pub call_mark: String,
    pub call: HeldCall,
    pub answer: Option<HeldAnswer>,
    pub held_at: Timestamp,
    pub expires_at: Timestamp,
    pub changed_at: Timestamp,
    /// The journal of the gateway that makes the call, and when it took it.
    pub node: Option<String>,
    pub taken_at: Option<Timestamp>,
}

/// A call that is to be held.
#[derive(Debug, Clone)]
pub struct NewApproval<'a> {
    pub id: &'a str,
    pub call_mark: &'a str,
    pub caller_mark: &'a str,
    pub call: &'a HeldCall,
    pub now: Timestamp,
    pub expires_at: Timestamp,
}

/// What became of a call that is to be held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holding {
    /// It waits from now on.
    Made,
    /// The same call is there already: it waits, was answered, is on its way, or ended in a way that counts.
    There(Box<Approval>),
    /// Calls of this tool were rejected so often that nobody is asked; when that ends.
    Rejected { until: Timestamp },
    /// As many calls of this caller wait as may.
    TooMany,
}

/// What became of a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved {
    /// This one made it.
    Done(Box<Approval>),
    /// It is in another state, and stays so.
    Not(Box<Approval>),
    NoSuch,
}

/// A move that somebody made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalNews {
    pub id: String,
    pub state: ApprovalState,
    pub version: u64,
}

impl State {
    /// Holds a call, unless the same one is there already.
    ///
    /// # Errors
    /// The database cannot be written; then nothing is held.
    pub async fn hold_call(&self, new: &NewApproval<'_>) -> Result<Holding, StateError> {
        let mut writing = self.begin_writing().await?;
        let connection = writing.connection();
        let query = "SELECT * FROM approvals WHERE call_mark = $1 ORDER BY held_us DESC, version DESC LIMIT 1";
        let found = sqlx::query(query).bind(new.call_mark).fetch_optional(&mut *connection).await?;
        if let Some(row) = found {
            let approval = self.approval_of(&row)?;
            if stands(&approval, new.now) {
                writing.rollback().await?;
                return Ok(Holding::There(Box::new(approval)));
            }
            // One that nobody looked at since it expired would keep the same call from being held again.
            if approval.state.may_become(ApprovalState::Expired) {
                let step = Step { to: ApprovalState::Expired, now: new.now, ..Step::default() };
                let version = step.write(connection, &approval.id, approval.state).await?;
                self.post(connection, (&approval.id, step.to, version), new.now).await?;
            }
        }
        if let Some(until) = rejected_until(connection, new).await? {
            writing.commit().await?;
            return Ok(Holding::Rejected { until });
        }
        let sealed = self.seals.seal_held(new.id, new.call_mark, new.call)?;
        let bytes = i64::try_from(sealed.len()).unwrap_or(i64::MAX);
        if !room::is_for(connection, new, bytes).await? && !weak::is(Weakness::Limits) {
            writing.commit().await?;
            return Ok(Holding::TooMany);
        }
        let version = next(connection).await?;
        sqlx::query(
            "INSERT INTO approvals (id, state, call_mark, caller_mark, server, tool, user_name, sealed, held_us, \
             expires_us, changed_us, version, bytes, approvers) VALUES ($1, 'held', $2, $3, $4, $5, $6, $7, $8, $9, $8, $10, $11, \
             $12)",
        )
        .bind(new.id)
        .bind(new.call_mark)
        .bind(new.caller_mark)
        .bind(&new.call.server)
        .bind(&new.call.tool)
        .bind(new.call.caller.user.as_deref())
        .bind(sealed)
        .bind(new.now.as_microsecond())
        .bind(new.expires_at.as_microsecond())
        .bind(signed(version))
        .bind(bytes)
        .bind(listing::column(&new.call.needs.approvers))
        .execute(&mut *connection)
        .await?;
        self.post(connection, (new.id, ApprovalState::Held, version), new.now).await?;
        self.told(writing).await?;
        Ok(Holding::Made)
    }

    /// One held call.
    ///
    /// # Errors
    /// The database cannot be read, or the row was not sealed for its place.
    pub async fn approval(&self, id: &str) -> Result<Option<Approval>, StateError> {
        let mut transaction = self.begin_reading().await?;
        let row =
            sqlx::query("SELECT * FROM approvals WHERE id = $1").bind(id).fetch_optional(&mut *transaction).await?;
        transaction.commit().await?;
        row.map(|row| self.approval_of(&row)).transpose()
    }

    /// Keeps a person's answer: the first one counts. Where it permits the call, that must be made before `expires_at`.
    ///
    /// # Errors
    /// The database cannot be written; then nothing was answered.
    pub async fn answer_approval(
        &self,
        id: &str,
        answer: &HeldAnswer,
        expires_at: Timestamp,
    ) -> Result<Moved, StateError> {
        let to = if answer.is_approval { ApprovalState::Approved } else { ApprovalState::Rejected };
        let step = Step { to, now: answer.at, answer: Some(answer), expires_at: Some(expires_at), ..Step::default() };
        self.step(id, &step).await
    }

    /// Takes back what somebody permitted and nobody used yet.
    ///
    /// # Errors
    /// The database cannot be written; then the approval counts as before.
    pub async fn take_back_approval(
        &self,
        id: &str,
        answer: &HeldAnswer,
        expires_at: Timestamp,
    ) -> Result<Moved, StateError> {
        let (to, answer) = (ApprovalState::Rejected, Some(answer).filter(|answer| !answer.is_approval));
        let now = answer.map_or(Timestamp::UNIX_EPOCH, |answer| answer.at);
        let step = Step { to, now, answer, expires_at: Some(expires_at), takes_back: true, ..Step::default() };
        self.step(id, &step).await
    }

    /// Takes an approval, to make its call: one does, whoever else tries.
    ///
    /// # Errors
    /// The database cannot be written; then it was not taken, or nobody knows, and the call must not be made.
    pub async fn consume_approval(&self, id: &str, node: &str, now: Timestamp) -> Result<Moved, StateError> {
        let step = Step { to: ApprovalState::Consumed, now, node: Some(node), ..Step::default() };
        self.step(id, &step).await
    }

    /// Moves one to a state that needs nothing but itself.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn move_approval(&self, id: &str, to: ApprovalState, now: Timestamp) -> Result<Moved, StateError> {
        self.step(id, &Step { to, now, expires_at: Step::counting(to, now), ..Step::default() }).await
    }

    /// The same for what a gateway took itself: what another took meanwhile is not its own to move.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn move_own_approval(
        &self,
        id: &str,
        to: ApprovalState,
        node: &str,
        now: Timestamp,
    ) -> Result<Moved, StateError> {
        let expires_at = Step::counting(to, now);
        self.step(id, &Step { to, now, expires_at, owner: Some(node), ..Step::default() }).await
    }

    pub(super) async fn step(&self, id: &str, step: &Step<'_>) -> Result<Moved, StateError> {
        let mut writing = self.begin_writing().await?;
        let query = sqlx::query("SELECT * FROM approvals WHERE id = $1").bind(id);
        let Some(row) = query.fetch_optional(writing.connection()).await? else { return Ok(Moved::NoSuch) };
        let mut approval = self.approval_of(&row)?;
        let is_late = approval.expires_at <= step.now && step.must_be_in_time(approval.state);
        if is_late || !approval.state.may_become(step.to) || !step.is_of(&approval) {
            writing.rollback().await?;
            if is_late && approval.state.may_become(ApprovalState::Expired) {
                approval.state = ApprovalState::Expired;
            }
            return Ok(Moved::Not(Box::new(approval)));
        }
        let sealed = step.answer.map(|answer| self.seals.seal_answer(id, &approval.call_mark, answer)).transpose()?;
        let version = step.write_with(writing.connection(), id, approval.state, sealed).await?;
        self.post(writing.connection(), (id, step.to, version), step.now).await?;
        if let (ApprovalState::Held, Some(answer)) = (approval.state, step.answer) {
            agreed(writing.connection(), &approval.call, answer).await?;
        }
        self.told(writing).await?;
        step.apply(&mut approval);
        Ok(Moved::Done(Box::new(approval)))
    }

    /// Ends what nobody answered or used in time; gives what this one ended.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn expire_approvals(&self, now: Timestamp) -> Result<Vec<Approval>, StateError> {
        let query = "SELECT * FROM approvals WHERE state IN ('held', 'approved') AND expires_us <= $1 LIMIT $2";
        self.end_those(query, now, now, ApprovalState::Expired).await
    }

    /// Says of what a lost gateway had on its way that nobody knows how it ended; gives what this one said it of.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn give_up_approvals(
        &self,
        silent_since: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<Approval>, StateError> {
        let query = "SELECT * FROM approvals WHERE state IN ('consumed', 'dispatched') AND seen_us <= $1 LIMIT $2";
        self.end_those(query, silent_since, now, ApprovalState::Unknown).await
    }

    /// Says that what a gateway has on its way still is.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn approvals_are_on_their_way(
        &self,
        node: &str,
        ids: &[String],
        now: Timestamp,
    ) -> Result<(), StateError> {
        let query = "UPDATE approvals SET seen_us = $1 WHERE id = $2 AND node = $3 AND state IN ('consumed', \
                     'dispatched')";
        for id in ids {
            let seen = sqlx::query(query).bind(now.as_microsecond()).bind(id).bind(node);
            seen.execute(&self.database.pool).await?;
        }
        Ok(())
    }

    /// What a gateway took and did not tell the end of.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn approvals_at(&self, node: &str) -> Result<Vec<Approval>, StateError> {
        let query = "SELECT * FROM approvals WHERE node = $1 AND state IN ('consumed', 'dispatched')";
        let mut transaction = self.begin_reading().await?;
        let rows = sqlx::query(query).bind(node).fetch_all(&mut *transaction).await?;
        transaction.commit().await?;
        // A row that somebody changed must not keep a gateway from starting.
        Ok(rows.iter().filter_map(|row| self.approval_of(row).ok()).collect())
    }

    /// Forgets what ended before a time, with its arguments: the record keeps what happened.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn forget_approvals(&self, before: Timestamp) -> Result<u64, StateError> {
        let mut writing = self.begin_writing().await?;
        let query = "DELETE FROM approvals WHERE changed_us < $1 AND expires_us < $1 AND state IN ('rejected', \
                     'expired', 'cancelled', 'succeeded', 'failed', 'unknown')";
        let gone = sqlx::query(query).bind(before.as_microsecond()).execute(writing.connection()).await?;
        writing.commit().await?;
        Ok(gone.rows_affected())
    }

    /// The version that counts now: as long as it is the same, nothing moved.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn approvals_version(&self) -> Result<u64, StateError> {
        let mut transaction = self.database.begin_reading().await?;
        let now = counter(&mut transaction, "approvals").await?;
        transaction.commit().await?;
        Ok(now)
    }

    /// The moves since a version, and the version that counts now.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn approval_news(&self, since: u64) -> Result<(Vec<ApprovalNews>, u64), StateError> {
        let mut transaction = self.database.begin_reading().await?;
        let now = counter(&mut transaction, "approvals").await?;
        let query = "SELECT id, state, version FROM approvals WHERE version > $1 ORDER BY version";
        let rows = sqlx::query(query).bind(signed(since)).fetch_all(&mut *transaction).await?;
        transaction.commit().await?;
        let news = |row: &AnyRow| -> Result<ApprovalNews, StateError> {
            Ok(ApprovalNews {
                id: row.try_get("id")?,
                state: state_of(row)?,
                version: unsigned(row.try_get("version")?),
            })
        };
        Ok((rows.iter().map(news).collect::<Result<_, _>>()?, now))
    }

    async fn end_those(
        &self,
        query: &'static str,
        until: Timestamp,
        now: Timestamp,
        to: ApprovalState,
    ) -> Result<Vec<Approval>, StateError> {
        let looked = sqlx::query(query).bind(until.as_microsecond()).bind(BATCH).fetch_all(&self.database.pool).await?;
        if looked.is_empty() {
            return Ok(Vec::new());
        }
        let mut writing = self.begin_writing().await?;
        let rows = sqlx::query(query).bind(until.as_microsecond()).bind(BATCH).fetch_all(writing.connection()).await?;
        let mut ended = Vec::with_capacity(rows.len());
        let step = Step { to, now, expires_at: Step::counting(to, now), ..Step::default() };
        for row in &rows {
            let (id, from): (String, _) = (row.try_get("id")?, state_of(row)?);
            let version = step.write(writing.connection(), &id, from).await?;
            self.post(writing.connection(), (&id, to, version), now).await?;
            // One that does not open ends all the same.
            if let Ok(mut approval) = self.approval_of(row) {
                step.apply(&mut approval);
                ended.push(approval);
            }
        }
        self.told(writing).await?;
        Ok(ended)
    }

    async fn told(&self, mut writing: Writing) -> Result<(), StateError> {
        self.announce(&mut writing).await?;
        Ok(writing.commit().await?)
    }

    pub(super) fn approval_of(&self, row: &AnyRow) -> Result<Approval, StateError> {
        let (id, call_mark): (String, String) = (row.try_get("id")?, row.try_get("call_mark")?);
        let (sealed, answer): (Vec<u8>, Option<Vec<u8>>) = (row.try_get("sealed")?, row.try_get("answer")?);
        let time = |name: &str| -> Result<Timestamp, StateError> {
            let microseconds: i64 = row.try_get(name)?;
            Timestamp::from_microsecond(microseconds).map_err(|error| DatabaseError::Value(error.to_string()).into())
        };
        let answer = answer.map(|sealed| self.seals.open_answer(&id, &call_mark, &sealed)).transpose()?;
        let state = state_of(row)?;
        // Whoever can write to the database cannot answer for a person.
        let needs_approval = matches!(state, ApprovalState::Approved | ApprovalState::Consumed);
        if needs_approval && !answer.as_ref().is_some_and(|answer| answer.is_approval) {
            return Err(StateError::Approval(id));
        }
        Ok(Approval {
            state,
            call: self.seals.open_held(&id, &call_mark, &sealed)?,
            answer,
            held_at: time("held_us")?,
            expires_at: time("expires_us")?,
            changed_at: time("changed_us")?,
            node: row.try_get("node")?,
            taken_at: match row.try_get::<Option<i64>, _>("taken_us")? {
                Some(_) => Some(time("taken_us")?),
                None => None,
            },
            id,
            call_mark,
        })
    }
}

/// One move.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub(super) to: ApprovalState,
    pub(super) now: Timestamp,
    /// The only state it may be in; any that the table has, where nothing is said.
    pub(super) from: Option<ApprovalState>,
    pub(super) answer: Option<&'a HeldAnswer>,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) node: Option<&'a str>,
    /// Who must have taken it.
    pub(super) owner: Option<&'a str>,
    /// Whoever says no to what was permitted has to say that they mean that: else the first answer counts.
    pub(super) takes_back: bool,
}

impl Default for Step<'_> {
    fn default() -> Self {
        let (to, now) = (ApprovalState::Unknown, Timestamp::UNIX_EPOCH);
        Self { to, now, from: None, answer: None, expires_at: None, node: None, owner: None, takes_back: false }
    }
}

impl Step<'_> {
    /// How long an end counts that nobody knows.
    fn counting(to: ApprovalState, now: Timestamp) -> Option<Timestamp> {
        let counts = now.checked_add(UNKNOWN_COUNTS).unwrap_or(Timestamp::MAX);
        (to == ApprovalState::Unknown).then_some(counts)
    }

    /// What expired can neither be permitted nor taken any more. Whoever took it in time can give it back.
    fn must_be_in_time(&self, from: ApprovalState) -> bool {
        match self.to {
            ApprovalState::Approved => from != ApprovalState::Consumed,
            ApprovalState::Consumed => true,
            _ => false,
        }
    }

    /// Whether this move is one for what is kept: only an answer permits a call.
    fn is_of(&self, approval: &Approval) -> bool {
        let is_from = self.from.is_none_or(|from| approval.state == from);
        if !is_from || self.owner.is_some_and(|owner| approval.node.as_deref() != Some(owner)) {
            return false;
        }
        match (approval.state, self.to) {
            (ApprovalState::Held | ApprovalState::Unknown, ApprovalState::Approved) => self.answer.is_some(),
            (ApprovalState::Held, ApprovalState::Rejected) => self.answer.is_some() && !self.takes_back,
            (ApprovalState::Approved, ApprovalState::Rejected) => self.answer.is_some() && self.takes_back,
            // Only whoever took it gives it back: an answer that comes late counts for nothing.
            (ApprovalState::Consumed, ApprovalState::Approved) => self.answer.is_none() && self.owner.is_some(),
            _ => true,
        }
    }

    async fn write(&self, connection: &mut AnyConnection, id: &str, from: ApprovalState) -> Result<u64, StateError> {
        self.write_with(connection, id, from, None).await
    }

    /// The one conditional write; the version it makes.
    async fn write_with(
        &self,
        connection: &mut AnyConnection,
        id: &str,
        from: ApprovalState,
        answer: Option<Vec<u8>>,
    ) -> Result<u64, StateError> {
        let version = next(connection).await?;
        let query = "UPDATE approvals SET state = $1, changed_us = $2, version = $3, answer = COALESCE($4, answer), \
                     expires_us = COALESCE($5, expires_us), node = COALESCE($6, node), seen_us = $2, taken_us = \
                     COALESCE($7, taken_us) WHERE id = $8 AND state = $9";
        let written = sqlx::query(query)
            .bind(self.to.as_str())
            .bind(self.now.as_microsecond())
            .bind(signed(version))
            .bind(answer)
            .bind(self.expires_at.map(Timestamp::as_microsecond))
            .bind(self.node)
            .bind(self.node.map(|_| self.now.as_microsecond()))
            .bind(id)
            .bind(from.as_str())
            .execute(connection)
            .await?;
        if written.rows_affected() == 1 { Ok(version) } else { Err(StateError::Approval(id.to_owned())) }
    }

    fn apply(&self, approval: &mut Approval) {
        approval.state = self.to;
        approval.changed_at = self.now;
        if let Some(answer) = self.answer {
            approval.answer = Some(answer.clone());
        }
        approval.expires_at = self.expires_at.unwrap_or(approval.expires_at);
        if let Some(node) = self.node {
            approval.node = Some(node.to_owned());
            approval.taken_at = Some(self.now);
        }
    }
}

/// Whether the same call, made again, meets this one. What ended well or was given up is over; a rejection and an end
/// that nobody knows count until they expire.
pub(super) fn stands(approval: &Approval, now: Timestamp) -> bool {
    match approval.state {
        ApprovalState::Consumed | ApprovalState::Dispatched => true,
        ApprovalState::Held | ApprovalState::Approved | ApprovalState::Rejected | ApprovalState::Unknown => {
            approval.expires_at > now
        }
        ApprovalState::Expired | ApprovalState::Cancelled | ApprovalState::Succeeded | ApprovalState::Failed => false,
    }
}

/// Until when a caller is not heard with a tool, because its calls were rejected again and again.
pub(super) async fn rejected_until(
    connection: &mut AnyConnection,
    new: &NewApproval<'_>,
) -> Result<Option<Timestamp>, StateError> {
    let since = new.now.checked_sub(REJECTED_WITHIN).unwrap_or(Timestamp::MIN);
    let query = "SELECT changed_us FROM approvals WHERE caller_mark = $1 AND state = 'rejected' AND server = $2 AND \
                 tool = $3 AND changed_us > $4 ORDER BY changed_us DESC LIMIT $5";
    let rows = sqlx::query(query)
        .bind(new.caller_mark)
        .bind(&new.call.server)
        .bind(&new.call.tool)
        .bind(since.as_microsecond())
        .bind(REJECTIONS)
        .fetch_all(connection)
        .await?;
    if i64::try_from(rows.len()).unwrap_or(REJECTIONS) < REJECTIONS || weak::is(Weakness::Limits) {
        return Ok(None);
    }
    let Some(oldest) = rows.last() else { return Ok(None) };
    let oldest = Timestamp::from_microsecond(oldest.try_get(0)?);
    let oldest = oldest.map_err(|error| DatabaseError::Value(error.to_string()))?;
    Ok(Some(oldest.checked_add(REJECTED_WITHIN).unwrap_or(Timestamp::MAX)))
}

fn state_of(row: &AnyRow) -> Result<ApprovalState, StateError> {
    let text: String = row.try_get("state")?;
    ApprovalState::parse(&text)
        .ok_or_else(|| DatabaseError::Value(format!("a held call in the unknown state `{text}`")).into())
}

/// The next version of held calls.
async fn next(connection: &mut AnyConnection) -> Result<u64, StateError> {
    sqlx::query("UPDATE counters SET value = value + 1 WHERE name = 'approvals'").execute(&mut *connection).await?;
    counter(connection, "approvals").await
}
