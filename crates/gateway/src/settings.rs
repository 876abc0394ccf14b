//! What the corridor is told at start: bounds, names and habits.

use std::collections::BTreeMap;
use std::time::Duration;

use toolwarden_conversations::bounds::Bounds;
use toolwarden_telemetry::Tracer;

/// What happens to a held call (REVIEW-8). Waiting comes with stored approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hold {
    /// The caller is told at once, with the reason and what would let the call through.
    #[default]
    Return,
    /// The caller is told that the call is denied.
    Deny,
}

/// Bounds and habits of one gateway.
#[derive(Debug, Clone)]
pub struct Settings {
    pub hold: Hold,
    /// Largest request body or line.
    pub request_bytes: usize,
    /// Largest answer of a server; larger ones are cut off.
    pub response_bytes: u64,
    pub depth: usize,
    /// How long a server may take to answer a call.
    pub call_time: Duration,
    /// How long a server may take to start and open.
    pub open_time: Duration,
    /// How long each server has when lists of all servers are gathered.
    pub gather_time: Duration,
    pub session_idle: Duration,
    /// How long a call that asked its client something waits at least, where others want its place.
    pub answer_time: Duration,
    pub most_sessions: usize,
    /// Further methods that may pass: `[gateway] methods`.
    pub methods: Vec<String>,
    /// Host names clients may call this gateway by, besides loopback.
    pub allowed_hosts: Vec<String>,
    /// What children get of our environment.
    pub inherited: BTreeMap<String, String>,
    /// Who is told of calls when they end.
    pub tracer: Option<Tracer>,
}

impl Settings {
    /// What servers are held to.
    pub(crate) fn bounds(&self) -> Bounds<'_> {
        Bounds {
            call_time: self.call_time,
            open_time: self.open_time,
            response_bytes: self.response_bytes,
            depth: self.depth,
            inherited: &self.inherited,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hold: Hold::default(),
            request_bytes: 4 * 1024 * 1024,
            response_bytes: 64 * 1024 * 1024,
            depth: 128,
            call_time: Duration::from_secs(300),
            open_time: Duration::from_secs(30),
            gather_time: Duration::from_secs(10),
            session_idle: Duration::from_secs(30 * 60),
            answer_time: Duration::from_secs(30),
            most_sessions: 10_000,
            methods: Vec::new(),
            allowed_hosts: Vec::new(),
            inherited: BTreeMap::new(),
            tracer: None,
        }
    }
}
