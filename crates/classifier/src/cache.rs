//! Verdicts that were given: the same question is asked once for a while, however many ask it at the same time.
//!
//! Bounded in number and in age. What failed is not kept: whoever asks next asks again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::OnceCell;
use toolwarden_core::{Digest, Opinion};

use crate::Failure;

const MOST: usize = 1_024;
const AGE: Duration = Duration::from_secs(10 * 60);

/// What came of a question, with the failure where there is no verdict.
pub(crate) type Found = (Opinion, Option<Failure>);

#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<HashMap<Digest, Kept>>);

#[derive(Debug, Clone)]
struct Kept {
    since: Timestamp,
    cell: Arc<OnceCell<Found>>,
}

impl Cache {
    /// What was found before, or is being found; else what `ask` finds. And whether it was asked here.
    pub(crate) async fn found(&self, key: Digest, now: Timestamp, ask: impl AsyncFnOnce() -> Found) -> (Found, Asked) {
        let cell = self.cell(key, now);
        let mut asked = Asked::Before;
        let found = cell
            .get_or_init(async || {
                asked = Asked::Now;
                ask().await
            })
            .await
            .clone();
        if found.1.is_some() {
            self.forget(key, &cell);
        }
        (found, asked)
    }

    fn cell(&self, key: Digest, now: Timestamp) -> Arc<OnceCell<Found>> {
        let mut kept = self.lock();
        let since = now.checked_sub(AGE).unwrap_or(Timestamp::MIN);
        // One from the future is none, either: a clock that goes back makes nothing last longer.
        let is_good = |one: &Kept| one.since > since && one.since <= now;
        if let Some(found) = kept.get(&key).filter(|found| is_good(found)) {
            return found.cell.clone();
        }
        if kept.len() >= MOST {
            kept.retain(|_, one| is_good(one));
        }
        if kept.len() >= MOST {
            let oldest = kept.iter().min_by_key(|(_, one)| one.since).map(|(key, _)| *key);
            oldest.map(|oldest| kept.remove(&oldest));
        }
        let cell = Arc::<OnceCell<Found>>::default();
        kept.insert(key, Kept { since: now, cell: cell.clone() });
        cell
    }

    fn forget(&self, key: Digest, cell: &Arc<OnceCell<Found>>) {
        let mut kept = self.lock();
        if kept.get(&key).is_some_and(|one| Arc::ptr_eq(&one.cell, cell)) {
            kept.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a question was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Now,
    Before,
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
