//! The task that carries spans to the collector, in batches, beside all calls.
//!
//! A collector that fails is told of once, and once when it is back; its spans are given up, because keeping
//! them would only fill memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::collector::Collector;
use super::{Finished, SpanCounts, Tracer, otlp};

/// Spans that wait; more are dropped.
const MOST_WAITING: usize = 4096;
/// Spans of one delivery.
const LARGEST_BATCH: usize = 512;
/// How long a span waits for others.
const GATHER: Duration = Duration::from_secs(1);
/// How long a collector that failed is left alone.
const REST: Duration = Duration::from_secs(5);
/// How long the last delivery may take when everything ends.
const GOODBYE: Duration = Duration::from_secs(3);

/// The running task; ends with `stop`, or when dropped.
#[derive(Debug)]
pub struct Exporter {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// Starts delivering to a collector. `node` names this process in its traces.
#[must_use]
pub fn start(collector: Collector, node: &str) -> (Tracer, Exporter) {
    let (queue, spans) = mpsc::channel(MOST_WAITING);
    let (stop, stopped) = oneshot::channel();
    let counts = Arc::new(SpanCounts::default());
    let delivery = Delivery { collector, node: node.to_owned(), counts: counts.clone(), is_failing: false };
    let task = tokio::spawn(delivery.run(spans, stopped));
    (Tracer::new(queue, counts), Exporter { stop: Some(stop), task })
}

impl Exporter {
    /// Delivers what waits, if that takes no more than a few seconds, and ends.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        if tokio::time::timeout(GOODBYE, &mut self.task).await.is_err() {
            tracing::warn!("the last spans could not be delivered in time");
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Delivery {
    collector: Collector,
    node: String,
    counts: Arc<SpanCounts>,
    is_failing: bool,
}

impl Delivery {
    async fn run(mut self, mut spans: mpsc::Receiver<Finished>, mut stopped: oneshot::Receiver<()>) {
        let mut batch = Vec::with_capacity(LARGEST_BATCH);
        loop {
            let gathered = gather(&mut spans, &mut batch);
            // Ends when the sender is dropped; nobody sends.
            let stops = tokio::select! {
                biased;
                _ = &mut stopped => true,
                is_open = gathered => !is_open,
            };
            if stops {
                break;
            }
            self.deliver(&mut batch).await;
            if self.is_failing {
                tokio::select! {
                    _ = &mut stopped => break,
                    () = tokio::time::sleep(REST) => {}
                }
            }
        }
        spans.close();
        while let Ok(span) = spans.try_recv() {
            batch.push(span);
            if batch.len() >= LARGEST_BATCH {
                self.deliver(&mut batch).await;
            }
        }
        self.deliver(&mut batch).await;
    }

    async fn deliver(&mut self, batch: &mut Vec<Finished>) {
        if batch.is_empty() {
            return;
        }
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let delivered = self.collector.deliver(otlp::body(batch, &self.node)).await;
        batch.clear();
        match (delivered, self.is_failing) {
            (Ok(()), was_failing) => {
                self.counts.sent.fetch_add(count, Ordering::Relaxed);
                if was_failing {
                    tracing::info!("the collector takes traces again");
                }
                self.is_failing = false;
            }
            (Err(error), was_failing) => {
                self.counts.failed.fetch_add(count, Ordering::Relaxed);
                if !was_failing {
                    tracing::warn!(%error, "traces are not delivered, and given up until the collector takes them");
                }
                self.is_failing = true;
            }
        }
    }
}

/// Waits for a batch: until it is full, or a while after its first span. Says whether more can come.
async fn gather(spans: &mut mpsc::Receiver<Finished>, batch: &mut Vec<Finished>) -> bool {
    if batch.is_empty() {
        match spans.recv().await {
            Some(span) => batch.push(span),
            None => return false,
        }
    }
    let filling = async {
        while batch.len() < LARGEST_BATCH {
            let room = LARGEST_BATCH - batch.len();
            if spans.recv_many(batch, room).await == 0 {
                return false;
            }
        }
        true
    };
    tokio::time::timeout(GATHER, filling).await.unwrap_or(true)
}

#[cfg(test)]
#[path = "exporter_tests.rs"]
mod tests;
