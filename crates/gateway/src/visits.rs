//! What doors ask for besides handing in messages: a client's session, its standing stream, and its end.

use std::sync::Arc;

use http::{HeaderValue, StatusCode};
use toolwarden_conversations::Scope;
use toolwarden_conversations::sessions::{ClientSession, Push, SessionError, principal};
use toolwarden_conversations::upstreams::{HttpLink, Link, Upstream};
use toolwarden_core::json::Limits;
use toolwarden_core::{Caller, Weakness, weak};
use toolwarden_guard::{Closing, Head};
use toolwarden_mcp::Era;
use toolwarden_mcp::upstream::http::ReplyBody;

use crate::answer::Events;
use crate::bridge::listen_for;
use crate::decide::may_reach;
use crate::ending::while_reachable;
use crate::gateway::Gateway;
use crate::inspect::{Heard, stream_events};
use crate::settings::Settings;
use crate::visible;
use toolwarden_refusals::Refusal;

/// The stream a legacy client opened to hear of what is no answer.
pub enum Standing {
    /// The session's own log holds it.
    Own(Arc<ClientSession>),
    /// Its server's, judged on the way.
    Server(Events),
    /// The server offers none.
    Nothing(StatusCode),
}

impl std::fmt::Debug for Standing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Own(_) => "Own",
            Self::Server(_) => "Server",
            Self::Nothing(_) => "Nothing",
        })
    }
}

impl Gateway {
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The order to stop.
    #[must_use]
    pub fn closing(&self) -> &Closing {
        &self.closing
    }

    /// A server, and what is open with it.
    #[must_use]
    pub fn upstream(&self, server: &str) -> Option<&Arc<Upstream>> {
        self.upstreams.get(server)
    }

    /// Whether a caller may reach a server at all.
    #[must_use]
    pub fn may_reach(&self, caller: &Arc<Caller>, server: &Arc<str>) -> bool {
        may_reach(self, caller, server)
    }

    /// How much of a message is read before it is known for whom it is.
    #[must_use]
    pub fn request_limits(&self) -> Limits {
        let (bytes, depth) = self.limiter.request();
        Limits { bytes, depth }
    }

    /// Requests on their way, by whose limit they count for.
    #[must_use]
    pub fn in_flight(&self) -> Vec<(String, u64)> {
        self.limiter.in_flight()
    }

    /// One more stream of news of a caller, as long as this is held.
    ///
    /// # Errors
    /// It has too many open.
    pub fn open_stream(&self, caller: &Caller) -> Result<Head, Refusal> {
        self.streams.open(principal(caller)).ok_or(Refusal::TooManyStreams)
    }

    /// Opens a session of an HTTP client.
    ///
    /// # Errors
    /// Too many are open, or none can be sealed.
    pub fn open_session(&self, caller: &Arc<Caller>, scope: &Scope, push: Push) -> Result<Arc<ClientSession>, Refusal> {
        let most = (self.settings.most_sessions, self.settings.most_sessions_of_one);
        self.sessions.open(&*self.keyring, caller.clone(), scope.clone(), most, push).map_err(|error| {
            tracing::warn!("no session was opened: {error}");
            match error {
                SessionError::TooMany | SessionError::TooManyOfOne => Refusal::TooManySessions,
                SessionError::Key(_) => Refusal::NoRecord,
            }
        })
    }

    /// The session of a client on a line of its own.
    #[must_use]
    pub fn line_session(&self, caller: Arc<Caller>, scope: Scope, push: Push) -> Arc<ClientSession> {
        let session = Arc::new(ClientSession::new("stdio".to_owned(), caller, scope, push));
        self.sessions.add_line(&session);
        session
    }

    /// The session of this id, if this caller opened it at this door.
    ///
    /// # Errors
    /// There is none, or no such server.
    pub fn find_session(&self, id: &str, caller: &Caller, scope: &Scope) -> Result<Arc<ClientSession>, Refusal> {
        self.sessions.find(id, caller, scope).ok_or_else(|| match scope {
            Scope::One(server) if self.upstreams.get(server).is_none() => Refusal::UnknownServer(server.to_string()),
            Scope::One(_) | Scope::All => Refusal::SessionGone,
        })
    }

    /// Nobody finds the session any more; what it holds at servers ends with `ClientSession::leave`.
    pub fn close_session(&self, session: &ClientSession) {
        self.sessions.close(&session.id);
    }

    /// Ends a session because its client says so; gives the status the client is told.
    pub async fn end_session(&self, session: &ClientSession) -> StatusCode {
        self.close_session(session);
        // Through the transparent door the client hears what the server says to it.
        let link = session.links().pop().filter(|(_, link)| link.era() == Era::Legacy);
        if let (Scope::One(_), Some((_, Link::Http(http)))) = (&session.scope, link) {
            return http.end().await.map_or(StatusCode::OK, |reply| reply.status);
        }
        session.leave().await;
        StatusCode::OK
    }

    /// The standing stream of a session, from the event after `last` on.
    ///
    /// # Errors
    /// The session is over, or its server cannot be heard.
    pub async fn standing_stream(
        self: &Arc<Self>,
        session: Arc<ClientSession>,
        last: Option<&HeaderValue>,
    ) -> Result<Standing, Refusal> {
        // A weak gateway gives anybody the events of whoever has them.
        let others = || self.sessions.all().into_iter().find(|other| other.id != session.id);
        let session = weak::is(Weakness::Sessions).then(others).flatten().unwrap_or_else(|| session.clone());
        let Scope::One(server) = session.scope.clone() else { return Ok(Standing::Own(session)) };
        let upstream = self.upstreams.get(&server);
        match (session.link(&server), upstream) {
            (Some(link), Some(upstream)) if link.era() == Era::Modern => {
                // Its news come another way, and are kept for this stream.
                listen_for(self, &session, upstream);
                Ok(Standing::Own(session))
            }
            (Some(Link::Http(http)), Some(upstream)) => self.stream_of(session, upstream, http, last).await,
            (Some(Link::Http(_)), None) => Err(Refusal::SessionGone),
            _ => Ok(Standing::Own(session)),
        }
    }

    /// The stream of a server whose session is one with the client's.
    async fn stream_of(
        self: &Arc<Self>,
        session: Arc<ClientSession>,
        upstream: &Arc<Upstream>,
        http: Arc<HttpLink>,
        last: Option<&HeaderValue>,
    ) -> Result<Standing, Refusal> {
        if !may_reach(self, &session.caller, &upstream.name) {
            // Opening another session says why.
            return Err(Refusal::SessionGone);
        }
        let reply = http.stream(last).await.map_err(Refusal::Upstream)?;
        match (reply.status, reply.body) {
            (StatusCode::OK, ReplyBody::Events(body)) => {
                let caller = session.caller.clone();
                let heard = Heard::standalone(session, upstream.clone(), Link::Http(http));
                let events = stream_events(body, heard);
                let events = visible::with_news(self, &caller, &Scope::One(upstream.name.clone()), events);
                Ok(Standing::Server(while_reachable(self, caller, upstream.name.clone(), events)))
            }
            (StatusCode::NOT_FOUND, _) => {
                self.sessions.close(&session.id);
                Err(Refusal::SessionGone)
            }
            (status, _) if status.is_client_error() => Ok(Standing::Nothing(status)),
            _ => Ok(Standing::Nothing(StatusCode::BAD_GATEWAY)),
        }
    }
}
