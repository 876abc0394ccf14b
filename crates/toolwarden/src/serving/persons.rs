//! The control side for persons who show a token: the clerk's operations, with the rights of that token.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use toolwarden_console::{Desk, Peer};
use toolwarden_core::Caller;
use toolwarden_doors::{Answering, Beside};
use toolwarden_store::state::Feed;

/// Answers persons.
#[derive(Debug)]
pub struct Persons {
    pub desk: Desk,
    pub feed: Arc<Feed>,
}

impl Beside for Persons {
    fn answer(&self, person: Arc<Caller>, request: Request<Bytes>) -> Answering {
        let known = self.feed.known();
        let token = person.token.id.as_ref().and_then(|id| known.tokens.by_id.get(id));
        let peer = token
            .and_then(|token| Peer::of_person(person.user.as_deref()?, &token.claims.rights, &token.claims.groups));
        Box::pin(self.desk.clone().answer(peer, request))
    }
}
