//! Credentials that nobody issued, counted: whoever tries many learns that they are too fast, and whoever has a good
//! one is never kept waiting by them.

use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

/// So many in a minute, from everybody together.
const MOST: u64 = 120;
const BITS: u32 = 20;

/// The wrong ones of this minute: its number, and below it how many.
#[derive(Debug, Default)]
pub(crate) struct Guesses(AtomicU64);

impl Guesses {
    /// Counts one; whether there were too many.
    pub(crate) fn count(&self, now: Timestamp) -> bool {
        let minute = u64::try_from(now.as_second() / 60).unwrap_or_default() << BITS;
        let next = |known: u64| Some(if known >> BITS == minute >> BITS { known + 1 } else { minute + 1 });
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_default();
        before >> BITS == minute >> BITS && before & ((1 << BITS) - 1) >= MOST
    }
}

#[cfg(test)]
#[test]
fn many_wrong_ones_in_a_minute_are_too_many_and_the_next_minute_begins_anew() {
    let guesses = Guesses::default();
    let at = |second: i64| Timestamp::from_second(second).unwrap_or_default();
    assert!((0..MOST).all(|_| !guesses.count(at(600))));
    assert!(guesses.count(at(600)) && guesses.count(at(659)));
    assert!(!guesses.count(at(660)));
}
