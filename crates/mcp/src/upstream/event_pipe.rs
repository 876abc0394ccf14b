//! A server of the oldest HTTP transport (2024-11-05), used like a child's pipes.
//!
//! Takes an `HttpUpstream`; gives an `EventPipe` to send to and a receiver of the server's messages. The server's
//! stream of events begins with the address to post to, which must be on the same server. Messages are posted one
//! after another, in order. A request that is refused for what it says fails alone; any other refusal and a broken
//! stream end the pipe, and nothing opens it again. Dropping the `EventPipe` closes its connections.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::UpstreamError;
use super::http::{EventStream, HttpUpstream, Reply, ReplyBody, TargetError};
use crate::compose::Wire;
use crate::message::Id;
use crate::sse::{Event, Item};

/// The answer to a post says nothing; so much of it is read to keep its connection.
const ACKNOWLEDGEMENT: usize = 8 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPipeLimits {
    /// How long the stream and its first event may take.
    pub endpoint: Duration,
    /// How long the answer to one post may take.
    pub post: Duration,
    /// So many messages wait on each side before the sender has to.
    pub queue: usize,
    /// How long messages that wait may take when the pipe is to end.
    pub grace: Duration,
}

impl EventPipeLimits {
    pub const DEFAULT: Self = Self {
        endpoint: Duration::from_secs(10),
        post: Duration::from_secs(30),
        queue: 1024,
        grace: Duration::from_secs(2),
    };
}

/// Why a pipe is no longer there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventPipeExit {
    #[error("it was closed by the gateway")]
    Closed,
    #[error("the server ended its stream of events")]
    StreamEnded,
    #[error("its stream of events failed: {0}")]
    StreamFailed(UpstreamError),
    #[error("the server refused a message with status {status}")]
    Refused { status: u16 },
    #[error("a message could not be delivered: {0}")]
    Undelivered(UpstreamError),
}

/// What comes out of a pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Message(Bytes),
    /// The server did not take this request, and said so at once: no answer will come.
    Refused {
        request: Id,
        status: u16,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventPipeError {
    #[error("the connection to {place} has ended: {exit}")]
    Ended { place: Arc<str>, exit: EventPipeExit },
    #[error("{place} does not take what is sent to it")]
    Full { place: Arc<str> },
}

/// How far the owner wants the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Closing {
    No,
    /// After the messages that were accepted.
    Soon,
    Now,
}

/// An open conversation. Dropping it closes the connections.
pub struct EventPipe {
    place: Arc<str>,
    messages: mpsc::Sender<Wire>,
    closing: watch::Sender<Closing>,
    exit: watch::Receiver<Option<EventPipeExit>>,
    grace: Duration,
}

impl EventPipe {
    /// Opens the stream and waits for the address to post to. The receiver gives the server's messages and ends after
    /// the last of them.
    ///
    /// # Errors
    /// The server cannot be reached, does not speak this transport, names no endpoint in time, or one elsewhere.
    pub async fn open(
        upstream: &HttpUpstream,
        limits: EventPipeLimits,
    ) -> Result<(Self, mpsc::Receiver<Said>), UpstreamError> {
        let place = upstream.place().clone();
        let deadline = Instant::now() + limits.endpoint;
        let Ok(events) = timeout_at(deadline, open_stream(upstream)).await else {
            let what = "did not open a stream of events";
            return Err(UpstreamError::Timeout { place, what, within: limits.endpoint });
        };
        let mut events = events?;
        let Ok(endpoint) = timeout_at(deadline, find_endpoint(upstream, &mut events)).await else {
            // Newer servers have a stream like this for their news.
            let what = "opened a stream of events and did not say where to send messages to";
            return Err(UpstreamError::OtherTransport { place, what });
        };
        let endpoint = endpoint?;
        let (messages, queued) = mpsc::channel(limits.queue);
        let (received, receiver) = mpsc::channel(limits.queue);
        let (closing, is_closing) = watch::channel(Closing::No);
        let (ended, exit) = watch::channel(None);
        let (refusals, is_closing_too) = (received.clone(), is_closing.clone());
        let poster = Poster { endpoint, queued, refusals, is_closing: is_closing_too, within: limits.post };
        tokio::spawn(run(events, received, poster, is_closing, ended));
        Ok((Self { place, messages, closing, exit, grace: limits.grace }, receiver))
    }

