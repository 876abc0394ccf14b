//! Calls in flight at one level: so many at the same time, and who is next when one of them ends.
//!
//! A place is taken and given back without a lock as long as there is room and nobody waits. Beyond that callers wait in
//! turns: each free place goes to the next caller, not to the next call, so that somebody who sends thousands waits for
//! their own. Nobody waits in here for good: whoever asks gives up when they like, and the queue is bounded.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

/// Calls that wait at one level: of everybody, and of one caller.
const MOST_WAITING: usize = 1024;
const MOST_WAITING_OF_ONE: usize = 256;

/// The places of one level.
#[derive(Debug)]
pub(crate) struct Turns {
    /// How many there are; `u64::MAX` where nobody set a limit.
    limit: AtomicU64,
    taken: AtomicU64,
    /// As many as wait in the queue.
    waiting: AtomicUsize,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Whose turn it is first; each with their calls in the order they came.
    callers: VecDeque<(String, VecDeque<Waits>)>,
    numbers: u64,
}

#[derive(Debug)]
struct Waits {
    number: u64,
    place: oneshot::Sender<()>,
}

/// What becomes of a call that wants a place.
#[derive(Debug)]
pub(crate) enum Turn {
    Now(Place),
    Later(Waiter),
    /// Too many wait already.
    Never,
}

/// A place, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Turns>);

/// A call that waits for its place; whoever drops it waits no longer.
#[derive(Debug)]
pub(crate) struct Waiter {
    turns: Arc<Turns>,
    number: u64,
    granted: oneshot::Receiver<()>,
    has_place: bool,
}

impl Turns {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self {
            limit: AtomicU64::new(limit.unwrap_or(u64::MAX)),
            taken: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            queue: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another limit counts from now on; those who have a place keep it.
    pub(crate) fn set_limit(&self, limit: Option<u64>) {
        self.limit.store(limit.unwrap_or(u64::MAX), Ordering::SeqCst);
        self.hand_out();
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::SeqCst)
    }

    /// A place at once where there is one and nobody was here before; else a turn among those who wait.
    pub(crate) fn take(self: &Arc<Self>, who: impl FnOnce() -> String) -> Turn {
        if self.waiting.load(Ordering::SeqCst) == 0 && self.try_take() {
            return Turn::Now(Place(self.clone()));
        }
        if self.limit.load(Ordering::SeqCst) == 0 {
            return Turn::Never;
        }
        let who = who();
        let mut queue = self.lock();
        if self.waiting.load(Ordering::SeqCst) >= MOST_WAITING {
            return Turn::Never;
        }
        queue.numbers += 1;
        let number = queue.numbers;
        let (place, granted) = oneshot::channel();
        match queue.callers.iter_mut().find(|(caller, _)| *caller == who) {
            Some((_, calls)) if calls.len() >= MOST_WAITING_OF_ONE => return Turn::Never,
            Some((_, calls)) => calls.push_back(Waits { number, place }),
            None => queue.callers.push_back((who, VecDeque::from([Waits { number, place }]))),
        }
        // Said before looking once more: a place that is given back in between is seen by one of the two.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.hand_out_of(&mut queue);
        drop(queue);
        Turn::Later(Waiter { turns: self.clone(), number, granted, has_place: false })
    }

    fn try_take(&self) -> bool {
        let limit = self.limit.load(Ordering::SeqCst);
        let more = |taken: u64| (taken < limit).then_some(taken + 1);
        self.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::SeqCst);
        self.hand_out();
    }

    fn hand_out(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.hand_out_of(&mut self.lock());
        }
    }

    /// Gives every free place to the caller whose turn it is.
    fn hand_out_of(&self, queue: &mut Queue) {
        while !queue.callers.is_empty() && self.try_take() {
            let next = queue.next();
            let is_granted = next.is_some_and(|waits| {
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                waits.place.send(()).is_ok()
            });
            if !is_granted {
                self.taken.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

impl Queue {
    /// The first call of the caller whose turn it is, who then comes last.
    fn next(&mut self) -> Option<Waits> {
        let (who, mut calls) = self.callers.pop_front()?;
        let first = calls.pop_front();
        if !calls.is_empty() {
            self.callers.push_back((who, calls));
        }
        first
    }

    /// Takes a call out; says whether it still waited.
    fn remove(&mut self, number: u64) -> bool {
        for (_, calls) in &mut self.callers {
            if let Some(place) = calls.iter().position(|waits| waits.number == number) {
                calls.remove(place);
                self.callers.retain(|(_, calls)| !calls.is_empty());
                return true;
            }
        }
        false
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

impl Future for Waiter {
    type Output = Place;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Place> {
        match Pin::new(&mut self.granted).poll(context) {
            Poll::Ready(Ok(())) => {
                self.has_place = true;
                Poll::Ready(Place(self.turns.clone()))
            }
            // The queue sends before it forgets, so this does not happen; and would grant nothing.
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if self.has_place {
            return;
        }
        let waited = {
            let mut queue = self.turns.lock();
            let waited = queue.remove(self.number);
            if waited {
                self.turns.waiting.fetch_sub(1, Ordering::SeqCst);
            }
            waited
        };
        // It was this one's turn a moment ago.
        if !waited {
            self.turns.give_back();
        }
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
