//! A conversation over HTTP: stateless in the modern era, one session in the legacy one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tokio::sync::watch;
use toolwarden_core::{Outbound, Weakness, weak};
use toolwarden_mcp::sse::SseError;
use toolwarden_mcp::upstream::UpstreamError;
use toolwarden_mcp::upstream::http::{EventStream, HttpUpstream, Reply, ReplyBody};
use toolwarden_mcp::{Edit, Era, Id, Version, Wire, headers};
use toolwarden_policy::housekeeping;

use super::stdio::{own_fault, own_hello};
use super::{Ears, Opened, Reach, Tenure, Upstream};
use crate::failure::Failure;
use crate::greeting::greet_over_http;

/// What came of asking a server for the stream of its news.
#[derive(Debug)]
pub enum News {
    Stream(Box<EventStream>),
    /// Not now: it could not be reached, has a fault, or too much to do.
    Later,
    /// It has no such stream: 405, or 404 where nothing but POST has a route. A session it forgot looks the same.
    Never,
}

/// One conversation.
#[derive(Debug)]
pub struct HttpLink {
    upstream: HttpUpstream,
    tenure: Tenure,
    /// The server's id of a legacy session, where it gave one.
    session: Option<HeaderValue>,
    /// None while a legacy session is being opened.
    version: Option<Version>,
    /// Modern clients that listen to a legacy session.
    pub ears: Ears,
    /// Ids of requests on a session that several clients share.
    next: AtomicU64,
    /// The server has forgotten the session, or we ended it.
    over: watch::Sender<bool>,
    /// Its standalone stream is being followed.
    followed: AtomicBool,
}

impl HttpLink {
    pub fn modern(upstream: &Upstream, http: &HttpUpstream) -> Self {
        Self::new((http, upstream.tenure()), None, Some(Version::LATEST_MODERN))
    }

    /// A legacy session that is yet to be agreed on.
    pub fn opening(upstream: &Upstream, http: &HttpUpstream) -> Self {
        Self::new((http, upstream.tenure()), None, None)
    }

    /// The session that came of it.
    pub fn opened(&self, session: Option<HeaderValue>, version: Version) -> Self {
        Self::new((&self.upstream, &self.tenure), session, Some(version))
    }

    fn new(
        (upstream, tenure): (&HttpUpstream, &Tenure),
        session: Option<HeaderValue>,
        version: Option<Version>,
    ) -> Self {
        Self {
            upstream: upstream.clone(),
            tenure: tenure.clone(),
            session,
            version,
            ears: Ears::default(),
            next: AtomicU64::new(1),
            over: watch::Sender::new(false),
            followed: AtomicBool::new(false),
        }
    }

    /// A session the gateway opens on its own account, for modern clients.
    pub(super) async fn greeted(upstream: &Arc<Upstream>, capabilities: &str) -> Result<(Arc<Self>, Opened), Failure> {
        let hello = own_hello(&upstream.name, capabilities)?;
        let Reach::Http(http) = upstream.reach() else { return Err(Failure::Lost) };
        let (link, opened) = greet_over_http(upstream, http, &hello, &Id::number(0), &[]).await?;
        let ready = housekeeping(upstream.name.clone(), "notifications/initialized", None);
        drop(link.notify(&ready.map_err(own_fault)?).await?);
        Ok((link, opened))
    }

