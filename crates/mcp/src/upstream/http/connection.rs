//! One HTTP/1.1 connection, driven by the task that uses it.
//!
//! No task of its own runs a connection: the caller polls it while it waits for the answer. That saves two wake-ups
//! across threads for each call, and dropping the future or the reply closes the socket at once.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::{Body as _, Frame};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::runtime;
use tokio::time::{Instant, Sleep};

use super::connect::Stream;
use super::gate::Gate;
use crate::upstream::UpstreamError;

pub(super) type Response = http::Response<Incoming>;

/// The status line and headers of an answer may take so much.
const MAX_HEAD: usize = 64 * 1024;
/// A long body is read in pieces of up to this size.
const MAX_READ: usize = 256 * 1024;

/// A connection that is open as far as is known.
#[derive(Debug)]
pub(super) struct Live {
    sender: SendRequest<Full<Bytes>>,
    driver: Driver,
    gate: Gate,
    /// Kept from call to call: moving a timer that is set costs next to nothing, setting one wakes the timer's thread.
    deadline: Pin<Box<Sleep>>,
    /// Where its socket is watched. Another runtime would learn of every byte through that one.
    pub(super) home: runtime::Id,
    /// How long the server said it keeps an unused connection.
    pub(super) keep_alive: Option<Duration>,
}

/// The half of a connection that moves bytes. It is dropped as soon as it ends: only that gives back a request that
/// was queued and never written.
#[derive(Debug)]
struct Driver(Option<Connection<TokioIo<Stream>, Full<Bytes>>>);

impl Driver {
    /// Moves what can be moved; ready once the connection has ended.
    fn drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let ended = self.0.as_mut().is_none_or(|connection| Pin::new(connection).poll(cx).is_ready());
        if !ended {
            return Poll::Pending;
        }
        self.0 = None;
        Poll::Ready(())
    }
}

/// A piece of a body, or the news that there will be none.
#[derive(Debug)]
pub(super) enum Received {
    Frame(hyper::Result<Frame<Bytes>>),
    /// The connection ended before the body did.
    BrokeOff,
}

/// Why a request got no answer.
#[derive(Debug)]
pub(super) enum SendFault {
    /// Not a byte of it was written: it may go out on another connection.
    Unsent(Box<Request<Full<Bytes>>>),
    Failed(UpstreamError),
}

impl Live {
    pub(super) async fn over(stream: Stream, place: &Arc<str>) -> Result<Box<Self>, UpstreamError> {
        let handshake = Builder::new().max_buf_size(MAX_READ).max_header_size(MAX_HEAD).handshake(TokioIo::new(stream));
        let (sender, connection) = handshake.await.map_err(|error| UpstreamError::from_hyper(place, &error))?;
        let deadline = Box::pin(tokio::time::sleep(Duration::ZERO));
        let driver = Driver(Some(connection));
        let home = runtime::Handle::current().id();
        Ok(Box::new(Self { sender, driver, gate: Gate::new(), deadline, home, keep_alive: None }))
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
        head: Duration,
        place: &Arc<str>,
    ) -> Result<Response, SendFault> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let (driver, gate, deadline) = (&mut self.driver, &self.gate, &mut self.deadline);
        deadline.as_mut().reset(Instant::now() + head);
        let answer = poll_fn(|cx| {
            let polled = gate.poll(cx, |cx| {
                let _ = driver.drive(cx);
                answer.as_mut().poll(cx)
            });
            match polled {
                Poll::Ready(answer) => Poll::Ready(Some(answer)),
                Poll::Pending => deadline.as_mut().poll(cx).map(|()| None),
            }
        });
        match answer.await {
            Some(Ok(response)) => Ok(response),
            Some(Err(mut error)) => Err(match error.take_message() {
                Some(request) => SendFault::Unsent(Box::new(request)),
                None => SendFault::Failed(UpstreamError::from_hyper(place, error.error())),
            }),
            None => {
                let (place, what) = (place.clone(), "did not answer");
                Err(SendFault::Failed(UpstreamError::Timeout { place, what, within: head }))
            }
        }
    }

    /// Moves bytes from the socket into a body until the body has some, and then gives them.
    pub(super) fn poll_body(&mut self, incoming: &mut Incoming, cx: &mut Context<'_>) -> Poll<Option<Received>> {
        let driver = &mut self.driver;
        self.gate.poll(cx, |cx| {
            if let Poll::Ready(frame) = Pin::new(&mut *incoming).poll_frame(cx) {
                return Poll::Ready(frame.map(Received::Frame));
            }
            let driven = driver.drive(cx);
            match Pin::new(&mut *incoming).poll_frame(cx) {
                Poll::Ready(frame) => Poll::Ready(frame.map(Received::Frame)),
                Poll::Pending if driven.is_ready() => Poll::Ready(Some(Received::BrokeOff)),
                Poll::Pending => Poll::Pending,
            }
        })
    }

    /// Whether the connection waits for a request. Looks at the socket only if it has to; `is_reusable` does before use.
    pub(super) fn is_waiting(&mut self, cx: &mut Context<'_>) -> bool {
        self.sender.is_ready() || self.is_reusable(cx)
    }

    /// Whether the connection can carry another request now.
    pub(super) fn is_reusable(&mut self, cx: &mut Context<'_>) -> bool {
        let driver = &mut self.driver;
        self.gate.poll(cx, |cx| driver.drive(cx)).is_pending() && self.sender.is_ready()
    }
}
