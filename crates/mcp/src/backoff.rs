//! How long to wait before a server that ended is started again.
//!
//! Takes how long the server lived; gives the delay. Pure: the caller measures and waits.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);
/// A server that lived this long was well, whatever ended it.
const HEALTHY: Duration = Duration::from_secs(60);

/// The delays of one server: a quarter of a second, doubling up to thirty seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    next: Duration,
}

impl Backoff {
    #[must_use]
    pub const fn new() -> Self {
        Self { next: FIRST }
    }

    /// The delay before the next start, after a life of this length.
    pub fn delay_after(&mut self, lived: Duration) -> Duration {
        if lived >= HEALTHY {
            self.next = FIRST;
        }
        let delay = self.next;
        self.next = delay.saturating_mul(2).min(LONGEST);
        delay
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[path = "backoff_tests.rs"]
mod tests;
