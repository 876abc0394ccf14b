//! What is counted of calls, in atomics that stand ready before the first one comes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use toolwarden_core::{Decision, Reason, Status};

use crate::classifying::Classifying;
use crate::histogram::Histogram;

/// Calls take from a millisecond to their limit of minutes.
const CALL_BOUNDS: [u64; 15] = [
    1_000,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
];
/// What the gateway adds should be microseconds; a slow disk shows in the upper half.
const ADMISSION_BOUNDS: [u64; 12] = [10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000, 50_000, 250_000, 1_000_000];

/// The kind of door a message came in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    Http,
    Stdio,
    Events,
}

impl Door {
    pub(crate) const ALL: [Self; 3] = [Self::Http, Self::Stdio, Self::Events];

    /// As records name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "mcp_http",
            Self::Stdio => "mcp_stdio",
            Self::Events => "mcp_sse",
        }
    }
}

/// Why a message ended before it could be judged. These are counted and not recorded: whoever sends them is
/// not known, and must not be able to fill a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnedAway {
    Host,
    Origin,
    Credential,
    Mode,
    Headers,
    Body,
    Malformed,
    Session,
    /// Its record could not be written.
    Record,
    /// It cannot be acted on: no such server, a repeated id, wrong parameters.
    Unusable,
}

impl TurnedAway {
    pub(crate) const ALL: [Self; 10] = [
        Self::Host,
        Self::Origin,
        Self::Credential,
        Self::Mode,
        Self::Headers,
        Self::Body,
        Self::Malformed,
        Self::Session,
        Self::Record,
        Self::Unusable,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Origin => "origin",
            Self::Credential => "credential",
            Self::Mode => "mode",
            Self::Headers => "headers",
            Self::Body => "body",
            Self::Malformed => "malformed",
            Self::Session => "session",
            Self::Record => "record",
            Self::Unusable => "unusable",
        }
    }
}

/// What was decided; nothing where a server could not be reached before the judge was asked.
pub(crate) const DECISIONS: [&str; 4] = ["allow", "hold", "deny", "none"];

fn decision_place(decision: Option<Decision>) -> usize {
    match decision {
        Some(Decision::Allow) => 0,
        Some(Decision::Hold) => 1,
        Some(Decision::Deny) => 2,
        None => 3,
    }
}

fn row(length: usize) -> Box<[AtomicU64]> {
    (0..length).map(|_| AtomicU64::new(0)).collect()
}

fn add(counts: &[AtomicU64], place: usize, more: u64) {
    if let Some(count) = counts.get(place) {
        count.fetch_add(more, Ordering::Relaxed);
    }
}

/// All counts of one gateway.
#[derive(Debug)]
pub struct Metrics {
    rows: ArcSwap<Rows>,
    /// What named no server that is configured.
    pub(crate) elsewhere: Arc<ServerMetrics>,
    pub(crate) turned_away: Box<[AtomicU64]>,
    refusals: Arc<[AtomicU64]>,
    pub classifier: Classifying,
}

/// The rows of servers.
#[derive(Debug, Default)]
struct Rows {
    /// Of every server there ever was: a call may end after its server was taken away, and one that comes back
    /// counts on.
    all: HashMap<Arc<str>, Arc<ServerMetrics>>,
    /// Those that are configured, in that order.
    shown: Arc<[Arc<ServerMetrics>]>,
}

impl Metrics {
    pub(crate) fn new(servers: impl IntoIterator<Item = Arc<str>>) -> Self {
        let refusals: Arc<[AtomicU64]> = row(Reason::ALL.len()).into();
        let metrics = Self {
            rows: ArcSwap::default(),
            elsewhere: Arc::new(ServerMetrics::new("".into(), refusals.clone())),
            turned_away: row(TurnedAway::ALL.len()),
            classifier: Classifying::default(),
            refusals,
        };
        metrics.replace(servers);
        metrics
    }

