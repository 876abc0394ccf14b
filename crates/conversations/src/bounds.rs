//! What a server is held to where its own definition says nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

/// Bounds of every conversation with a server.
#[derive(Debug)]
pub struct Bounds<'a> {
    /// How long it may take to answer a call.
    pub call_time: Duration,
    /// How long it may take to start and open.
    pub open_time: Duration,
    /// Largest answer; larger ones are cut off.
    pub response_bytes: u64,
    pub depth: usize,
    /// What children get of our environment.
    pub inherited: &'a BTreeMap<String, String>,
}
