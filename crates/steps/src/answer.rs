//! What a door sends back.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use http::StatusCode;
use http_body_util::BodyExt;
use toolwarden_conversations::Failure;
use toolwarden_mcp::Era;
use toolwarden_mcp::sse::Event;
use toolwarden_refusals::{MISSING_CAPABILITY, Refusal, failure_message};
pub use toolwarden_refusals::{Reply, Shape};

use crate::inspect::{BodyError, InspectedBody};

/// Events on their way to a client.
pub type Events = Pin<Box<dyn Stream<Item = Event> + Send>>;

/// What a door sends back.
pub enum Answer {
    /// Nothing to say.
    Accepted,
    /// One JSON-RPC message.
    Message(Reply),
    /// One JSON-RPC message whose bytes are still arriving.
    Body(Box<InspectedBody>),
    /// Messages that end with the response.
    Events {
        events: Events,
        /// Whether ids of a server stand in it, by which the client can resume.
        resumable: bool,
    },
}

impl fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted => formatter.write_str("Accepted"),
            Self::Message(reply) => write!(formatter, "Message({})", reply.status),
            Self::Body(_) => formatter.write_str("Body"),
            Self::Events { .. } => formatter.write_str("Events"),
        }
    }
}

impl Answer {
    #[must_use]
    pub fn message(body: Bytes) -> Self {
        Self::Message(Reply { status: StatusCode::OK, body, session: None })
    }

    /// One message as a stream of its own.
    pub fn one_event(body: Bytes) -> Self {
        let events = futures_util::stream::once(async move { Event::of(body) });
        Self::Events { events: Box::pin(events), resumable: true }
    }

    /// The response of a modern child: one error has a status of its own.
    pub fn of_child(body: Bytes, error: Option<i64>, era: Era) -> Self {
        let lacks_capability = era == Era::Modern && error == Some(MISSING_CAPABILITY);
        let status = if lacks_capability { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        Self::Message(Reply { status, body, session: None })
    }
}

/// A refusal in wire form.
#[must_use]
pub fn refuse(shape: &Shape, refusal: &Refusal) -> Answer {
    toolwarden_refusals::refuse(shape, refusal).map_or(Answer::Accepted, Answer::Message)
}

/// The whole of a large answer, where nothing of it was sent yet: one that breaks off can still be said to. None
/// where its client gave it up.
pub async fn gathered(body: Box<InspectedBody>) -> Option<Bytes> {
    let id = body.id().clone();
    match body.collect().await {
        Ok(whole) => Some(whole.to_bytes()),
        Err(BodyError(Failure::GivenUp)) => None,
        Err(BodyError(failure)) => Some(failure_message(Some(&id), &failure)),
    }
}
