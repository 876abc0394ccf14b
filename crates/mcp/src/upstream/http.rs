//! One upstream server over HTTP/1.1, secure HTTP or a Unix socket, with its pool of connections.
//!
//! Takes a `Wire` and headers; gives a `Reply` whose body streams. A request is sent at most once: only one of which
//! nothing was written goes out again, on another connection. Redirects are not followed. A client's credentials,
//! cookies and host never go out, whatever the caller passes. Dropping a reply closes its connection.

mod connect;
mod connection;
mod gate;
mod pool;
mod reply;
mod target;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, USER_AGENT};
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use bytes::Bytes;
use http_body_util::Full;
use toolwarden_core::{Secret, Weakness, weak};

pub use connect::Tls;
pub use reply::{Body, EventStream, Reply, ReplyBody};
pub use target::{HttpTarget, TargetError, Timeouts};

use self::connection::{Live, SendFault};
use self::pool::Pool;
use self::target::Place;
use super::UpstreamError;
use crate::compose::Wire;

const BOTH_KINDS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS_ONLY: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const OURSELVES: HeaderValue = HeaderValue::from_static(concat!("toolwarden/", env!("CARGO_PKG_VERSION")));

/// What a caller cannot set: credentials belong to the target, the rest to the connection.
const WITHHELD: [HeaderName; 15] = [
    AUTHORIZATION,
    COOKIE,
    HOST,
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// A server reached over HTTP. Clones share the connections.
#[derive(Clone)]
pub struct HttpUpstream {
    place: Arc<Place>,
    pool: Arc<Pool>,
    secrets: Arc<[(HeaderName, HeaderValue)]>,
    timeouts: Timeouts,
}

impl HttpUpstream {
    /// Prepares a server; connects when the first request is sent.
    ///
    /// # Errors
    /// The address or a header cannot be used.
    pub fn new(target: &HttpTarget) -> Result<Self, TargetError> {
        let place = Arc::new(Place::parse(&target.url)?);
        let pool = Pool::new(target);
        let secrets = target::secret_headers(&target.headers)?;
        Ok(Self { place, pool, secrets, timeouts: target.timeouts })
    }

    /// The same server and connections with other fixed headers, as after the refresh of a token.
    ///
    /// # Errors
    /// A header cannot be used.
    pub fn with_headers(&self, headers: &[(String, Secret)]) -> Result<Self, TargetError> {
        Ok(Self { secrets: target::secret_headers(headers)?, ..self.clone() })
    }

    /// Another endpoint of the same server, as the stream of the oldest transport names one.
    ///
    /// # Errors
    /// The reference cannot be read or leads to another server.
    pub fn at(&self, reference: &str) -> Result<Self, TargetError> {
        Ok(Self { place: Arc::new(self.place.at(reference)?), ..self.clone() })
    }

    /// Where the server is, without anything secret.
    #[must_use]
    pub fn place(&self) -> &Arc<str> {
        &self.place.shown
    }

    /// Sends one message and waits for the head of the answer as long as the target says.
    ///
    /// # Errors
    /// The server cannot be reached, does not answer in time, or does not speak HTTP.
    pub async fn post(&self, wire: Wire, headers: HeaderMap) -> Result<Reply, UpstreamError> {
        self.post_within(wire, headers, self.timeouts.head).await
    }

    /// `post` with a limit of its own for the head of the answer.
    ///
    /// # Errors
    /// As `post`.
    pub async fn post_within(
        &self,
        wire: Wire,
        mut headers: HeaderMap,
        head: Duration,
    ) -> Result<Reply, UpstreamError> {
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, BOTH_KINDS);
        self.exchange(Method::POST, headers, wire.into_bytes(), head).await
    }

    /// Opens the stream of messages the server sends by itself (legacy era).
    ///
    /// # Errors
    /// As `post`.
    pub async fn get_stream(&self, mut headers: HeaderMap) -> Result<Reply, UpstreamError> {
        headers.remove(CONTENT_TYPE);
        headers.insert(ACCEPT, EVENTS_ONLY);
        self.exchange(Method::GET, headers, Bytes::new(), self.timeouts.head).await
    }

    /// Ends a session (legacy era).
    ///
    /// # Errors
    /// As `post`.
    pub async fn delete(&self, mut headers: HeaderMap) -> Result<Reply, UpstreamError> {
        headers.remove(CONTENT_TYPE);
        headers.insert(ACCEPT, BOTH_KINDS);
        self.exchange(Method::DELETE, headers, Bytes::new(), self.timeouts.head).await
    }

    async fn exchange(
        &self,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
        head: Duration,
    ) -> Result<Reply, UpstreamError> {
        withhold(&mut headers);
        headers.insert(HOST, self.place.host.clone());
        headers.insert(USER_AGENT, OURSELVES);
        for (name, value) in &*self.secrets {
            headers.insert(name, value.clone());
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.place.path.clone();
        *request.headers_mut() = headers;
        let (live, response) = self.send(request, head).await?;
        Reply::receive(live, response, &self.pool, &self.place.shown).await
    }

    /// Sends on a pooled connection, or on a new one if that turns out dead before anything was written.
    async fn send(
        &self,
        request: Request<Full<Bytes>>,
        head: Duration,
    ) -> Result<(Box<Live>, connection::Response), UpstreamError> {
        let request = match self.pool.take().await {
            Some(live) => match send_on(live, request, head, &self.place.shown).await {
                Err(SendFault::Unsent(request)) => *request,
                Err(SendFault::Failed(error)) => return Err(error),
                Ok(answer) => return Ok(answer),
            },
            None => request,
        };
        let live = connect::connect(&self.place, &self.pool, self.timeouts.connect).await?;
        match send_on(live, request, head, &self.place.shown).await {
            Err(SendFault::Unsent(_)) => Err(UpstreamError::Closed { place: self.place.shown.clone() }),
            Err(SendFault::Failed(error)) => Err(error),
            Ok(answer) => Ok(answer),
        }
    }
}

async fn send_on(
    mut live: Box<Live>,
    request: Request<Full<Bytes>>,
    head: Duration,
    place: &Arc<str>,
) -> Result<(Box<Live>, connection::Response), SendFault> {
    let response = live.send(request, head, place).await?;
    Ok((live, response))
}

/// Takes out what must not leave. Most requests have nothing of it, so this only looks.
fn withhold(headers: &mut HeaderMap) {
    let passes = |name: &HeaderName| weak::is(Weakness::Headers) && [AUTHORIZATION, COOKIE].contains(name);
    while let Some(name) = headers.keys().find(|name| WITHHELD.contains(name) && !passes(name)).cloned() {
        headers.remove(name);
    }
}

impl fmt::Debug for HttpUpstream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpUpstream").field("place", &self.place.shown).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
