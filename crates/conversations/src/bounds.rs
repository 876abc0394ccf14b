//! What a server and its calls are held to where nothing narrower is said.

use std::collections::BTreeMap;
use std::time::Duration;

use toolwarden_core::{Weakness, weak};
use toolwarden_policy::input::LimitsInput;

/// Bounds of every conversation with a server.
#[derive(Debug)]
pub struct Bounds<'a> {
    pub call: CallBounds,
    /// How long it may take to start and open.
    pub open_time: Duration,
    /// What children get of our environment.
    pub inherited: &'a BTreeMap<String, String>,
}

/// Bounds of one call (GATE-13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallBounds {
    /// How long the server may be silent.
    pub silence: Duration,
    /// How long it may take in all, whatever the server says meanwhile.
    pub time: Duration,
    /// Largest answer; larger ones are cut off.
    pub response_bytes: u64,
    /// How deep a result may nest.
    pub depth: usize,
}

impl CallBounds {
    /// The same where a narrower level says something else. A limit on time is one on silence, too.
    #[must_use]
    pub fn narrowed(self, limits: &LimitsInput) -> Self {
        if weak::is(Weakness::Limits) {
            return self;
        }
        Self {
            silence: limits.time.unwrap_or(self.silence),
            time: limits.time.unwrap_or(self.time),
            response_bytes: limits.response_bytes.unwrap_or(self.response_bytes),
            depth: limits.depth.unwrap_or(self.depth),
        }
    }
}
