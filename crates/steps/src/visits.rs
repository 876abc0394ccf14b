//! What doors ask for besides handing in messages: a client's session, and its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::StatusCode;
use toolwarden_conversations::Scope;
use toolwarden_conversations::sessions::{ClientSession, Push, SessionError, identity};
use toolwarden_conversations::upstreams::{Link, Upstream};
use toolwarden_core::Caller;
use toolwarden_core::digest::hex;
use toolwarden_core::json::Limits;
use toolwarden_guard::{Closing, Head, Room};
use toolwarden_mcp::Era;

use crate::decide::may_reach;
use crate::gateway::Gateway;
use crate::settings::Settings;
use toolwarden_refusals::Refusal;

impl Gateway {
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many definitions of a server wait for a person.
    #[must_use]
    pub fn definitions_waiting(&self, server: &str) -> usize {
        self.pins.waiting(server)
    }

    /// The order to stop.
    #[must_use]
    pub fn closing(&self) -> &Closing {
        &self.closing
    }

    /// A server, and what is open with it.
    #[must_use]
    pub fn upstream(&self, server: &str) -> Option<Arc<Upstream>> {
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

    /// Room for the body of a request, for as long as it is read. It counts against the caller and against all.
    #[must_use]
    pub fn body_room(&self, caller: &Caller) -> Room {
        self.bodies.room(identity(caller), self.request_limits().bytes)
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
        self.streams.open(identity(caller)).ok_or_else(|| {
            self.note_event("limit_reached", "the caller has too many streams open", |record| record.describe(caller));
            Refusal::TooManyStreams
        })
    }

    /// Opens a session of an HTTP client.
    ///
    /// # Errors
    /// Too many are open, or none can be sealed.
    pub fn open_session(&self, caller: &Arc<Caller>, scope: &Scope, push: Push) -> Result<Arc<ClientSession>, Refusal> {
        let most = (self.settings.most_sessions, self.settings.most_sessions_of_one);
        self.sessions.open(&*self.keyring, caller.clone(), scope.clone(), most, push).map_err(|error| {
            tracing::warn!("no session was opened: {error}");
            if matches!(error, SessionError::Key(_)) {
                return Refusal::NoRecord;
            }
            self.note_event("limit_reached", &error.to_string(), |record| record.describe(caller));
            Refusal::TooManySessions
        })
    }

    /// The session of a client on a line of its own.
    #[must_use]
    pub fn line_session(&self, caller: Arc<Caller>, scope: Scope, push: Push) -> Arc<ClientSession> {
        let number = self.lines.fetch_add(1, Ordering::Relaxed);
        let mut random = [0; 16];
        // What is granted to a conversation is not another process's: numbers begin anew in each.
        let id = match self.keyring.random(&mut random) {
            Ok(()) => format!("stdio-{number}-{}", hex(&random)),
            Err(_) => format!("stdio-{number}-{}", self.clock.now()),
        };
        let session = Arc::new(ClientSession::new(id, caller, scope, push));
        self.sessions.add_line(&session);
        session
    }

    /// The session of this id, if this caller opened it at this door.
    ///
    /// # Errors
    /// There is none, or no such server.
    pub fn find_session(&self, id: &str, caller: &Caller, scope: &Scope) -> Result<Arc<ClientSession>, Refusal> {
        self.sessions.find(id, caller, scope).ok_or_else(|| match scope {
            Scope::One(server) if !self.upstreams.get(server).is_some_and(|upstream| upstream.is_for(caller)) => {
                Refusal::UnknownServer(server.to_string())
            }
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
}
