//! The standing stream of a legacy client: what it hears that is no answer.

use std::sync::Arc;

use futures_util::StreamExt;
use http::{HeaderValue, StatusCode};
use toolwarden_conversations::Scope;
use toolwarden_conversations::sessions::ClientSession;
use toolwarden_conversations::upstreams::{HttpLink, Link, Upstream};
use toolwarden_core::{Weakness, weak};
use toolwarden_mcp::Era;
use toolwarden_mcp::upstream::http::ReplyBody;
use toolwarden_refusals::Refusal;
use toolwarden_steps::answer::Events;
use toolwarden_steps::decide::may_reach;
use toolwarden_steps::ending::while_reachable;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::inspect::{Heard, stream_events};
use toolwarden_steps::visible::{self, Viewer};

use crate::bridge::listen_for;

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

/// The standing stream of a session, from the event after `last` on.
///
/// # Errors
/// The session is over, or its server cannot be heard.
pub async fn standing_stream(
    gateway: &Arc<Gateway>,
    session: Arc<ClientSession>,
    last: Option<&HeaderValue>,
) -> Result<Standing, Refusal> {
    // A weak gateway gives anybody the events of whoever has them.
    let others = || gateway.sessions.all().into_iter().find(|other| other.id != session.id);
    let session = weak::is(Weakness::Sessions).then(others).flatten().unwrap_or_else(|| session.clone());
    let Scope::One(server) = session.scope.clone() else { return Ok(Standing::Own(session)) };
    let upstream = gateway.upstreams.get(&server);
    match (upstream.as_ref().and_then(|upstream| session.link(upstream)), upstream) {
        (Some(link), Some(upstream)) if link.era() == Era::Modern => {
            // Its news come another way, and are kept for this stream.
            listen_for(gateway, &session, &upstream);
            Ok(Standing::Own(session))
        }
        (Some(Link::Http(http)), Some(upstream)) => stream_of(gateway, session, &upstream, http, last).await,
        (_, None) => Err(Refusal::SessionGone),
        _ => Ok(Standing::Own(session)),
    }
}

/// The stream of a server whose session is one with the client's.
async fn stream_of(
    gateway: &Arc<Gateway>,
    session: Arc<ClientSession>,
    upstream: &Arc<Upstream>,
    http: Arc<HttpLink>,
    last: Option<&HeaderValue>,
) -> Result<Standing, Refusal> {
    if !may_reach(gateway, &session.caller(), &upstream.name) {
        // Opening another session says why.
        return Err(Refusal::SessionGone);
    }
    let reply = http.stream(last).await.map_err(Refusal::Upstream)?;
    match (reply.status, reply.body) {
        (StatusCode::OK, ReplyBody::Events(body)) => {
            let viewer = Viewer::Session(Arc::downgrade(&session));
            let heard = Heard::standalone(session, upstream.clone(), Link::Http(http.clone()));
            // A server that is defined otherwise since is not heard any more, whatever it says.
            let over = Box::pin(async move { http.until_over().await });
            let events = Box::pin(stream_events(body, heard).take_until(over));
            let events = visible::with_news(gateway, viewer.clone(), &Scope::One(upstream.name.clone()), events);
            Ok(Standing::Server(while_reachable(gateway, viewer, upstream.name.clone(), events)))
        }
        (StatusCode::NOT_FOUND, _) => {
            gateway.close_session(&session);
            Err(Refusal::SessionGone)
        }
        (status, _) if status.is_client_error() => Ok(Standing::Nothing(status)),
        _ => Ok(Standing::Nothing(StatusCode::BAD_GATEWAY)),
    }
}
