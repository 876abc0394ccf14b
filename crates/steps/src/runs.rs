//! Calls that are made for tasks, in the background: each once, with what it says before it ends.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use toolwarden_conversations::flight::Flight;
use toolwarden_mcp::sse::Event;

/// Tasks whose answer is waited for here; others are looked at when their caller asks for them.
const MOST_AWAITED: usize = 1_000;
/// Messages of one call that wait for somebody who listens; the oldest go first.
const MOST_SAID: usize = 64;

/// Everything that runs here.
#[derive(Debug, Default)]
pub struct Runs {
    running: Mutex<HashMap<String, Arc<Run>>>,
    awaited: AtomicUsize,
    moved: Notify,
}

/// One call on its way.
#[derive(Debug, Default)]
pub struct Run {
    pub flight: Arc<Flight>,
    said: Mutex<VecDeque<Event>>,
    asks: AtomicBool,
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
    }

    /// What was said since somebody last listened.
    #[must_use]
    pub fn heard(&self) -> Vec<Event> {
        let heard = self.said.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect();
        self.asks.store(false, Ordering::Relaxed);
        heard
    }

    /// Whether a question waits for somebody who listens.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.asks.load(Ordering::Relaxed)
    }
}

/// A call that runs, until dropped.
#[derive(Debug)]
pub struct Running {
    runs: Arc<Runs>,
    task: String,
    pub run: Arc<Run>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.runs.lock().remove(&self.task);
        self.runs.moved.notify_waiters();
    }
}

/// A task whose answer is waited for, until dropped.
#[derive(Debug)]
pub struct Awaited(Arc<Runs>);

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.awaited.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Runs {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Run>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the call of a task; none where it runs.
    #[must_use]
    pub fn begin(self: &Arc<Self>, task: &str) -> Option<Running> {
        let mut running = self.lock();
        if running.contains_key(task) {
            return None;
        }
        let run = Arc::<Run>::default();
        running.insert(task.to_owned(), run.clone());
        Some(Running { runs: self.clone(), task: task.to_owned(), run })
    }

    /// The call of a task, while it runs.
    #[must_use]
    pub fn of(&self, task: &str) -> Option<Arc<Run>> {
        self.lock().get(task).cloned()
    }

    /// Room to wait for the answer to one more task; none where too many are waited for.
    #[must_use]
    pub fn wait_for(self: &Arc<Self>) -> Option<Awaited> {
        let before = self.awaited.fetch_add(1, Ordering::Relaxed);
        let awaited = Awaited(self.clone());
        (before < MOST_AWAITED).then_some(awaited)
    }

    /// Tells whoever waits that a call said something.
    pub fn tell(&self) {
        self.moved.notify_waiters();
    }

    /// Ends when something of a call may be new, at the latest after so long.
    pub async fn news(&self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.moved.notified()).await;
    }

    /// Ends when nothing runs.
    pub async fn all_ended(&self) {
        loop {
            let mut moved = pin!(self.moved.notified());
            // Listening before looking: what ends in between is heard.
            moved.as_mut().enable();
            if self.lock().is_empty() {
                return;
            }
            moved.await;
        }
    }
}
