//! Calls that are made for tasks, in the background: each once, with what it says before it ends.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use toolwarden_conversations::flight::Flight;
use toolwarden_mcp::sse::Event;

/// Tasks whose answer is waited for here, of all callers and of one; others are looked at when their caller asks for them.
const MOST_AWAITED: usize = 1_000;
const MOST_AWAITED_OF_ONE: usize = 100;
/// Messages of one call that wait for somebody who listens; the oldest go first.
const MOST_SAID: usize = 64;

/// Everything that runs here.
#[derive(Debug, Default)]
pub struct Runs {
    table: Mutex<Table>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct Table {
    running: HashMap<String, Arc<Run>>,
    /// Tasks and their callers.
    awaited: HashMap<String, String>,
    /// Calls that could not be made, and when that can be tried again.
    resting: HashMap<String, Instant>,
}

/// One call on its way.
#[derive(Debug, Default)]
pub struct Run {
    pub flight: Arc<Flight>,
    /// The conversation its server's questions belong to.
    session: Option<String>,
    said: Mutex<VecDeque<Event>>,
    asks: AtomicBool,
    moved: Notify,
}

impl Run {
    /// Keeps what the call says before it ends, for whoever asks for its result.
    pub fn say(&self, event: Event, is_question: bool) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() >= MOST_SAID {
            said.pop_front();
        }
        said.push_back(event);
        self.asks.store(is_question || self.asks(), Ordering::Relaxed);
        self.moved.notify_waiters();
    }

    /// What was said since somebody of the same conversation last listened.
    #[must_use]
    pub fn heard(&self, session: Option<&str>) -> Vec<Event> {
        if session != self.session.as_deref() {
            return Vec::new();
        }
        self.asks.store(false, Ordering::Relaxed);
        self.said.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    /// Whether a question waits for somebody who listens.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.asks.load(Ordering::Relaxed)
    }

    /// Ends when the call said something or ended, at the latest after so long.
    pub async fn news(&self, at_most: Duration) {
        let _ = timeout(at_most, self.moved.notified()).await;
    }
}

/// A call that runs, until dropped.
#[derive(Debug)]
pub struct Running {
    runs: Arc<Runs>,
    pub task: String,
    pub run: Arc<Run>,
}

impl Running {
    /// It cannot be made now: nobody tries again before this has passed.
    pub fn rest(&self, time: Duration) {
        let (now, mut table) = (Instant::now(), self.runs.lock());
        table.resting.retain(|_, until| *until > now);
        table.resting.insert(self.task.clone(), now + time);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.runs.lock().running.remove(&self.task);
        self.run.moved.notify_waiters();
        self.runs.ended.notify_waiters();
    }
}

/// A task whose answer is waited for, until dropped.
#[derive(Debug)]
pub struct Awaited {
    runs: Arc<Runs>,
    task: String,
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.runs.lock().awaited.remove(&self.task);
    }
}

impl Runs {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the call of a task; none where it runs, or has to rest.
    #[must_use]
    pub fn begin(self: &Arc<Self>, task: &str, session: Option<&str>) -> Option<Running> {
        let mut table = self.lock();
        let rests = table.resting.get(task).is_some_and(|until| *until > Instant::now());
        if rests || table.running.contains_key(task) {
            return None;
        }
        let run = Arc::new(Run { session: session.map(str::to_owned), ..Run::default() });
        table.running.insert(task.to_owned(), run.clone());
        Some(Running { runs: self.clone(), task: task.to_owned(), run })
    }

    /// The call of a task, while it runs.
    #[must_use]
    pub fn of(&self, task: &str) -> Option<Arc<Run>> {
        self.lock().running.get(task).cloned()
    }

    /// Room to wait for the answer to this task; none where it is waited for, or too many are.
    #[must_use]
    pub fn wait_for(self: &Arc<Self>, task: &str, caller: &str) -> Option<Awaited> {
        let mut table = self.lock();
        let of_one = table.awaited.values().filter(|one| *one == caller).count();
        let is_full = table.awaited.len() >= MOST_AWAITED || of_one >= MOST_AWAITED_OF_ONE;
        if is_full || table.awaited.contains_key(task) {
            return None;
        }
        table.awaited.insert(task.to_owned(), caller.to_owned());
        Some(Awaited { runs: self.clone(), task: task.to_owned() })
    }

    /// Ends when nothing runs.
    pub async fn all_ended(&self) {
        loop {
            let mut ended = pin!(self.ended.notified());
            // Listening before looking: what ends in between is heard.
            ended.as_mut().enable();
            if self.lock().running.is_empty() {
                return;
            }
            ended.await;
        }
    }
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
