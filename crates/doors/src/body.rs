//! The body of an answer: whole, streaming through, or a stream of events.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Interval, MissedTickBehavior, interval};
use toolwarden_gateway::{Events, InspectedBody};
use toolwarden_mcp::sse;

/// A comment is sent this often on a silent stream, so that nobody in between closes it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What is sent to a client.
pub enum AnswerBody {
    Whole(Option<Bytes>),
    Passing(Box<InspectedBody>),
    Events(Box<EventBody>),
}

/// Events as bytes.
pub struct EventBody {
    events: Events,
    alive: Interval,
}

impl std::fmt::Debug for EventBody {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("EventBody")
    }
}

impl std::fmt::Debug for AnswerBody {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Whole(_) => "Whole",
            Self::Passing(_) => "Passing",
            Self::Events(_) => "Events",
        })
    }
}

impl AnswerBody {
    pub(crate) fn events(events: Events) -> Self {
        let mut alive = interval(KEEP_ALIVE);
        alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        alive.reset();
        Self::Events(Box::new(EventBody { events, alive }))
    }

    pub(crate) fn empty() -> Self {
        Self::Whole(None)
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Passing(body) => {
                let frame = ready!(Pin::new(body).poll_frame(context));
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Self::Events(body) => body.poll(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Passing(_) | Self::Events(_) => SizeHint::default(),
        }
    }
}

impl EventBody {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            match self.events.as_mut().poll_next(context) {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(event)) => {
                    self.alive.reset();
                    let mut text = BytesMut::new();
                    // An id that cannot be written would be read as another: the event goes without.
                    if sse::encode(&event, &mut text).is_err() {
                        continue;
                    }
                    return Poll::Ready(Some(text.freeze()));
                }
                Poll::Pending => {}
            }
            ready!(self.alive.poll_tick(context));
            return Poll::Ready(Some(Bytes::from_static(b": keep-alive\n\n")));
        }
    }
}