    /// Queues one message; waits while the queue is full.
    ///
    /// # Errors
    /// The pipe has ended or is ending.
    pub async fn send(&self, wire: Wire) -> Result<(), EventPipeError> {
        self.messages.send(wire).await.map_err(|_| self.ended())
    }

    /// Queues one message, or says that there is no room for it.
    ///
    /// # Errors
    /// The pipe has ended, or the server does not take what is sent to it.
    pub fn send_now(&self, wire: Wire) -> Result<(), EventPipeError> {
        self.messages.try_send(wire).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => EventPipeError::Full { place: self.place.clone() },
            mpsc::error::TrySendError::Closed(_) => self.ended(),
        })
    }

    /// Where the server is, without anything secret.
    #[must_use]
    pub fn place(&self) -> &Arc<str> {
        &self.place
    }

    /// Holds why the pipe ended, once it has.
    #[must_use]
    pub fn exit(&self) -> watch::Receiver<Option<EventPipeExit>> {
        self.exit.clone()
    }

    /// Ends the pipe: sends what was accepted if that does not take long, then closes the connections.
    pub async fn end(&self) -> EventPipeExit {
        self.closing.send_replace(Closing::Soon);
        let mut exit = self.exit.clone();
        if timeout(self.grace, exit.wait_for(Option::is_some)).await.is_err() {
            self.closing.send_replace(Closing::Now);
        }
        let waited = exit.wait_for(Option::is_some).await;
        // A runtime that shut down took the task with it, and the connections, too.
        waited.ok().and_then(|exit| exit.clone()).unwrap_or(EventPipeExit::Closed)
    }

    fn ended(&self) -> EventPipeError {
        // A queue that takes no more before the end has come is one that was asked to end.
        let exit = self.exit.borrow().clone().unwrap_or(EventPipeExit::Closed);
        EventPipeError::Ended { place: self.place.clone(), exit }
    }
}

impl fmt::Debug for EventPipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EventPipe").field("place", &self.place).finish_non_exhaustive()
    }
}

/// The address an event names, if it is the event this transport begins with.
#[must_use]
pub fn endpoint_of(event: &Event) -> Option<&str> {
    let is_endpoint = event.name.as_deref() == Some(b"endpoint");
    let address = event.data.as_deref().filter(|_| is_endpoint)?;
    std::str::from_utf8(address).ok().map(str::trim).filter(|address| !address.is_empty())
}

/// Whether the answer to a GET is the beginning of this transport. Reads it as far as its first event.
pub async fn is_event_pipe(reply: Reply, within: Duration) -> bool {
    let ReplyBody::Events(mut events) = reply.body else { return false };
    if reply.status != StatusCode::OK {
        return false;
    }
    let first = async {
        loop {
            match events.next_item().await {
                // A block without data is no event.
                Ok(Some(Item::Event(event))) if event.data.is_some() => return endpoint_of(&event).is_some(),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return false,
            }
        }
    };
    timeout(within, first).await.unwrap_or(false)
}

async fn open_stream(upstream: &HttpUpstream) -> Result<Box<EventStream>, UpstreamError> {
    let place = upstream.place().clone();
    let reply = upstream.get_stream(HeaderMap::new()).await?;
    match (reply.status, reply.body) {
        (StatusCode::OK, ReplyBody::Events(events)) => Ok(events),
        // What a server of another transport says to a GET without a session.
        (status, _) if status.is_success() || matches!(status.as_u16(), 400 | 404 | 405 | 406 | 415) => {
            Err(UpstreamError::OtherTransport { place, what: no_stream(status) })
        }
        (status, _) => Err(UpstreamError::Protocol { place, what: no_stream(status) }),
    }
}

async fn find_endpoint(upstream: &HttpUpstream, events: &mut EventStream) -> Result<HttpUpstream, UpstreamError> {
    let place = || upstream.place().clone();
    while let Some(item) = events.next_item().await? {
        let Item::Event(event) = item else { continue };
        let Some(address) = endpoint_of(&event) else { continue };
        return upstream.at(address).map_err(|error| {
            let what = match error {
                TargetError::OtherServer => "names another server to send messages to",
                _ => "names an address to send messages to that cannot be used",
            };
            UpstreamError::Protocol { place: place(), what }
        });
    }
    let what = "ended its stream of events before it said where to send messages to";
    Err(UpstreamError::OtherTransport { place: place(), what })
}

