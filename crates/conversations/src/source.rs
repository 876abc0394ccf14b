//! What a server says to one request, message by message, however it is reached.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use tokio::time::timeout;
use toolwarden_core::json::Limits;
use toolwarden_mcp::message::read_one;
use toolwarden_mcp::sse::Item;
use toolwarden_mcp::upstream::http::{EventStream, Reply as HttpReply, ReplyBody};
use toolwarden_mcp::{Id, Message, Response};

use crate::bounds::CallBounds;
use crate::failure::Failure;
use crate::upstreams::{HttpLink, Link, StdioReply, Upstream, http_failure};
use crate::whole::{DEEPEST, Reply, check_depth, error_of, unread};

/// How often a stream that broke off is taken up again.
const MOST_RESUMED: usize = 16;

/// One answer.
#[derive(Debug)]
pub struct Source {
    upstream: Arc<Upstream>,
    from: From,
    /// The id the request has on the wire.
    id: Id,
    /// How long the server may be silent; none where it has nothing to say for long.
    patience: Option<Duration>,
    /// How much it may still say.
    room: u64,
    /// How deep its result may nest.
    depth: usize,
    /// The response came, or never will.
    is_finished: bool,
}

#[derive(Debug)]
enum From {
    Whole(Option<Message>),
    Events(Box<Events>),
    Child(Box<StdioReply>),
    Over,
}

#[derive(Debug)]
struct Events {
    stream: Box<EventStream>,
    /// Where a legacy stream can be taken up again.
    link: Option<Arc<HttpLink>>,
    last: Option<Bytes>,
    retry: Duration,
    resumed: usize,
}

impl Source {
    pub async fn of(
        upstream: &Arc<Upstream>,
        bounds: &CallBounds,
        link: &Link,
        reply: Reply,
        id: Id,
    ) -> Result<Self, Failure> {
        let from = match reply {
            Reply::Sent => return Err(Failure::Protocol("nothing was asked".to_owned())),
            Reply::Stdio(reply) => From::Child(Box::new(reply)),
            Reply::Http(reply) => from_http(link, reply, bounds).await?,
        };
        let (patience, room) = (Some(bounds.silence), bounds.response_bytes);
        Ok(Self { upstream: upstream.clone(), from, id, patience, room, depth: bounds.depth, is_finished: false })
    }

    /// The same for a stream that waits for news.
    pub fn patient(mut self) -> Self {
        self.patience = None;
        self
    }

    /// The next message. The response is the last one.
    pub async fn next(&mut self) -> Result<Message, Failure> {
        let message = match self.patience {
            Some(patience) => timeout(patience, self.from.next()).await.map_err(|_| Failure::Timeout)?,
            None => self.from.next().await,
        };
        self.is_finished = matches!(message, Err(Failure::Died));
        let (message, size) = message?;
        if self.patience.is_some() {
            self.room = self.room.checked_sub(size as u64).ok_or(Failure::TooLarge)?;
        }
        match &message {
            Message::Response(Response { id, outcome }) => {
                let is_own = id.as_ref() == Some(&self.id) || (id.is_none() && outcome.is_err());
                if !is_own {
                    return Err(Failure::Protocol("it answered another request than was asked".to_owned()));
                }
                self.is_finished = true;
                self.from = From::Over;
                check_depth(outcome, self.depth)?;
            }
            // What a child says was noted where its line was read.
            Message::Notification(news) if matches!(self.from, From::Events(_)) => self.upstream.take_note(news),
            Message::Request(_) | Message::Notification(_) => {}
        }
        Ok(message)
    }

    /// Nobody waits any more: a child is told, a connection is closed.
    pub fn give_up(&mut self) {
        if let From::Child(reply) = &self.from {
            reply.guard.cancel();
        }
        self.from = From::Over;
    }

    /// Whether the server has nothing more to do for this request.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }
}

