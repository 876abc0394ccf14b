//! How much of requests is in memory, from their first byte until they are answered: bounded for one caller and for all
//! (WORK-1). A request that is sent slowly, or never to its end, takes no room from others.
//!
//! Their bytes are counted, and their values: a read text takes as much memory for each value, however short it is written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolwarden_core::weak;

/// Bytes of one caller, and of all, that are read at once; never less than a few requests of the largest size.
const MOST_OF_ONE: usize = 16 << 20;
const MOST_OF_ALL: usize = 64 << 20;
/// Values of one caller, and of all; never less than a request of the largest size that holds nothing but short ones.
const MOST_VALUES_OF_ONE: usize = 4 << 20;
const MOST_VALUES_OF_ALL: usize = 8 << 20;
/// The first bytes of every request are not counted, nor its first values: there are only so many connections.
const FREE: usize = 4 * 1024;
const FREE_VALUES: usize = 1024;

/// Requests that are being read or on their way.
#[derive(Debug, Default)]
pub struct Bodies {
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: Tally,
    values: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    of_all: usize,
    of_one: HashMap<String, usize>,
    /// The most there ever was, for tests.
    peak: usize,
}

impl Tally {
    fn take(&mut self, who: &str, more: usize, most_of_one: usize, most_of_all: usize) -> Result<(), Full> {
        let of_all = self.of_all.saturating_add(more);
        let of_one = self.of_one.get(who).copied().unwrap_or(0).saturating_add(more);
        if of_one > weak::limit(most_of_one) {
            return Err(Full::Caller);
        }
        if of_all > weak::limit(most_of_all) {
            return Err(Full::Everybody);
        }
        self.of_all = of_all;
        self.peak = self.peak.max(of_all);
        self.of_one.insert(who.to_owned(), of_one);
        Ok(())
    }

    fn give_back(&mut self, who: &str, taken: usize) {
        self.of_all = self.of_all.saturating_sub(taken);
        let left = self.of_one.get(who).copied().unwrap_or(0).saturating_sub(taken);
        if left == 0 {
            self.of_one.remove(who);
        } else {
            self.of_one.insert(who.to_owned(), left);
        }
    }
}

/// The room of one request, until this is dropped.
#[derive(Debug)]
pub struct Room {
    of: Arc<Bodies>,
    who: String,
    largest: usize,
    free: usize,
    taken: usize,
    values: usize,
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
        Room { of: self.clone(), who, largest, free: FREE, taken: 0, values: 0 }
    }

    /// The bytes and values that are in progress.
    #[must_use]
    pub fn in_progress(&self) -> (usize, usize) {
        let taken = self.lock();
        (taken.bytes.of_all, taken.values.of_all)
    }

    /// The most bytes that were ever in progress at once.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.lock().bytes.peak
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
        let (of_one, of_all) = (self.largest.saturating_mul(2), self.largest.saturating_mul(4));
        self.of.lock().bytes.take(&self.who, bytes, MOST_OF_ONE.max(of_one), MOST_OF_ALL.max(of_all))?;
        self.taken += bytes;
        Ok(())
    }

    /// Takes room for the values a text may hold, before it is read: there are no more than it has signs that begin one.
    ///
    /// # Errors
    /// There is none: the request is to be refused.
    pub fn weigh(&mut self, text: &[u8]) -> Result<(), Full> {
        let values = text.iter().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count();
        let values = values.saturating_sub(FREE_VALUES);
        if values == 0 {
            return Ok(());
        }
        let (of_one, of_all) = (self.largest, self.largest.saturating_mul(2));
        let (of_one, of_all) = (MOST_VALUES_OF_ONE.max(of_one), MOST_VALUES_OF_ALL.max(of_all));
        self.of.lock().values.take(&self.who, values, of_one, of_all)?;
        self.values += values;
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.taken == 0 && self.values == 0 {
            return;
        }
        let mut taken = self.of.lock();
        taken.bytes.give_back(&self.who, self.taken);
        taken.values.give_back(&self.who, self.values);
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
    assert_eq!((taken.bytes.of_all, taken.bytes.of_one.len()), (0, 0));
}

#[cfg(test)]
#[test]
fn work_1_values_of_requests_are_bounded_however_short_they_are_written() {
    let bodies = Bodies::new();
    let objects = format!("[{}0]", "{\"a\":1},".repeat(240_000));
    let fill = |who: &str| {
        let mut rooms = Vec::new();
        loop {
            let mut room = bodies.room(who.to_owned(), 4 << 20);
            if let Err(full) = room.weigh(objects.as_bytes()) {
                return (rooms, full);
            }
            rooms.push(room);
        }
    };
    let (first, full) = fill("a");
    assert_eq!((first.len(), full), (5, Full::Caller));
    assert_eq!(bodies.room("a".to_owned(), 4 << 20).weigh(b"{\"a\":[1,2,3]}"), Ok(()), "small requests still pass");
    let (others, full) = fill("b");
    assert_eq!((others.len(), full), (5, Full::Caller), "others notice nothing");
    assert_eq!(fill("c").1, Full::Everybody);
    // The largest request there may be always has room alone.
    drop((first, others));
    let largest = format!("[{}]", "[],".repeat((8 << 20) / 3));
    assert_eq!(bodies.room("a".to_owned(), 8 << 20).weigh(largest.as_bytes()), Ok(()));
    let taken = bodies.lock();
    assert_eq!((taken.values.of_all, taken.values.of_one.len()), (0, 0));
    assert!(taken.values.peak <= MOST_VALUES_OF_ALL);
}