fn no_stream(status: StatusCode) -> &'static str {
    match status.as_u16() {
        200..=299 => "answered with something else than a stream of events",
        401 => "wants a credential before it opens a stream of events (status 401)",
        403 => "does not permit a stream of events (status 403)",
        404 => "has no stream of events at this address (status 404)",
        405 => "does not open streams of events at this address (status 405)",
        429 => "has no room for another stream of events now (status 429)",
        500..=599 => "failed to open a stream of events",
        _ => "refused to open a stream of events",
    }
}

/// Reads and posts until one of the two, or the owner, has an end.
async fn run(
    events: Box<EventStream>,
    received: mpsc::Sender<Said>,
    mut poster: Poster,
    mut is_closing: watch::Receiver<Closing>,
    ended: watch::Sender<Option<EventPipeExit>>,
) {
    let exit = tokio::select! {
        exit = read(events, &received) => exit,
        exit = poster.post_all() => exit,
        // An owner that is gone wants the same.
        _ = is_closing.wait_for(|closing| *closing == Closing::Now) => EventPipeExit::Closed,
    };
    // The connections are closed by now; the queues close after the reason is there for those who notice.
    ended.send_replace(Some(exit));
}

/// Passes messages on until the stream ends, and as long as anybody listens.
async fn read(mut events: Box<EventStream>, received: &mpsc::Sender<Said>) -> EventPipeExit {
    loop {
        let event = match events.next_item().await {
            Ok(Some(Item::Event(event))) => event,
            Ok(Some(Item::Comment(_))) => continue,
            Ok(None) => return EventPipeExit::StreamEnded,
            Err(error) => return EventPipeExit::StreamFailed(error),
        };
        // An event without a name is one named `message`.
        let is_message = matches!(event.name.as_deref(), None | Some(b"" | b"message"));
        let Some(message) = event.data.filter(|_| is_message) else { continue };
        if received.send(Said::Message(message)).await.is_err() {
            return EventPipeExit::Closed;
        }
    }
}

struct Poster {
    endpoint: HttpUpstream,
    queued: mpsc::Receiver<Wire>,
    refusals: mpsc::Sender<Said>,
    is_closing: watch::Receiver<Closing>,
    within: Duration,
}

impl Poster {
    async fn post_all(&mut self) -> EventPipeExit {
        loop {
            let next = tokio::select! {
                biased;
                next = self.queued.recv() => next,
                _ = self.is_closing.wait_for(|closing| *closing >= Closing::Soon), if !self.queued.is_closed() => {
                    // What was accepted before is still sent.
                    self.queued.close();
                    continue;
                }
            };
            let Some(wire) = next else { return EventPipeExit::Closed };
            let request = wire.request().cloned();
            match self.endpoint.post_within(wire, HeaderMap::new(), self.within).await {
                Ok(reply) if reply.status.is_success() => acknowledge(reply.body, self.within).await,
                Ok(reply) if concerns_one_message(reply.status) => {
                    let status = reply.status.as_u16();
                    acknowledge(reply.body, self.within).await;
                    self.refused(request, status).await;
                }
                Ok(reply) => return EventPipeExit::Refused { status: reply.status.as_u16() },
                Err(error) => return EventPipeExit::Undelivered(error),
            }
        }
    }

    async fn refused(&self, request: Option<Id>, status: u16) {
        let Some(request) = request else {
            // Nobody waits for what becomes of a notification or an answer.
            tracing::warn!(server = %self.endpoint.place(), status, "the server refused a message");
            return;
        };
        // Where nobody listens any more the pipe ends by itself.
        drop(self.refusals.send(Said::Refused { request, status }).await);
    }
}

/// Whether a refusal says something of the message alone: not that the credential, the session or the address is
/// no good, for then every message would be refused.
fn concerns_one_message(status: StatusCode) -> bool {
    status.is_client_error() && !matches!(status.as_u16(), 401 | 404 | 410)
}

/// Reads the rest of an answer that means nothing, so that its connection carries the next message.
async fn acknowledge(body: ReplyBody, within: Duration) {
    if let ReplyBody::Json(body) = body {
        let _ = timeout(within, body.collect(ACKNOWLEDGEMENT)).await;
    }
}

#[cfg(test)]
#[path = "event_pipe_tests.rs"]
mod tests;