    /// Others are configured from now on.
    pub fn replace(&self, servers: impl IntoIterator<Item = Arc<str>>) {
        let mut all = self.rows.load().all.clone();
        let of = |name: Arc<str>| {
            let fresh = || Arc::new(ServerMetrics::new(name.clone(), self.refusals.clone()));
            all.entry(name.clone()).or_insert_with(fresh).clone()
        };
        let shown = servers.into_iter().map(of).collect();
        self.rows.store(Arc::new(Rows { all, shown }));
    }

    /// The row of a server; of none where a message reached none.
    #[must_use]
    pub fn server(&self, name: Option<&str>) -> Arc<ServerMetrics> {
        let rows = self.rows.load();
        name.and_then(|name| rows.all.get(name)).unwrap_or(&self.elsewhere).clone()
    }

    pub(crate) fn servers(&self) -> Arc<[Arc<ServerMetrics>]> {
        self.rows.load().shown.clone()
    }

    /// A message ended before it could be judged.
    pub fn turned_away(&self, why: TurnedAway) {
        add(&self.turned_away, why as usize, 1);
    }

    pub(crate) fn refusals(&self, reason: Reason) -> u64 {
        self.refusals.get(reason as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

/// The counts of one server.
#[derive(Debug)]
pub struct ServerMetrics {
    pub(crate) name: Arc<str>,
    /// By door, decision and status.
    calls: Box<[AtomicU64]>,
    refusals: Arc<[AtomicU64]>,
    pub(crate) in_flight: AtomicI64,
    pub(crate) request_bytes: AtomicU64,
    pub(crate) response_bytes: AtomicU64,
    pub(crate) whole: Histogram,
    pub(crate) admission: Histogram,
}

impl ServerMetrics {
    fn new(name: Arc<str>, refusals: Arc<[AtomicU64]>) -> Self {
        Self {
            name,
            calls: row(Door::ALL.len() * DECISIONS.len() * Status::ALL.len()),
            refusals,
            in_flight: AtomicI64::new(0),
            request_bytes: AtomicU64::new(0),
            response_bytes: AtomicU64::new(0),
            whole: Histogram::new(&CALL_BOUNDS),
            admission: Histogram::new(&ADMISSION_BOUNDS),
        }
    }

    /// A call leaves for the server, so long after it arrived.
    pub fn left(&self, after: Duration, request_bytes: usize) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.admission.observe(after);
        self.request_bytes.fetch_add(u64::try_from(request_bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// A call that left has ended.
    pub fn ended(&self, door: Door, status: Status, took: Duration, response_bytes: u64) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.whole.observe(took);
        self.response_bytes.fetch_add(response_bytes, Ordering::Relaxed);
        self.count(door, Some(Decision::Allow), status);
    }

    /// A message that was recorded as refused: it did not leave.
    pub fn refused(&self, door: Door, decision: Option<Decision>, reason: Option<Reason>, status: Status) {
        self.count(door, decision, status);
        if let Some(reason) = reason {
            add(&self.refusals, reason as usize, 1);
        }
    }

    fn count(&self, door: Door, decision: Option<Decision>, status: Status) {
        add(&self.calls, place(door, decision_place(decision), status), 1);
    }

    /// Counts above zero, with their door, decision and status.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str, u64)> {
        let kinds = Door::ALL.into_iter().flat_map(|door| {
            let statuses = DECISIONS.into_iter().enumerate();
            statuses.flat_map(move |decision| Status::ALL.into_iter().map(move |status| (door, decision, status)))
        });
        kinds.filter_map(|(door, (number, decision), status)| {
            let count = self.calls.get(place(door, number, status))?.load(Ordering::Relaxed);
            (count > 0).then_some((door.as_str(), decision, status.as_str(), count))
        })
    }
}

fn place(door: Door, decision: usize, status: Status) -> usize {
    (door as usize * DECISIONS.len() + decision) * Status::ALL.len() + status as usize
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
