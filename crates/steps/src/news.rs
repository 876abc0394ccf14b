//! News of servers over HTTP for clients that do not open the server's stream themselves: those behind
//! the common door, and those on a pipe. The gateway opens it and tells them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use toolwarden_conversations::Scope;
use toolwarden_conversations::sessions::ClientSession;
use toolwarden_conversations::upstreams::{HttpLink, Link, News, Upstream};
use toolwarden_core::json::Limits;
use toolwarden_mcp::message::read_one;
use toolwarden_mcp::upstream::http::EventStream;
use toolwarden_mcp::{Backoff, Message};

use crate::decide::may_reach;
use crate::gateway::Gateway;
use crate::inspect::{Heard, stream_events};

/// A stream that ended is opened again after this.
const AGAIN: Duration = Duration::from_secs(1);

/// Follows a server's stream for a session, as long as there is one; once, however often it is asked for.
pub fn follow(gateway: &Arc<Gateway>, session: &Arc<ClientSession>, upstream: &Arc<Upstream>, link: &Arc<HttpLink>) {
    if !link.takes_follower() {
        return;
    }
    let mut changes = gateway.live.changes();
    let (gateway, listener) = (Arc::downgrade(gateway), Arc::downgrade(session));
    let (upstream, link, speaker) = (upstream.clone(), link.clone(), listener.clone());
    let is_open = move |server: &Arc<str>| {
        let (Some(gateway), Some(session)) = (gateway.upgrade(), speaker.upgrade()) else { return false };
        may_reach(&gateway, &session.caller(), server)
    };
    let following = tokio::spawn(async move {
        let mut pauses = Backoff::new();
        while !link.is_over() {
            while !is_open(&upstream.name) {
                // It may be opened again; without a gateway nobody opens it.
                if listener.strong_count() == 0 || changes.changed().await.is_err() {
                    return;
                }
            }
            let closed = async { while is_open(&upstream.name) && changes.changed().await.is_ok() {} };
            let pause = match link.news().await {
                News::Stream(events) => {
                    pauses = Backoff::new();
                    // GATE-19: a narrower policy closes what is open.
                    tokio::select! {
                        () = listen(events, &listener, &upstream, &link) => {}
                        () = closed => {}
                        () = link.until_over() => return,
                    }
                    AGAIN
                }
                News::Later => pauses.delay_after(Duration::ZERO),
                News::Never => return,
            };
            if listener.strong_count() == 0 {
                return;
            }
            tokio::time::sleep(pause).await;
        }
    });
    session.followed_by(following.abort_handle());
}

/// One stream to its end.
async fn listen(
    events: Box<EventStream>,
    session: &Weak<ClientSession>,
    upstream: &Arc<Upstream>,
    link: &Arc<HttpLink>,
) {
    let Some(listening) = session.upgrade() else { return };
    let heard = Heard::standalone(listening, upstream.clone(), Link::Http(link.clone()));
    let mut events = stream_events(events, heard);
    while let Some(event) = events.next().await {
        let Some(session) = session.upgrade() else { return };
        if let Some(data) = event.data.filter(|data| !data.is_empty()) {
            session.tell(shown(&session, upstream, data));
        }
    }
}

fn shown(session: &ClientSession, upstream: &Upstream, data: Bytes) -> Bytes {
    let limits = Limits::again(data.len());
    match (&session.scope, read_one(&data, limits)) {
        (Scope::All, Ok(Message::Notification(news))) => upstream.alias.renamed(&news).unwrap_or(data),
        _ => data,
    }
}
