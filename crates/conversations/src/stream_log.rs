//! A stream of events that outlives its connection, so that a legacy client can resume it.
//!
//! Whoever has news appends; a reader follows from any event on. Bounded: without a reader the oldest
//! events give way; with one, writers wait for it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

const MOST_EVENTS: usize = 256;
const MOST_BYTES: usize = 1024 * 1024;

/// One stream of one session.
#[derive(Debug)]
pub struct StreamLog {
    number: u64,
    inner: Mutex<Inner>,
    appended: Notify,
    read: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    next: u64,
    closed: bool,
    /// How many readers there were: the newest is served.
    attached: u64,
    has_reader: bool,
    /// The first event the reader has not taken.
    taken: u64,
}

impl Inner {
    fn is_full(&self) -> bool {
        self.events.len() >= MOST_EVENTS || self.bytes >= MOST_BYTES
    }

    fn drop_oldest(&mut self) {
        if let Some((_, data)) = self.events.pop_front() {
            self.bytes = self.bytes.saturating_sub(data.len());
        }
    }

    fn oldest_is_taken(&self) -> bool {
        self.events.front().is_some_and(|(number, _)| *number < self.taken)
    }
}

impl StreamLog {
    pub fn new(number: u64) -> Self {
        Self { number, inner: Mutex::default(), appended: Notify::new(), read: Notify::new() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event; waits while a reader is attached and far behind.
    pub async fn append(&self, data: Bytes) {
        loop {
            let waiting = self.read.notified();
            {
                let mut inner = self.lock();
                while inner.is_full() && (!inner.has_reader || inner.oldest_is_taken()) {
                    inner.drop_oldest();
                }
                if !inner.is_full() {
                    return self.push(&mut inner, data);
                }
            }
            waiting.await;
        }
    }

    /// Appends without waiting; the oldest events give way.
    pub fn put(&self, data: Bytes) {
        let mut inner = self.lock();
        while inner.is_full() {
            inner.drop_oldest();
        }
        self.push(&mut inner, data);
    }

    fn push(&self, inner: &mut Inner, data: Bytes) {
        let number = inner.next;
        inner.next += 1;
        inner.bytes += data.len();
        inner.events.push_back((number, data));
        self.appended.notify_waiters();
    }

    /// No event follows.
    pub fn close(&self) {
        self.lock().closed = true;
        self.appended.notify_waiters();
        self.read.notify_waiters();
    }

    pub fn has_reader(&self) -> bool {
        self.lock().has_reader
    }

    /// How much an ended stream keeps; none while it goes on or is being read.
    pub fn ended_size(&self) -> Option<usize> {
        let inner = self.lock();
        (inner.closed && !inner.has_reader).then_some(inner.bytes)
    }

    /// Whether the stream has ended, and nothing of it comes after this event.
    pub fn ends_with(&self, event: u64) -> bool {
        let inner = self.lock();
        inner.closed && inner.events.back().is_none_or(|(number, _)| *number <= event)
    }

    /// The id of an event: stream and number.
    pub fn event_id(&self, number: u64) -> String {
        format!("s{}.{number}", self.number)
    }

    /// The stream and event an id names.
    pub fn parse_id(id: &str) -> Option<(u64, u64)> {
        let (stream, event) = id.strip_prefix('s')?.split_once('.')?;
        Some((stream.parse().ok()?, event.parse().ok()?))
    }

    /// Attaches a reader. One before it ends: each event goes to one connection only.
    pub fn attach(self: &std::sync::Arc<Self>, from: Option<u64>) -> LogReader {
        let mut inner = self.lock();
        inner.attached += 1;
        inner.has_reader = true;
        let position = from.unwrap_or(inner.taken);
        inner.taken = position;
        let attached = inner.attached;
        drop(inner);
        self.appended.notify_waiters();
        self.read.notify_waiters();
        LogReader { log: self.clone(), attached, position }
    }
}

/// Follows a stream from some event on.
#[derive(Debug)]
pub struct LogReader {
    log: std::sync::Arc<StreamLog>,
    /// Which of its readers this is.
    attached: u64,
    position: u64,
}

impl LogReader {
    /// The next event with its id; none when the stream has ended, or another reader took over.
    pub async fn next(&mut self) -> Option<(String, Bytes)> {
        loop {
            let waiting = self.log.appended.notified();
            {
                let mut inner = self.log.lock();
                if inner.attached != self.attached {
                    return None;
                }
                let found = inner.events.iter().find(|(number, _)| *number >= self.position);
                if let Some((number, data)) = found.map(|(number, data)| (*number, data.clone())) {
                    self.position = number + 1;
                    inner.taken = self.position;
                    self.log.read.notify_waiters();
                    return Some((self.log.event_id(number), data));
                }
                if inner.closed {
                    return None;
                }
            }
            waiting.await;
        }
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        let mut inner = self.log.lock();
        if inner.attached == self.attached {
            inner.has_reader = false;
        }
        self.log.read.notify_waiters();
    }
}

#[cfg(test)]
#[path = "stream_log_tests.rs"]
mod tests;
