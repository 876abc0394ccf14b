//! Leaves a machine alone that failed again and again; after a while one question tries whether it is well.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::Failure;

/// So many failures without an answer between them.
const FAILURES: u32 = 5;
const OPEN: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    failures: u32,
    /// Until when nobody asks.
    open_until: Option<Timestamp>,
    /// Somebody tries.
    is_tried: bool,
}

impl Breaker {
    /// The right to ask one question.
    pub(crate) fn enter(&self, now: Timestamp) -> Result<Pass<'_>, Failure> {
        let mut known = self.lock();
        let Some(until) = known.open_until else { return Ok(Pass { breaker: self, tries: false }) };
        if now < until || known.is_tried {
            return Err(Failure::BreakerOpen);
        }
        known.is_tried = true;
        Ok(Pass { breaker: self, tries: true })
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to ask one question. Dropped without a word, nothing was found out.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    breaker: &'a Breaker,
    tries: bool,
}

impl Pass<'_> {
    pub(crate) fn answered(self) {
        let mut known = self.breaker.lock();
        // A late answer to an early question does not say that it is well now.
        if self.tries || known.open_until.is_none() {
            (known.failures, known.open_until) = (0, None);
        }
    }

    pub(crate) fn failed(self, now: Timestamp) {
        let mut known = self.breaker.lock();
        known.failures = known.failures.saturating_add(1);
        if known.failures >= FAILURES {
            known.open_until = Some(now.checked_add(OPEN).unwrap_or(Timestamp::MAX));
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.tries {
            self.breaker.lock().is_tried = false;
        }
    }
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;
