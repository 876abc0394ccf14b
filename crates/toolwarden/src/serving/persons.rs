//! The control side for persons who show a token: the clerk's operations, with the rights of that token.

use std::sync::{Arc, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures_util::stream;
use http::Request;
use serde::{Deserialize, Serialize};
use toolwarden_console::{Desk, EVENTS_PATH, Peer, Visitors};
use toolwarden_control::{Clerk, ControlEvent, Listening};
use toolwarden_core::{Caller, Clock, Keyring, Purpose, Secret};
use toolwarden_doors::{Answering, Beside};
use toolwarden_gateway::{Credential, Events, Gateway, identify};
use toolwarden_mcp::sse::Event;
use toolwarden_notices::Answers;
use toolwarden_store::state::{Feed, StoredToken};

use super::webhooks;
use crate::environment::SystemClock;

/// How often it is looked whether a token of somebody who listens still counts.
const LOOK: Duration = Duration::from_secs(2);

/// How long a login at the page of a held call lasts.
const LOGIN: Duration = Duration::from_secs(15 * 60);
const BOUND_TO: &[u8] = b"login at the page";

/// Answers persons.
#[derive(Debug)]
pub struct Persons {
    pub desk: Desk,
    pub logins: Arc<Logins>,
    pub hooks: Hooks,
    /// Of the pages that are served here.
    pub origins: Vec<String>,
}

/// Integrations that may answer.
#[derive(Debug)]
pub struct Hooks {
    pub answers: Arc<Answers>,
    pub clerk: Arc<Clerk>,
}

/// Who is logged in at the page of a held call: whoever showed a token that still counts.
#[derive(Debug)]
pub struct Logins {
    pub feed: Arc<Feed>,
    pub keyring: Arc<dyn Keyring>,
    pub gateway: Weak<Gateway>,
}

/// What a login says; sealed, so that nobody can make one.
#[derive(Serialize, Deserialize)]
struct Login {
    /// The held call it is for.
    call: String,
    token: String,
    /// Of the token as it was then: one that was changed since is another one.
    digest: String,
    expires_at: jiff::Timestamp,
}

impl Logins {
    /// A person whose token counts now.
    fn peer(&self, id: &str, digest: Option<&str>) -> Option<Peer> {
        good(&self.feed, id, digest).and_then(|token| Peer::of_person(&token.id, &token.claims))
    }
}

/// A token that counts now, with this secret where one is named.
fn good(feed: &Feed, id: &str, digest: Option<&str>) -> Option<Arc<StoredToken>> {
    let token = feed.known().tokens.by_id.get(id)?.clone();
    let is_over = token.claims.expires_at.is_some_and(|end| end <= SystemClock.now());
    let is_same = digest.is_none_or(|digest| digest == token.digest);
    (token.revoked_at.is_none() && !is_over && is_same).then_some(token)
}

impl Visitors for Logins {
    fn log_in(&self, token: &str, id: &str) -> Option<String> {
        let gateway = self.gateway.upgrade()?;
        let credential = Credential::Token(Secret::new(token.to_owned()));
        let person = identify(&gateway, &credential, None).ok().filter(|caller| !caller.is_agent())?;
        let (token, digest) = (person.token.id.clone()?, person.token.digest.clone()?);
        self.peer(&token, None)?;
        let expires_at = SystemClock.now().checked_add(LOGIN).ok()?;
        let login = serde_json::to_vec(&Login { call: id.to_owned(), token, digest, expires_at }).ok()?;
        self.keyring.seal(Purpose::Link, BOUND_TO, &login).ok().map(|sealed| URL_SAFE_NO_PAD.encode(sealed))
    }

    fn visitor(&self, login: &str, id: &str) -> Option<Peer> {
        let sealed = URL_SAFE_NO_PAD.decode(login).ok()?;
        let plain = self.keyring.open(Purpose::Link, BOUND_TO, &sealed).ok()?;
        let login: Login = serde_json::from_slice(&plain).ok()?;
        let counts = login.call == id && login.expires_at > SystemClock.now();
        counts.then(|| self.peer(&login.token, Some(&login.digest)))?
    }
}

impl Persons {
    fn peer(&self, person: &Caller) -> Option<Peer> {
        self.logins.peer(person.token.id.as_ref()?, person.token.digest.as_deref())
    }
}

impl Beside for Persons {
    fn answer(&self, person: Arc<Caller>, request: Request<Bytes>) -> Answering {
        let peer = self.peer(&person);
        Box::pin(self.desk.clone().answer(peer, request))
    }

    fn page(&self, request: Request<Bytes>) -> Answering {
        if request.uri().path().starts_with(webhooks::HOOKS_PATH) {
            return Box::pin(webhooks::answer(self.hooks.answers.clone(), self.hooks.clerk.clone(), request));
        }
        Box::pin(self.desk.clone().page(self.logins.clone(), request))
    }

    fn origins(&self) -> &[String] {
        &self.origins
    }

    fn events(&self, person: &Arc<Caller>, path: &str) -> Option<Events> {
        // Whoever may not is told why by the operation's own answer.
        let listening = (path == EVENTS_PATH).then(|| self.desk.listen(&self.peer(person)?).ok())??;
        let heard = Heard { listening, feed: self.logins.feed.clone(), person: person.clone() };
        Some(Box::pin(stream::unfold(heard, |mut heard| async move {
            let event = heard.next().await?;
            let name = Some(Bytes::from_static(event.name().as_bytes()));
            Some((Event { name, ..Event::of(event.data().into()) }, heard))
        })))
    }
}

/// Somebody who listens as long as their token counts.
struct Heard {
    listening: Listening,
    feed: Arc<Feed>,
    person: Arc<Caller>,
}

impl Heard {
    async fn next(&mut self) -> Option<ControlEvent> {
        loop {
            let event = tokio::time::timeout(LOOK, self.listening.next()).await;
            if !self.counts() {
                return None;
            }
            if let Ok(event) = event {
                return event;
            }
        }
    }

    fn counts(&self) -> bool {
        let (id, digest) = (self.person.token.id.as_deref(), self.person.token.digest.as_deref());
        id.zip(digest).is_some_and(|(id, digest)| good(&self.feed, id, Some(digest)).is_some())
    }
}
