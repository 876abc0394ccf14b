//! A modern client's call at a legacy server, between two requests of the client or within one.

use std::sync::Arc;

use toolwarden_conversations::source::Source;
use toolwarden_conversations::upstreams::{Link, Turn, Upstream};
use toolwarden_core::Status;
use toolwarden_core::json::Part;
use toolwarden_mcp::Id;
use toolwarden_policy::housekeeping;

use crate::audit::Trail;
use crate::resolve::Asked;

/// A call on its way. Dropped before its end, the server is told to stop.
#[derive(Debug)]
pub struct Way {
    pub upstream: Arc<Upstream>,
    pub turn: Turn,
    pub source: Source,
    /// The id it has on the wire.
    pub wire: Id,
    /// What the server calls itself, raw.
    pub about: Option<String>,
    /// The server asked something on the way, and may ask again.
    pub has_asked: bool,
}

impl Drop for Way {
    fn drop(&mut self) {
        if self.source.is_finished() {
            return;
        }
        self.source.give_up();
        let http = match self.turn.link.clone() {
            Link::Http(http) => http,
            // What it asks from now on nobody could tell from the next call's questions.
            Link::Stdio(child) if self.has_asked && self.turn.is_own() => return child.retire(),
            Link::Stdio(_) => return,
        };
        let params = Part::composed(format!("{{\"requestId\":{}}}", self.wire.raw())).ok();
        let Ok(stop) = housekeeping(self.upstream.name.clone(), "notifications/cancelled", params) else { return };
        // Outside of a runtime there is nobody left to tell.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { http.notify(&stop).await });
        }
    }
}

/// A question that was put to the client.
#[derive(Debug)]
pub struct Open {
    pub key: String,
    pub method: Arc<str>,
    /// The question as an entry of `inputRequests`, raw.
    pub shown: String,
    /// The id the server gave it.
    pub upstream: Id,
}

/// A call that waits for its client to come back.
#[derive(Debug)]
pub struct Waiting {
    /// None once the client came back.
    pub way: Option<Way>,
    /// The call as it was judged when it asked.
    pub asked: Arc<Asked>,
    pub open: Vec<Open>,
    /// Of the round that asked: it ends when the client comes back, or never does.
    trail: Option<Trail>,
}

impl Waiting {
    pub fn new(way: Way, asked: Arc<Asked>, open: Vec<Open>, trail: Option<Trail>) -> Self {
        Self { way: Some(way), asked, open, trail }
    }

    /// The client came back: the round before this one ended with a question.
    pub fn answered(&mut self) {
        if let Some(mut trail) = self.trail.take() {
            trail.outcome(Status::Ok, 0);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(mut trail) = self.trail.take() {
            // Nobody came back: what the call did before it asked is not known.
            trail.outcome(Status::Unknown, 0);
        }
    }
}
