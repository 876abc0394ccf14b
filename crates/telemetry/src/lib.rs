//! What a running gateway tells of itself: counts for Prometheus, whether it is fit to serve, lines of its log, traces.
//!
//! Nothing here is on the way of a call but additions to atomics that were laid out before it came, one row for
//! each configured server. No label comes from a client or a server: names of servers are those of the config,
//! everything else is a closed list.

mod classifying;
mod histogram;
mod log;
pub mod metrics;
mod observed;
#[cfg(test)]
mod paper;
mod process;
mod reloads;
mod render;
pub mod trace;

pub use classifying::Source;
pub use log::{LogFormat, LogLines};
pub use metrics::{Door, Metrics, ServerMetrics, TurnedAway};
pub use observed::{JournalObserved, Observed, ServerObserved};
pub use process::ProcessObserved;
pub use reloads::{Refused, Reloads};
pub use render::render;
pub use trace::Tracer;

use std::sync::Arc;

use jiff::Timestamp;

/// Everything one gateway tells of itself.
#[derive(Debug)]
pub struct Telemetry {
    pub metrics: Metrics,
    pub reloads: Reloads,
    /// Where tracing is on.
    pub tracer: Option<Tracer>,
    pub(crate) started: Timestamp,
}

impl Telemetry {
    /// For these servers, in the order they are configured; the policy they came with is in force since `now`.
    #[must_use]
    pub fn new(servers: impl IntoIterator<Item = Arc<str>>, tracer: Option<Tracer>, now: Timestamp) -> Arc<Self> {
        Arc::new(Self { metrics: Metrics::new(servers), reloads: Reloads::new(now), tracer, started: now })
    }
}

#[cfg(test)]
mod documents_tests;
