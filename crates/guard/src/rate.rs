//! Calls per minute at one level: at most so many in any sixty seconds.
//!
//! Counted second by second, the second that runs included, so that no minute ever holds more than the limit. Whoever
//! is refused is told when the oldest second that counts is over. Time is given in: seconds since some beginning.

use std::sync::{Mutex, MutexGuard, PoisonError};

const SECONDS: usize = 61;

/// What was counted, second by second.
#[derive(Debug)]
pub(crate) struct Rate(Mutex<Seconds>);

#[derive(Debug)]
struct Seconds {
    counts: [u64; SECONDS],
    /// The second that was counted last.
    last: u64,
    total: u64,
}

/// A call that counts in its second; given back where it was not made after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    second: u64,
}

fn place(second: u64) -> usize {
    usize::try_from(second % SECONDS as u64).unwrap_or_default()
}

impl Default for Rate {
    fn default() -> Self {
        Self(Mutex::new(Seconds { counts: [0; SECONDS], last: 0, total: 0 }))
    }
}

impl Rate {
    fn lock(&self) -> MutexGuard<'_, Seconds> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more call.
    ///
    /// # Errors
    /// The minute is full; in how many seconds it will not be.
    pub(crate) fn count(&self, limit: u64, now: u64) -> Result<Counted, u64> {
        let mut seconds = self.lock();
        seconds.advance(now);
        if seconds.total >= limit {
            return Err(seconds.wait(limit));
        }
        let second = seconds.last;
        if let Some(count) = seconds.counts.get_mut(place(second)) {
            *count += 1;
        }
        seconds.total += 1;
        Ok(Counted { second })
    }

    /// The call was not made.
    pub(crate) fn give_back(&self, counted: Counted) {
        let mut seconds = self.lock();
        let is_there = counted.second + SECONDS as u64 > seconds.last;
        if let Some(count) = seconds.counts.get_mut(place(counted.second)).filter(|count| is_there && **count > 0) {
            *count -= 1;
            seconds.total -= 1;
        }
    }
}

impl Seconds {
    /// Forgets what is more than a minute old. Time that seems to go back stands still.
    fn advance(&mut self, now: u64) {
        let passed = now.saturating_sub(self.last).min(SECONDS as u64);
        for step in 1..=passed {
            let over = place(now - passed + step);
            if let Some(count) = self.counts.get_mut(over) {
                self.total -= *count;
                *count = 0;
            }
        }
        self.last = self.last.max(now);
    }

    /// In how many seconds enough of what counts is over; a limit of nothing is never met, and a minute is said.
    fn wait(&self, limit: u64) -> u64 {
        let mut left = self.total;
        for wait in 1..=SECONDS as u64 {
            // The second that leaves the window then.
            let leaving = self.counts.get(place(self.last + wait)).copied().unwrap_or_default();
            left = left.saturating_sub(leaving);
            if left < limit {
                return wait;
            }
        }
        60
    }
}

#[cfg(test)]
#[path = "rate_tests.rs"]
mod tests;
