//! What all classifiers of a store asked, spent and held (WORK-3).
//!
//! Places for questions at the same time, the breaker and the cache stay with each process: they protect the process and its
//! connection to the machine, and a second process gains neither questions nor money by having its own.

use std::fmt::Debug;
use std::pin::Pin;

use jiff::Timestamp;
use toolwarden_core::Digest;

use crate::Failure;

/// One question, and what is set aside for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spending {
    pub at: Timestamp,
    /// Questions that may be asked in any hour.
    pub per_hour: u64,
    pub money: u64,
    /// What may be spent on a day; none where nothing is counted.
    pub per_day: Option<u64>,
}

/// It cannot be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown;

type Asked<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What is counted for every process together.
pub trait Ledger: Debug + Send + Sync {
    /// Counts a question and sets its money aside.
    ///
    /// # Errors
    /// There is no room for it, or nobody knows.
    fn reserve<'a>(&'a self, spending: &'a Spending) -> Asked<'a, Result<(), Failure>>;

    /// A question cost this much.
    fn settle(&self, spending: Spending, cost: u64) -> Asked<'_, ()>;

    /// How often the machine held calls of this caller and tool within the last ten minutes.
    ///
    /// # Errors
    /// Nobody knows.
    fn held(&self, subject: Digest, now: Timestamp) -> Asked<'_, Result<u64, Unknown>>;

    /// It held one.
    fn note_held(&self, subject: Digest, now: Timestamp) -> Asked<'_, ()>;
}
