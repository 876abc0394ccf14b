//! How many of something each caller has open: bounded for one, so that nobody uses up what is there for all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts by caller.
#[derive(Debug)]
pub struct Heads {
    most_of_one: usize,
    open: Mutex<HashMap<String, usize>>,
}

/// One of them, as long as this lives.
#[derive(Debug)]
pub struct Head {
    of: Arc<Heads>,
    who: String,
}

impl Heads {
    #[must_use]
    pub fn new(most_of_one: usize) -> Arc<Self> {
        Arc::new(Self { most_of_one, open: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more of this caller; none where they have as many as one may have.
    pub fn open(self: &Arc<Self>, who: String) -> Option<Head> {
        let mut open = self.lock();
        let count = open.entry(who.clone()).or_default();
        if *count >= self.most_of_one {
            return None;
        }
        *count += 1;
        Some(Head { of: self.clone(), who })
    }

    /// How many are open.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().values().sum()
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        let mut open = self.of.lock();
        if let Some(count) = open.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
#[test]
fn one_caller_has_so_many_and_leaves_room_for_others() {
    let heads = Heads::new(2);
    let open = |who: &str| heads.open(who.to_owned());
    let (first, second) = (open("a"), open("a"));
    assert!(first.is_some() && second.is_some());
    assert!(open("a").is_none());
    assert!(open("b").is_some());
    drop(first);
    assert!(open("a").is_some());
    drop(second);
    assert_eq!((heads.count(), heads.lock().len()), (0, 0));
}
