//! Traces: where a call stands in a trace of its client, and what is told of it when it ends.
//!
//! A span is begun for every request while tracing is on and told only if the request is recorded. Telling is
//! leaving it in a queue; what does not fit is dropped and counted, no call ever waits. Arguments, results and
//! texts of clients are no part of a span.

mod collector;
mod context;
mod exporter;
mod otlp;

pub use collector::{Collector, CollectorError};
pub use context::TraceContext;
pub use exporter::{Exporter, start};

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use toolwarden_core::{Decision, Reason, Status};

use crate::metrics::Door;

/// What became of spans.
#[derive(Debug, Default)]
pub(crate) struct SpanCounts {
    pub(crate) sent: AtomicU64,
    /// The queue was full.
    pub(crate) dropped: AtomicU64,
    /// The collector did not take them.
    pub(crate) failed: AtomicU64,
}

/// Begins spans and takes them when they end. Clones fill one queue.
#[derive(Debug, Clone)]
pub struct Tracer {
    queue: mpsc::Sender<Finished>,
    counts: Arc<SpanCounts>,
    /// Ids must be unlike all others, not secret: a keyed hash of a counter.
    key: RandomState,
    next: Arc<AtomicU64>,
}

/// A span that has begun.
#[derive(Debug, Clone)]
pub struct Span {
    context: TraceContext,
    parent: Option<u64>,
    started: Timestamp,
}

/// How a call ended, for its span.
#[derive(Debug, Clone)]
pub struct Ending {
    pub method: Arc<str>,
    pub server: Option<Arc<str>>,
    pub tool: Option<Arc<str>>,
    /// The mark of the session, never its id.
    pub session: Option<String>,
    pub door: Door,
    /// Its number in the journal of this process.
    pub call: u64,
    pub decision: Option<Decision>,
    pub reason: Option<Reason>,
    pub status: Status,
    pub took: Duration,
    pub request_bytes: usize,
    pub response_bytes: u64,
}

/// A span and its end.
#[derive(Debug)]
pub(crate) struct Finished {
    span: Span,
    ending: Ending,
}

impl Tracer {
    fn new(queue: mpsc::Sender<Finished>, counts: Arc<SpanCounts>) -> Self {
        Self { queue, counts, key: RandomState::new(), next: Arc::default() }
    }

    /// Begins a span below the client's, or a trace of its own.
    #[must_use]
    pub fn begin(&self, client: Option<TraceContext>, now: Timestamp) -> Span {
        let id = self.id();
        match client {
            Some(client) => {
                Span { parent: Some(client.span), context: TraceContext { span: id, ..client }, started: now }
            }
            None => {
                let trace = u128::from(self.id()) << 64 | u128::from(self.id());
                let context = TraceContext { trace, span: id, flags: TraceContext::SAMPLED, state: None };
                Span { context, parent: None, started: now }
            }
        }
    }

    /// Leaves an ended span for the collector; one whose client wants no record of its trace is not told.
    pub fn end(&self, span: Span, ending: Ending) {
        if span.context.is_sampled() && self.queue.try_send(Finished { span, ending }).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn counts(&self) -> &SpanCounts {
        &self.counts
    }

    /// Never zero, which would mean none.
    fn id(&self) -> u64 {
        self.key.hash_one(self.next.fetch_add(1, Ordering::Relaxed)).max(1)
    }
}

impl Span {
    /// What a server is told: this span as its parent.
    #[must_use]
    pub fn context(&self) -> &TraceContext {
        &self.context
    }
}
