//! The task of a running server that delivers journals to the index, again and again.
//!
//! Delivers every interval, when told to, and at once when a record waits for the index. Failures
//! are logged and tried again: the journal keeps everything meanwhile.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::ship::ship_at_most;
use super::{Index, IndexError};
use crate::journal::Journal;

/// Lines of one node that are delivered at each interval while nobody asks.
const UNASKED_LINES: u64 = 4000;

/// A delivery task; ends with `stop`, or when dropped.
#[derive(Debug)]
pub struct Shipper {
    signals: Arc<Signals>,
    task: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Signals {
    now: Notify,
    stop: Notify,
}

/// Starts delivering everything below a journal root. `journal` is this process's own one, whose
/// writers may wait for the index.
#[must_use]
pub fn spawn_shipper(root: PathBuf, index: Index, journal: Option<Journal>, interval: Duration) -> Shipper {
    let signals = Arc::new(Signals::default());
    let task = tokio::spawn(run(root, index, journal, interval, Arc::clone(&signals)));
    Shipper { signals, task: Some(task) }
}

impl Shipper {
    /// Delivers now rather than at the next interval.
    pub fn deliver(&self) {
        self.signals.now.notify_one();
    }

    /// Delivers once more and ends. Call it after the journal is closed.
    pub async fn stop(mut self) {
        self.signals.stop.notify_one();
        if let Some(task) = self.task.take()
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the delivery of the journal ended badly");
        }
    }
}

impl Drop for Shipper {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn run(root: PathBuf, index: Index, journal: Option<Journal>, interval: Duration, signals: Arc<Signals>) {
    loop {
        let mut stops = false;
        // Whoever asks gets everything; on its own account delivery keeps a pace that leaves the
        // machine to calls, and catches up when they are fewer.
        let mut most = u64::MAX;
        tokio::select! {
            () = signals.stop.notified() => stops = true,
            () = signals.now.notified() => {}
            () = wanted(journal.as_ref()) => {}
            () = tokio::time::sleep(interval) => most = UNASKED_LINES,
        }
        if let Err(error) = deliver(&root, &index, journal.as_ref(), most).await {
            tracing::warn!(%error, "the journal is not delivered; it is kept and tried again");
        }
        if stops {
            return;
        }
    }
}

async fn wanted(journal: Option<&Journal>) {
    match journal {
        Some(journal) => journal.delivery_wanted().await,
        None => std::future::pending().await,
    }
}

async fn deliver(
    root: &std::path::Path,
    index: &Index,
    journal: Option<&Journal>,
    most: u64,
) -> Result<(), IndexError> {
    let delivered = ship_at_most(root, index, most).await?;
    if let Some(journal) = journal {
        let own = delivered.nodes.iter().find(|(node, _)| *node == **journal.node());
        if let Some((_, sequence)) = own {
            journal.delivered_through(*sequence);
        }
    }
    for problem in delivered.problems {
        tracing::warn!(error = %problem, "a journal is not delivered");
    }
    Ok(())
}
