//! A caller whose calls of a tool the machine held again and again varies them until one passes: after so many it is a
//! person's turn.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use toolwarden_core::Digest;

use crate::Failure;

/// So many calls of one tool by one caller that were held within this time.
pub(crate) const HELD: usize = 5;
const WITHIN: Duration = Duration::from_secs(10 * 60);
/// Callers and tools that are remembered.
const MOST: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Insistence(Mutex<HashMap<Digest, VecDeque<Timestamp>>>);

impl Insistence {
    /// Whether one more question may be asked about this tool for this caller.
    pub(crate) fn enter(&self, key: Digest, now: Timestamp) -> Result<(), Failure> {
        let mut known = self.lock();
        let Some(held) = known.get_mut(&key) else {
            if known.len() >= MOST {
                known.retain(|_, held| held.back().is_some_and(|last| is_recent(*last, now)));
            }
            return if known.len() < MOST { Ok(()) } else { Err(Failure::Insists) };
        };
        held.retain(|one| is_recent(*one, now));
        if held.len() < HELD { Ok(()) } else { Err(Failure::Insists) }
    }

    /// The machine held one.
    pub(crate) fn held(&self, key: Digest, now: Timestamp) {
        let mut known = self.lock();
        let held = known.entry(key).or_default();
        if held.len() >= HELD {
            held.pop_front();
        }
        held.push_back(now);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, VecDeque<Timestamp>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One from the future counts: a clock that goes back gives nothing back.
fn is_recent(one: Timestamp, now: Timestamp) -> bool {
    now.checked_sub(WITHIN).is_ok_and(|since| one > since)
}

#[cfg(test)]
#[path = "insistence_tests.rs"]
mod tests;
