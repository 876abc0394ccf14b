//! How many bytes of requests are in memory while they are still being read: bounded for one caller and for all
//! (WORK-1). A request that is sent slowly, or never to its end, takes no room from others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolwarden_core::weak;

/// Bytes of one caller, and of all, that are read at once; never less than a few requests of the largest size.
const MOST_OF_ONE: usize = 16 << 20;
const MOST_OF_ALL: usize = 64 << 20;
/// The first bytes of every request are not counted: there are only so many connections.
const FREE: usize = 4 * 1024;

/// Bytes that are being read.
#[derive(Debug, Default)]
pub struct Bodies {
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    of_all: usize,
    of_one: HashMap<String, usize>,
    /// The most there ever was, for tests.
    peak: usize,
}

/// The room of one request, until this is dropped.
#[derive(Debug)]
pub struct Room {
    of: Arc<Bodies>,
    who: String,
    largest: usize,
    free: usize,
    taken: usize,
}

/// Whose room is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    Caller,
    Everybody,
}

impl Bodies {
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for a request of a caller; `largest` is how large one may be.
    #[must_use]
    pub fn room(self: &Arc<Self>, who: String, largest: usize) -> Room {
        Room { of: self.clone(), who, largest, free: FREE, taken: 0 }
    }

    /// The most bytes that were ever in progress at once.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.lock().peak
    }
}

impl Room {
    /// Takes room for more bytes.
    ///
    /// # Errors
    /// There is none: the request is to be refused.
    pub fn take(&mut self, bytes: usize) -> Result<(), Full> {
        let free = self.free.min(bytes);
        self.free -= free;
        let bytes = bytes - free;
        if bytes == 0 {
            return Ok(());
        }
        let mut taken = self.of.lock();
        let of_all = taken.of_all.saturating_add(bytes);
        let of_one = taken.of_one.get(&self.who).copied().unwrap_or(0).saturating_add(bytes);
        if of_one > weak::limit(MOST_OF_ONE.max(self.largest.saturating_mul(2))) {
            return Err(Full::Caller);
        }
        if of_all > weak::limit(MOST_OF_ALL.max(self.largest.saturating_mul(4))) {
            return Err(Full::Everybody);
        }
        taken.of_all = of_all;
        taken.peak = taken.peak.max(of_all);
        taken.of_one.insert(self.who.clone(), of_one);
        drop(taken);
        self.taken += bytes;
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.taken == 0 {
            return;
        }
        let mut taken = self.of.lock();
        taken.of_all = taken.of_all.saturating_sub(self.taken);
        let left = taken.of_one.get(&self.who).copied().unwrap_or(0).saturating_sub(self.taken);
        if left == 0 {
            taken.of_one.remove(&self.who);
        } else {
            taken.of_one.insert(self.who.clone(), left);
        }
    }
}

#[cfg(test)]
#[test]
fn work_1_bodies_in_progress_are_bounded_for_one_and_for_all() {
    let bodies = Bodies::new();
    let room = |who: &str| bodies.room(who.to_owned(), 4 << 20);
    let fill = |who: &str| {
        let mut rooms = Vec::new();
        loop {
            let mut one = room(who);
            if let Err(full) = one.take(4 << 20) {
                return (rooms, full);
            }
            rooms.push(one);
        }
    };
    let (first, full) = fill("a");
    assert_eq!((first.len(), full), (4, Full::Caller));
    assert_eq!(room("a").take(FREE), Ok(()), "small requests still pass");
    assert_eq!(room("b").take(1 << 20), Ok(()), "others notice nothing");
    let others: Vec<_> = (0..20).map(|number| fill(&format!("c{number}"))).collect();
    assert!(others.iter().any(|(_, full)| *full == Full::Everybody));
    assert!(bodies.peak() <= MOST_OF_ALL);
    drop((first, others));
    let taken = bodies.lock();
    assert_eq!((taken.of_all, taken.of_one.len()), (0, 0));
}
