//! Amounts in slots of time, shared by everyone who uses this store (WORK-3): calls per minute, questions per hour, money
//! per day.
//!
//! A claim is taken as a whole or not at all, however many processes claim at the same time. What was claimed need not
//! survive a power failure, which ends every caller too; so nobody waits for a disk.

use jiff::Timestamp;
use sqlx::Row as _;

use super::{State, StateError};
use crate::sql::{Sql, signed, unsigned};

/// What is counted, and how long it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    pub name: String,
    /// Seconds in a slot.
    pub unit: u32,
    /// Slots that count, the one that runs included.
    pub slots: u32,
}

/// An amount to add, unless the tally would exceed its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub tally: Tally,
    pub amount: u64,
    pub most: u64,
}

/// The answer to claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    Taken,
    /// The claim of this number found no room, which there may be after so many seconds. Nothing was added for any claim.
    Full {
        claim: usize,
        wait: u64,
    },
}

impl Tally {
    /// Calls of a token, or of one that was issued with it, that needed a person's answer and could not be kept for one:
    /// within a day (SELF-5).
    #[must_use]
    pub fn calls_not_permitted(token: &str) -> Self {
        Self { name: format!("not_permitted:{token}"), unit: 60 * 60, slots: 25 }
    }

    /// The slot a moment is in.
    #[must_use]
    pub fn slot(&self, now: Timestamp) -> i64 {
        now.as_second().div_euclid(i64::from(self.unit.max(1)))
    }

    /// The oldest slot that still counts.
    fn first(&self, now: Timestamp) -> i64 {
        self.slot(now).saturating_add(1).saturating_sub(i64::from(self.slots))
    }

    /// The second in which a slot stops counting.
    fn end_of(&self, slot: i64) -> i64 {
        slot.saturating_add(i64::from(self.slots)).saturating_mul(i64::from(self.unit.max(1)))
    }
}

impl State {
    /// Takes all of these claims, or none.
    ///
    /// # Errors
    /// The database cannot be written; then nothing may be done that was to be counted.
    pub async fn claim(&self, claims: &[Claim], now: Timestamp) -> Result<Claimed, StateError> {
        if claims.is_empty() {
            return Ok(Claimed::Taken);
        }
        let mut writing = self.database.begin_counting().await?;
        let mut sql = Sql::new(self.database.engine(), "SELECT name, slot, amount FROM tallies WHERE ");
        for (number, claim) in claims.iter().enumerate() {
            sql.push(if number == 0 { "(name = " } else { " OR (name = " });
            sql.bind(claim.tally.name.clone()).push(" AND slot >= ").bind(claim.tally.first(now)).push(")");
        }
        sql.push(" ORDER BY slot");
        let rows = sql.query().fetch_all(writing.connection()).await?;
        let mut counted: Vec<(String, i64, u64)> = Vec::with_capacity(rows.len());
        for row in &rows {
            counted.push((row.try_get(0)?, row.try_get(1)?, unsigned(row.try_get(2)?)));
        }
        for (number, claim) in claims.iter().enumerate() {
            let of_claim = counted.iter().filter(|(name, ..)| *name == claim.tally.name);
            let slots: Vec<(i64, u64)> = of_claim.map(|(_, slot, amount)| (*slot, *amount)).collect();
            if let Some(wait) = claim.wait(&slots, now) {
                writing.rollback().await?;
                return Ok(Claimed::Full { claim: number, wait });
            }
        }
        let mut sql = Sql::new(self.database.engine(), "INSERT INTO tallies (name, slot, amount, expires_s) VALUES ");
        sql.rows(claims, |sql, claim| {
            let slot = claim.tally.slot(now);
            sql.value(claim.tally.name.clone()).value(slot);
            sql.value(signed(claim.amount)).value(claim.tally.end_of(slot));
        });
        sql.push(ADDED);
        sql.query().execute(writing.connection()).await?;
        writing.commit().await?;
        Ok(Claimed::Taken)
    }

    /// How much counts now.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn tally(&self, tally: &Tally, now: Timestamp) -> Result<u64, StateError> {
        // PostgreSQL sums whole numbers to one of any size.
        let query = "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM tallies WHERE name = $1 AND slot >= $2";
        let query = sqlx::query(query).bind(&tally.name).bind(tally.first(now));
        Ok(unsigned(query.fetch_one(&self.database.pool).await?.try_get(0)?))
    }

    /// Adds to a slot, or takes away what was claimed and not needed.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn add_to_tally(&self, tally: &Tally, slot: i64, amount: i64) -> Result<(), StateError> {
        let mut writing = self.database.begin_counting().await?;
        let mut sql = Sql::new(self.database.engine(), "INSERT INTO tallies (name, slot, amount, expires_s) VALUES (");
        sql.value(tally.name.clone()).value(slot).value(amount).value(tally.end_of(slot)).push(")");
        sql.push(ADDED);
        sql.query().execute(writing.connection()).await?;
        Ok(writing.commit().await?)
    }

    /// Deletes slots that count no more.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn forget_tallies(&self, now: Timestamp) -> Result<(), StateError> {
        let query = sqlx::query("DELETE FROM tallies WHERE expires_s < $1").bind(now.as_second());
        query.execute(&self.database.pool).await?;
        Ok(())
    }
}

const ADDED: &str = " ON CONFLICT (name, slot) DO UPDATE SET amount = tallies.amount + excluded.amount";

impl Claim {
    /// None where there is room; else after how many seconds there may be. Slots of the future count: a clock that was set
    /// back gives nothing back.
    fn wait(&self, slots: &[(i64, u64)], now: Timestamp) -> Option<u64> {
        let mut left = slots.iter().fold(0_u64, |sum, (_, amount)| sum.saturating_add(*amount));
        if left.saturating_add(self.amount) <= self.most {
            return None;
        }
        let until = |slot: i64| unsigned(self.tally.end_of(slot).saturating_sub(now.as_second())).max(1);
        for (slot, amount) in slots {
            left = left.saturating_sub(*amount);
            if left.saturating_add(self.amount) <= self.most {
                return Some(until(*slot));
            }
        }
        // More than there is ever room for.
        Some(until(self.tally.slot(now)))
    }
}
