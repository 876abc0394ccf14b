//! The control side for persons who show a token: the clerk's operations, with the rights of that token.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::Request;
use toolwarden_console::{Desk, EVENTS_PATH, Peer};
use toolwarden_control::{ControlEvent, Listening};
use toolwarden_core::{Caller, Clock};
use toolwarden_doors::{Answering, Beside};
use toolwarden_gateway::Events;
use toolwarden_mcp::sse::Event;
use toolwarden_store::state::Feed;

use crate::environment::SystemClock;

/// How often it is looked whether a token of somebody who listens still counts.
const LOOK: Duration = Duration::from_secs(2);

/// Answers persons.
#[derive(Debug)]
pub struct Persons {
    pub desk: Desk,
    pub feed: Arc<Feed>,
}

impl Persons {
    fn peer(&self, person: &Caller) -> Option<Peer> {
        let known = self.feed.known();
        let token = known.tokens.by_id.get(person.token.id.as_ref()?)?;
        Peer::of_person(person.user.as_deref()?, &token.claims.rights, &token.claims.groups)
    }
}

impl Beside for Persons {
    fn answer(&self, person: Arc<Caller>, request: Request<Bytes>) -> Answering {
        let peer = self.peer(&person);
        Box::pin(self.desk.clone().answer(peer, request))
    }

    fn events(&self, person: &Arc<Caller>, path: &str) -> Option<Events> {
        // Whoever may not is told why by the operation's own answer.
        let listening = (path == EVENTS_PATH).then(|| self.desk.listen(&self.peer(person)?).ok())??;
        let heard = Heard { listening, feed: self.feed.clone(), person: person.clone() };
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
        let known = self.feed.known();
        let token = self.person.token.id.as_ref().and_then(|id| known.tokens.by_id.get(id));
        token.is_some_and(|token| {
            let is_over = token.claims.expires_at.is_some_and(|end| end <= SystemClock.now());
            let is_same = self.person.token.digest.as_ref() == Some(&token.digest);
            token.revoked_at.is_none() && !is_over && is_same
        })
    }
}
