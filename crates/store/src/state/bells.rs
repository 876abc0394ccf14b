//! Who waits for a held call to be answered, and who wants to hear of all of them.
//!
//! A move of one held call wakes those who wait for that one: with ten thousand waiting, an answer costs what it costs
//! with ten. A bell only says that it is worth looking; what counts is in the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{broadcast, watch};

use super::approvals::ApprovalNews;
use super::attendance::Attendance;

/// News that wait for whoever listens; who is slower looks at everything again.
const WAITING: usize = 1024;

/// The bells of one process.
#[derive(Debug)]
pub struct Bells {
    /// Each tells how often it rang.
    by_id: Mutex<HashMap<String, watch::Sender<u64>>>,
    news: broadcast::Sender<ApprovalNews>,
    /// Which persons watch.
    pub attendance: Attendance,
}

impl Default for Bells {
    fn default() -> Self {
        Self { by_id: Mutex::default(), news: broadcast::Sender::new(WAITING), attendance: Attendance::default() }
    }
}

/// Somebody waits for one held call. Dropped, nobody does.
#[derive(Debug)]
pub struct Bell {
    bells: Arc<Bells>,
    id: String,
    rung: watch::Receiver<u64>,
}

impl Bells {
    /// A bell for one held call. Whoever makes one looks at the store afterwards, so that nothing is missed.
    #[must_use]
    pub fn hang(self: &Arc<Self>, id: &str) -> Bell {
        let rung = self.lock().entry(id.to_owned()).or_default().subscribe();
        Bell { bells: self.clone(), id: id.to_owned(), rung }
    }

    /// Every move that becomes known from now on.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<ApprovalNews> {
        self.news.subscribe()
    }

    /// How many listen to all moves.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.news.receiver_count()
    }

    /// Whether somebody waits for this one.
    #[must_use]
    pub fn is_hung(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    /// How many calls are waited for.
    #[must_use]
    pub fn waited_for(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn ring(&self, news: Vec<ApprovalNews>) {
        let by_id = self.lock();
        for one in news {
            if let Some(bell) = by_id.get(&one.id) {
                bell.send_modify(|times| *times += 1);
            }
            // Nobody need listen.
            let _ = self.news.send(one);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<u64>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bell {
    /// Ends when it is worth looking again: at once, where it rang since it was last waited for.
    pub async fn rung(&mut self) {
        // The bell is there as long as somebody waits for it.
        let _ = self.rung.changed().await;
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let mut by_id = self.bells.lock();
        // This one still counts as a listener.
        if by_id.get(&self.id).is_some_and(|bell| bell.receiver_count() <= 1) {
            by_id.remove(&self.id);
        }
    }
}
