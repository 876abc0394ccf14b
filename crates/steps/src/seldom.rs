//! Lines of the log that outsiders can cause: said at most every ten seconds, with how many were left out.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use jiff::Timestamp;

/// How far apart they are, in seconds.
const APART: i64 = 10;

/// One kind of line.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    /// Nothing is said before.
    next: AtomicI64,
    left_out: AtomicU64,
}

impl Seldom {
    /// Whether to say it now: then, how many were not said since the last one.
    pub(crate) fn may_say(&self, now: Timestamp) -> Option<u64> {
        let (now, next) = (now.as_second(), self.next.load(Ordering::Relaxed));
        // A clock that was set back does not silence it for long.
        let is_due = now >= next || next - now > APART;
        let is_mine = || self.next.compare_exchange(next, now + APART, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_due && is_mine() {
            return Some(self.left_out.swap(0, Ordering::Relaxed));
        }
        self.left_out.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
#[test]
fn the_first_is_said_and_others_are_counted_until_the_next() {
    let (line, at) = (Seldom::default(), |second: i64| Timestamp::from_second(second).unwrap_or_default());
    assert_eq!(line.may_say(at(100)), Some(0));
    assert_eq!((line.may_say(at(100)), line.may_say(at(109))), (None, None));
    assert_eq!(line.may_say(at(110)), Some(2));
    assert_eq!(line.may_say(at(50)), Some(0), "a clock that was set back");
}
