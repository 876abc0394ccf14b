//! What the corridor is told at start: bounds, names and habits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use toolwarden_conversations::bounds::{Bounds, CallBounds};
use toolwarden_guard::Defaults;
use toolwarden_guard::redaction::Redactor;
use toolwarden_sources::RedactionRules;
use toolwarden_telemetry::Tracer;

/// What happens to a held call (REVIEW-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hold {
    /// The caller is told at once, with the reason and what would let the call through.
    #[default]
    Return,
    /// The caller waits for the answer, for a while.
    Wait,
    /// The caller is told that the call is denied.
    Deny,
}

/// Bounds and habits of one gateway.
#[derive(Debug, Clone)]
pub struct Settings {
    pub hold: Hold,
    /// How long a caller waits for an answer to a held call before it is told how to come back.
    pub hold_time: Duration,
    /// What calls are held to where no file says anything.
    pub call: CallBounds,
    /// The same for requests, and for how many there are.
    pub limits: Defaults,
    /// How long a call waits for a place among those on their way.
    pub turn_time: Duration,
    /// How long calls on their way may take after the order to stop.
    pub grace: Duration,
    /// How long a server may take to start and open.
    pub open_time: Duration,
    /// How long each server has when lists of all servers are gathered.
    pub gather_time: Duration,
    pub session_idle: Duration,
    /// How long a call that asked its client something waits at least, where others want its place.
    pub answer_time: Duration,
    pub most_sessions: usize,
    pub most_sessions_of_one: usize,
    /// Streams of news that one caller has open.
    pub most_streams_of_one: usize,
    /// Further methods that may pass: `[gateway] methods`.
    pub methods: Vec<String>,
    /// Host names clients may call this gateway by, besides loopback.
    pub allowed_hosts: Vec<String>,
    /// What children get of our environment.
    pub inherited: BTreeMap<String, String>,
    /// How arguments are recorded; none = they are not.
    pub recorded_arguments: Option<Arc<Redactor>>,
    /// Who is told of calls when they end.
    pub tracer: Option<Tracer>,
}

impl Settings {
    /// Records hold the arguments of calls, without what these rules hide.
    pub fn record_arguments(&mut self, rules: &RedactionRules) {
        self.recorded_arguments = Some(Arc::new(Redactor::new(rules)));
    }

    /// What servers are held to.
    pub fn bounds(&self) -> Bounds<'_> {
        Bounds { call: self.call, open_time: self.open_time, inherited: &self.inherited }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hold: Hold::default(),
            hold_time: Duration::from_secs(10 * 60),
            call: CallBounds {
                silence: Duration::from_secs(300),
                time: Duration::from_secs(60 * 60),
                response_bytes: 64 * 1024 * 1024,
                depth: 128,
            },
            limits: Defaults { request_bytes: 4 * 1024 * 1024, depth: 128, in_flight: 4096 },
            turn_time: Duration::from_secs(5),
            grace: Duration::from_secs(10),
            open_time: Duration::from_secs(30),
            gather_time: Duration::from_secs(10),
            session_idle: Duration::from_secs(30 * 60),
            answer_time: Duration::from_secs(30),
            most_sessions: 10_000,
            most_sessions_of_one: 5_000,
            most_streams_of_one: 4_096,
            methods: Vec::new(),
            allowed_hosts: Vec::new(),
            inherited: BTreeMap::new(),
            recorded_arguments: None,
            tracer: None,
        }
    }
}