    /// An id no other request of this session has.
    pub fn next_id(&self) -> Id {
        Id::number(self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub fn is_over(&self) -> bool {
        *self.over.borrow() || self.tenure.is_over()
    }

    /// Waits until the session is over.
    pub async fn until_over(&self) {
        // The sender is ours, so this ends with nothing else.
        drop(self.over.subscribe().wait_for(|is_over| *is_over).await);
    }

    /// The server does not know the session any more.
    pub fn forget(&self) {
        self.over.send_replace(true);
        self.ears.close();
    }

    /// Whether its stream is to be followed from now on: the first who asks does it.
    pub fn takes_follower(&self) -> bool {
        !self.followed.swap(true, Ordering::Relaxed)
    }

    pub fn era(&self) -> Era {
        self.version.map_or(Era::Legacy, Version::era)
    }

    /// Headers of this hop: the conversation's, and the mirrors a modern request must carry.
    pub fn headers(&self, from_client: Option<&HeaderMap>) -> HeaderMap {
        let mut sent = HeaderMap::new();
        if let Some(version) = self.version {
            sent.insert(headers::VERSION, HeaderValue::from_static(version.as_str()));
        }
        if let Some(session) = &self.session {
            sent.insert(headers::SESSION, session.clone());
        }
        // Those of a call were compared with its arguments; nothing else has parameters.
        let is_call =
            from_client.and_then(|sent| sent.get(headers::METHOD)).is_some_and(|method| method == "tools/call");
        let mirrors = |name: &http::HeaderName| {
            *name == headers::METHOD
                || *name == headers::NAME
                || (is_call && name.as_str().starts_with(headers::PARAMETER_PREFIX))
                || weak::is(Weakness::Headers)
        };
        // Checked against the body by the ladder; everything else a client sends stays here.
        for (name, value) in from_client.into_iter().flatten().filter(|(name, _)| mirrors(name)) {
            sent.append(name.clone(), value.clone());
        }
        sent
    }

    pub async fn request(
        &self,
        outbound: &Outbound,
        id: &Id,
        edits: &[Edit<'_>],
        from_client: Option<&HeaderMap>,
        within: Duration,
    ) -> Result<Reply, Failure> {
        self.tenure.check()?;
        let wire = Wire::with_id(outbound, id, edits);
        let mut sent = self.headers(from_client);
        if let Some(trace) = edits.iter().find_map(Edit::trace) {
            trace.insert_into(&mut sent);
        }
        self.upstream.post_within(wire, sent, within).await.map_err(failure)
    }

    pub async fn notify(&self, outbound: &Outbound) -> Result<Reply, Failure> {
        let mut sent = self.headers(None);
        if let (true, Some(Ok(method))) =
            (self.version == Some(Version::LATEST_MODERN), outbound.method().map(HeaderValue::from_str))
        {
            sent.insert(headers::METHOD, method);
        }
        self.post(Wire::notification(outbound, &[]), sent).await
    }

    pub async fn answer(&self, outbound: &Outbound, id: &Id) -> Result<Reply, Failure> {
        self.post(Wire::with_id(outbound, id, &[]), self.headers(None)).await
    }

    /// The standalone stream of a legacy session.
    pub async fn stream(&self, last_event: Option<&HeaderValue>) -> Result<Reply, Failure> {
        self.tenure.check()?;
        let mut sent = self.headers(None);
        if let Some(last) = last_event {
            sent.insert(headers::LAST_EVENT, last.clone());
        }
        self.upstream.get_stream(sent).await.map_err(failure)
    }

    /// The same for whoever follows it as long as the session lasts.
    pub async fn news(&self) -> News {
        let Ok(reply) = self.stream(None).await else { return News::Later };
        match (reply.status.as_u16(), reply.body) {
            (200..=299, ReplyBody::Events(events)) => News::Stream(events),
            // Not implemented is no fault that passes.
            (501, _) => News::Never,
            (408 | 425 | 429 | 500.., _) => News::Later,
            _ => News::Never,
        }
    }

    pub async fn end(&self) -> Result<Reply, Failure> {
        self.upstream.delete(self.headers(None)).await.map_err(failure)
    }

    async fn post(&self, wire: Wire, sent: HeaderMap) -> Result<Reply, Failure> {
        self.tenure.check()?;
        self.upstream.post(wire, sent).await.map_err(failure)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is a mapping of errors")]
pub fn failure(error: UpstreamError) -> Failure {
    match error {
        UpstreamError::Timeout { .. } => Failure::Timeout,
        UpstreamError::TooLarge { .. } | UpstreamError::Events { reason: SseError::TooLarge { .. }, .. } => {
            Failure::TooLarge
        }
        UpstreamError::Closed { .. } => Failure::Died,
        UpstreamError::Unreachable { .. } | UpstreamError::Tls { .. } => Failure::Unreachable(error.to_string()),
        UpstreamError::Protocol { .. } | UpstreamError::OtherTransport { .. } | UpstreamError::Events { .. } => {
            Failure::Protocol(error.to_string())
        }
    }
}
