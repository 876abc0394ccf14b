//! What a door hands to the corridor: one message, where it came in, and who says they sent it.

use std::sync::Arc;

use http::HeaderMap;
use toolwarden_conversations::Scope;
use toolwarden_conversations::flight::{Flight, FlightGuard};
use toolwarden_conversations::sessions::ClientSession;
use toolwarden_core::{Caller, Secret};
use toolwarden_guard::Room;
use toolwarden_mcp::{Message, Trace, Version};
use toolwarden_refusals::Shape;
use toolwarden_telemetry::Door;

/// The kind of door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Via {
    Http,
    Stdio,
    /// The oldest HTTP transport: a stream, and an address to post to.
    Events,
}

impl Via {
    /// Whether everything the client hears comes on one line.
    #[must_use]
    pub fn is_one_line(self) -> bool {
        matches!(self, Self::Stdio | Self::Events)
    }

    /// As it is counted and recorded.
    #[must_use]
    pub fn door(self) -> Door {
        match self {
            Self::Http => Door::Http,
            Self::Stdio => Door::Stdio,
            Self::Events => Door::Events,
        }
    }
}

/// What a client showed to prove who it is.
#[derive(Debug, Clone)]
pub enum Credential {
    /// Nothing, from a process that the local person started.
    Local,
    /// Nothing, from somewhere on this machine.
    Anonymous,
    /// Whatever it is, it must be good: what is shown is never ignored (GATE-2).
    Token(Secret),
}

/// One message at a door.
#[derive(Debug, Clone)]
pub struct Arrival {
    pub via: Via,
    pub scope: Scope,
    pub caller: Arc<Caller>,
    pub message: Message,
    pub size: usize,
    pub headers: Arc<HeaderMap>,
    /// The legacy conversation it belongs to; none for `initialize` and for modern requests.
    pub session: Option<Arc<ClientSession>>,
    /// The revision it speaks.
    pub version: Version,
    /// Made by the corridor: what stops it, and where it waits.
    pub course: Course,
    /// What it takes of memory counts until the last copy is gone.
    pub room: Option<Arc<Room>>,
}

impl Arrival {
    /// Who speaks, in the mode their session is in by now (MODE-8).
    #[must_use]
    pub fn speaker(&self) -> Arc<Caller> {
        let session = self.session.as_ref().map(|session| session.caller());
        session.filter(|caller| caller.mode != self.caller.mode).unwrap_or_else(|| self.caller.clone())
    }
}

/// A request from its arrival on. Its copies are one request.
#[derive(Debug, Clone, Default)]
pub struct Course {
    flight: Arc<Flight>,
    /// On its session's list as long as any copy lives.
    listed: Option<Arc<FlightGuard>>,
    /// Its place in a trace, as servers are told it, where tracing is on.
    pub trace: Option<Arc<Trace>>,
}

impl Course {
    /// Of a request of a session, which is on the session's list.
    pub fn listed(guard: FlightGuard) -> Self {
        Self { flight: guard.flight().clone(), listed: Some(Arc::new(guard)), trace: None }
    }

    /// Of a call that no client waits for.
    pub fn of(flight: Arc<Flight>) -> Self {
        Self { flight, ..Self::default() }
    }

    /// The answer is on its way to the client: another request may have its id.
    pub fn release(&self) {
        if let Some(listed) = &self.listed {
            listed.release();
        }
    }

    pub fn flight(&self) -> &Arc<Flight> {
        &self.flight
    }
}

/// What an answer to a message must be shaped to.
pub fn shape_of(arrival: &Arrival) -> Shape {
    let era = arrival.version.era();
    match &arrival.message {
        Message::Request(request) => Shape {
            id: Some(request.id.clone()),
            wants_answer: true,
            is_tool_call: &*request.method == "tools/call",
            era,
        },
        Message::Notification(_) | Message::Response(_) => {
            Shape { id: None, wants_answer: false, is_tool_call: false, era }
        }
    }
}
