//! News of servers over HTTP for clients that do not open the server's stream themselves: those behind
//! the common door, and those on a pipe. The gateway opens it and tells them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use toolwarden_conversations::Scope;
use toolwarden_conversations::sessions::ClientSession;
use toolwarden_conversations::upstreams::{HttpLink, Link, Upstream};
use toolwarden_core::json::Limits;
use toolwarden_mcp::Message;
use toolwarden_mcp::message::read_one;
use toolwarden_mcp::upstream::http::ReplyBody;

use crate::decide::may_reach;
use crate::gateway::Gateway;
use crate::inspect::{Heard, stream_events};

/// A stream that ended is opened again after this.
const AGAIN: Duration = Duration::from_secs(1);

/// Follows a server's stream for a session, as long as there is one.
pub(crate) fn follow(
    gateway: &Arc<Gateway>,
    session: &Arc<ClientSession>,
    upstream: &Arc<Upstream>,
    link: &Arc<HttpLink>,
) {
    let (gateway, caller) = (Arc::downgrade(gateway), session.caller.clone());
    let (listener, upstream, link) = (Arc::downgrade(session), upstream.clone(), link.clone());
    let is_open =
        move |server: &Arc<str>| gateway.upgrade().is_some_and(|gateway| may_reach(&gateway, &caller, server));
    let following = tokio::spawn(async move {
        while is_open(&upstream.name) && listen(&listener, &upstream, &link).await {
            tokio::time::sleep(AGAIN).await;
        }
    });
    session.followed_by(following.abort_handle());
}

/// One stream to its end; says whether another is worth a try.
async fn listen(session: &Weak<ClientSession>, upstream: &Arc<Upstream>, link: &Arc<HttpLink>) -> bool {
    let Ok(reply) = link.stream(None).await else { return session.strong_count() > 0 };
    // A server that offers no such stream says so.
    let ReplyBody::Events(body) = reply.body else { return false };
    let Some(listening) = session.upgrade() else { return false };
    let heard = Heard::standalone(listening, upstream.clone(), Link::Http(link.clone()));
    let mut events = stream_events(body, heard);
    while let Some(event) = events.next().await {
        let Some(session) = session.upgrade() else { return false };
        if let Some(data) = event.data.filter(|data| !data.is_empty()) {
            session.tell(shown(&session, upstream, data));
        }
    }
    session.strong_count() > 0
}

fn shown(session: &ClientSession, upstream: &Upstream, data: Bytes) -> Bytes {
    let limits = Limits { bytes: data.len(), depth: 256 };
    match (&session.scope, read_one(&data, limits)) {
        (Scope::All, Ok(Message::Notification(news))) => upstream.alias.renamed(&news).unwrap_or(data),
        _ => data,
    }
}