async fn from_http(link: &Link, reply: HttpReply, bounds: &CallBounds) -> Result<From, Failure> {
    let status = reply.status;
    if !status.is_success() {
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(Failure::NeedsAuth);
        }
        if let (StatusCode::NOT_FOUND, Link::Http(http)) = (status, link) {
            http.forget();
        }
        let error = timeout(bounds.silence, error_of(reply.body)).await.map_err(|_| Failure::Timeout)?;
        return Err(match error {
            Some(error) => Failure::Answered { status: status.as_u16(), error },
            None => Failure::Wordless { status: status.as_u16() },
        });
    }
    match reply.body {
        ReplyBody::Json(body) => {
            let limit = usize::try_from(bounds.response_bytes).unwrap_or(usize::MAX);
            let whole = timeout(bounds.silence, body.collect(limit)).await.map_err(|_| Failure::Timeout)?;
            read(&whole.map_err(http_failure)?).map(|message| From::Whole(Some(message)))
        }
        ReplyBody::Events(stream) => {
            let link = match link {
                Link::Http(http) if http.era() == toolwarden_mcp::Era::Legacy => Some(http.clone()),
                Link::Http(_) | Link::Stdio(_) => None,
            };
            let retry = Duration::from_secs(1);
            Ok(From::Events(Box::new(Events { stream, link, last: None, retry, resumed: 0 })))
        }
        ReplyBody::Empty | ReplyBody::Other(_) => Err(Failure::Wordless { status: status.as_u16() }),
    }
}

fn read(bytes: &[u8]) -> Result<Message, Failure> {
    let limits = Limits { bytes: bytes.len(), depth: DEEPEST };
    read_one(bytes, limits).map_err(|error| unread(&error))
}

impl From {
    async fn next(&mut self) -> Result<(Message, usize), Failure> {
        match self {
            Self::Over => Err(Failure::Died),
            Self::Whole(message) => message.take().map(|message| (message, 0)).ok_or(Failure::Died),
            Self::Events(events) => events.next().await,
            Self::Child(reply) => of_child(reply).await,
        }
    }
}

impl Events {
    async fn next(&mut self) -> Result<(Message, usize), Failure> {
        loop {
            match self.stream.next_item().await.map_err(http_failure) {
                Ok(Some(Item::Comment(_))) => {}
                Ok(Some(Item::Event(event))) => {
                    self.last = event.id.or(self.last.take());
                    if let Some(milliseconds) = event.retry {
                        self.retry = Duration::from_millis(milliseconds.min(10_000));
                    }
                    let Some(data) = event.data.filter(|data| !data.is_empty()) else { continue };
                    match read(&data) {
                        Ok(message) => return Ok((message, data.len())),
                        // It may have been the answer.
                        Err(Failure::TooDeep) => return Err(Failure::TooDeep),
                        Err(failure) => tracing::warn!("a message of a server is dropped: {failure}"),
                    }
                }
                Ok(None) | Err(Failure::Died) => self.resume().await?,
                Err(failure) => return Err(failure),
            }
        }
    }

    /// A legacy server may end a stream and go on in another: where it gave an id, it is asked for the rest.
    async fn resume(&mut self) -> Result<(), Failure> {
        let (Some(link), Some(last)) = (&self.link, &self.last) else { return Err(Failure::Died) };
        self.resumed += 1;
        if self.resumed > MOST_RESUMED {
            return Err(Failure::Died);
        }
        tokio::time::sleep(self.retry).await;
        let last = HeaderValue::from_bytes(last).map_err(|_| Failure::Died)?;
        match link.stream(Some(&last)).await?.body {
            ReplyBody::Events(stream) => {
                self.stream = stream;
                Ok(())
            }
            ReplyBody::Json(_) | ReplyBody::Empty | ReplyBody::Other(_) => Err(Failure::Died),
        }
    }
}

async fn of_child(reply: &mut StdioReply) -> Result<(Message, usize), Failure> {
    if reply.held.is_none() {
        tokio::select! {
            biased;
            Some(event) = reply.events.recv() => return read(&event).map(|message| (message, event.len())),
            last = &mut reply.last => reply.held = Some(Box::new(last?)),
        }
    }
    // What was said before the end may still wait.
    if let Ok(event) = reply.events.try_recv() {
        return read(&event).map(|message| (message, event.len()));
    }
    let last = reply.held.take().ok_or(Failure::Died)?;
    let response = Response { id: Some(last.client), outcome: last.outcome };
    Ok((Message::Response(response), last.message.len()))
}
