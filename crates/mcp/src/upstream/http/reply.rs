//! What a server answered: status, headers, and a body of one of four kinds.
//!
//! A body streams straight from its connection, which goes back to the pool when the body was read to its end and is
//! closed when it is dropped before. Refuses an answer in a compression nobody asked for.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use toolwarden_core::{Weakness, weak};

use super::connection::{Live, Received, Response};
use super::pool::Pool;
use crate::sse::{Decoder, Item};
use crate::upstream::UpstreamError;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
/// So much of a body that is neither JSON nor events is kept, to be shown in a message.
const SHOWN: usize = 8 * 1024;
const SHOWN_WITHIN: Duration = Duration::from_secs(5);
/// A server may close a little before its time is up; never send into that.
const KEEP_ALIVE_MARGIN: Duration = Duration::from_secs(1);

/// An answer whose body has not been read. Dropping it closes the connection.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: ReplyBody,
}

#[derive(Debug)]
pub enum ReplyBody {
    /// `application/json`, whatever the status.
    Json(Body),
    /// `text/event-stream`.
    Events(Box<EventStream>),
    Empty,
    /// The beginning of anything else.
    Other(Bytes),
}

impl Reply {
    pub(super) async fn receive(
        mut live: Box<Live>,
        response: Response,
        pool: &Arc<Pool>,
        place: &Arc<str>,
    ) -> Result<Self, UpstreamError> {
        let (head, incoming) = response.into_parts();
        let encoding = head.headers.get(CONTENT_ENCODING).map(http::HeaderValue::as_bytes);
        if encoding.is_some_and(|encoding| encoding != b"identity") && !weak::is(Weakness::Answers) {
            let what = "answered in a compression it was not offered";
            return Err(UpstreamError::Protocol { place: place.clone(), what });
        }
        if live.keep_alive.is_none() {
            live.keep_alive = head.headers.get(KEEP_ALIVE).and_then(|value| offered_time(value.to_str().ok()?));
        }
        let kind = kind_of(&head.headers);
        let mut body = Body { live: Some(live), incoming, pool: pool.clone(), place: place.clone() };
        let body = if body.incoming.is_end_stream() {
            poll_fn(|cx| {
                body.give_back(cx);
                Poll::Ready(())
            })
            .await;
            ReplyBody::Empty
        } else {
            match kind {
                Kind::Json => ReplyBody::Json(body),
                Kind::Events => ReplyBody::Events(Box::new(body.events(pool.max_event_bytes()))),
                Kind::Other => ReplyBody::Other(body.beginning().await),
            }
        };
        Ok(Self { status: head.status, headers: head.headers, body })
    }
}

enum Kind {
    Json,
    Events,
    Other,
}

fn kind_of(headers: &HeaderMap) -> Kind {
    let written = headers.get(CONTENT_TYPE).map_or(&b""[..], http::HeaderValue::as_bytes);
    let essence = written.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        Kind::Json
    } else if essence.eq_ignore_ascii_case(b"text/event-stream") {
        Kind::Events
    } else {
        Kind::Other
    }
}

/// The time in `Keep-Alive: timeout=5`, less the margin.
pub(super) fn offered_time(value: &str) -> Option<Duration> {
    let mut parameters = value.split(',').filter_map(|parameter| parameter.trim().split_once('='));
    let (_, seconds) = parameters.find(|(name, _)| name.eq_ignore_ascii_case("timeout"))?;
    let time = Duration::from_secs(seconds.parse().ok()?);
    Some(time.saturating_sub(KEEP_ALIVE_MARGIN))
}

/// A streaming body. It is also an `http_body::Body`, so it can be passed on as it is.
pub struct Body {
    live: Option<Box<Live>>,
    incoming: Incoming,
    pool: Arc<Pool>,
    place: Arc<str>,
}

impl Body {
    /// The next bytes; none at the end.
    ///
    /// # Errors
    /// The server closed the connection or broke the protocol.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        loop {
            let frame = poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await.transpose()?;
            match frame.map(Frame::into_data) {
                None => return Ok(None),
                Some(Ok(data)) => return Ok(Some(data)),
                // Trailers mean nothing in MCP.
                Some(Err(_)) => {}
            }
        }
    }

    /// The whole body.
    ///
    /// # Errors
    /// As `chunk`, or the body is larger than the limit.
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, UpstreamError> {
        let too_large = || UpstreamError::TooLarge { place: self.place.clone(), limit };
        if self.incoming.size_hint().lower() > limit as u64 {
            return Err(too_large());
        }
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let mut whole: Option<BytesMut> = None;
        while let Some(chunk) = self.chunk().await? {
            // Most answers come in one piece and are not copied.
            let whole = whole.get_or_insert_with(|| BytesMut::from(&*first));
            if whole.len() + chunk.len() > limit {
                return Err(UpstreamError::TooLarge { place: self.place.clone(), limit });
            }
            whole.extend_from_slice(&chunk);
        }
        let whole = whole.map_or(first, BytesMut::freeze);
        if whole.len() > limit { Err(UpstreamError::TooLarge { place: self.place.clone(), limit }) } else { Ok(whole) }
    }

    fn events(self, max_event_bytes: usize) -> EventStream {
        EventStream { body: self, decoder: Decoder::new(max_event_bytes) }
    }

    /// The first bytes, for a message; whatever stops them, the status says more.
    async fn beginning(mut self) -> Bytes {
        let mut beginning = BytesMut::new();
        let read = async {
            while let Ok(Some(chunk)) = self.chunk().await {
                let room = SHOWN.saturating_sub(beginning.len());
                beginning.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
                if beginning.len() >= SHOWN {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(SHOWN_WITHIN, read).await;
        beginning.freeze()
    }

    fn give_back(&mut self, cx: &mut Context<'_>) {
        if let Some(live) = self.live.take() {
            self.pool.put(live, cx);
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let this = self.get_mut();
        let Some(live) = &mut this.live else { return Poll::Ready(None) };
        match ready!(live.poll_body(&mut this.incoming, cx)) {
            Some(Received::Frame(Ok(frame))) => {
                // The connection is free as soon as the last bytes are here, however long the caller keeps them.
                if this.incoming.is_end_stream() {
                    this.give_back(cx);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            None => {
                this.give_back(cx);
                Poll::Ready(None)
            }
            Some(Received::Frame(Err(error))) => {
                this.live = None;
                Poll::Ready(Some(Err(UpstreamError::from_hyper(&this.place, &error))))
            }
            Some(Received::BrokeOff) => {
                this.live = None;
                Poll::Ready(Some(Err(UpstreamError::Closed { place: this.place.clone() })))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.live.is_none() || self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Body").field("place", &self.place).finish_non_exhaustive()
    }
}

/// The events of a body.
#[derive(Debug)]
pub struct EventStream {
    body: Body,
    decoder: Decoder,
}

impl EventStream {
    /// The bytes themselves, to be passed on as they are; to be asked for before the first event.
    #[must_use]
    pub fn into_body(self) -> Body {
        self.body
    }

    /// The next event or comment; none at the end. Losing the future loses no bytes.
    ///
    /// # Errors
    /// An event is larger than the bound, or the body failed.
    pub async fn next_item(&mut self) -> Result<Option<Item>, UpstreamError> {
        loop {
            let refused = |reason| UpstreamError::Events { place: self.body.place.clone(), reason };
            if let Some(item) = self.decoder.next().map_err(refused)? {
                return Ok(Some(item));
            }
            match self.body.chunk().await? {
                Some(chunk) => self.decoder.feed(chunk),
                None => return Ok(None),
            }
        }
    }
}
