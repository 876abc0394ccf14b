//! GET and DELETE of a legacy session: its standalone stream, resumption, and its end.

use std::sync::Arc;

use http::{Response, StatusCode};
use toolwarden_core::{Weakness, weak};
use toolwarden_mcp::upstream::http::ReplyBody;
use toolwarden_mcp::{Era, headers};

use super::body::AnswerBody;
use super::http::{Visit, legacy_version, plain, refused, respond};
use super::post::{accepts, read_log, session};
use crate::answer::Answer;
use crate::arrival::Scope;
use crate::bridge::listen_for;
use crate::decide::may_reach;
use crate::gateway::Gateway;
use crate::inspect::{Heard, stream_events};
use crate::refusal::Refusal;
use crate::sessions::ClientSession;
use crate::stream_log::StreamLog;
use crate::upstreams::Link;

pub(super) async fn get(gateway: &Arc<Gateway>, visit: &Visit) -> Response<AnswerBody> {
    if !accepts(&visit.headers, "text/event-stream") {
        return plain(StatusCode::NOT_ACCEPTABLE, "Accept must list text/event-stream");
    }
    let session = match legacy_version(&visit.headers).and_then(|_| session(gateway, visit)) {
        Ok(session) => session,
        Err(refusal) => return refused(&refusal),
    };
    // A weak gateway gives anybody the events of whoever has them.
    let others = || gateway.sessions.all().into_iter().find(|other| other.id != session.id);
    let session = weak::is(Weakness::Sessions).then(others).flatten().unwrap_or_else(|| session.clone());
    let link = match &visit.scope {
        Scope::One(server) => session.link(server),
        Scope::All => None,
    };
    match (link, &visit.scope) {
        (Some(link), Scope::One(server)) if link.era() == Era::Modern => {
            // Its news come another way, and are kept for this stream.
            if let Some(upstream) = gateway.upstreams.get(server) {
                listen_for(gateway, &session, upstream);
            }
            own(visit, &session)
        }
        (Some(Link::Http(_)), _) => from_server(gateway, visit, session).await,
        _ => own(visit, &session),
    }
}

/// The stream of a server whose session is one with the client's.
async fn from_server(gateway: &Arc<Gateway>, visit: &Visit, session: Arc<ClientSession>) -> Response<AnswerBody> {
    let Scope::One(server) = &visit.scope else { return refused(&Refusal::SessionGone) };
    let (Some(upstream), Some(Link::Http(http))) = (gateway.upstreams.get(server), session.link(server)) else {
        return refused(&Refusal::SessionGone);
    };
    if !may_reach(gateway, &session.caller, &upstream.name) {
        // Opening another session says why.
        return refused(&Refusal::SessionGone);
    }
    let reply = match http.stream(visit.headers.get(headers::LAST_EVENT)).await {
        Ok(reply) => reply,
        Err(failure) => return refused(&Refusal::Upstream(failure)),
    };
    match (reply.status, reply.body) {
        (StatusCode::OK, ReplyBody::Events(body)) => {
            let heard = Heard::standalone(session, upstream.clone(), Link::Http(http));
            respond(Answer::Events { events: stream_events(body, heard), resumable: true })
        }
        (StatusCode::NOT_FOUND, _) => {
            gateway.sessions.close(&session.id);
            refused(&Refusal::SessionGone)
        }
        (status, _) if status.is_client_error() => plain(status, "the server offers no such stream"),
        _ => plain(StatusCode::BAD_GATEWAY, "the server's stream cannot be used"),
    }
}

/// A stream of our own: news, or the rest of a stream that broke off.
fn own(visit: &Visit, session: &ClientSession) -> Response<AnswerBody> {
    let last = visit.headers.get(headers::LAST_EVENT).and_then(|id| id.to_str().ok());
    let place = last.map(StreamLog::parse_id);
    let reader = match place {
        None => session.stream(0).map(|log| log.attach(None)),
        Some(None) => None,
        // GATE-19: only streams of this very session are found.
        Some(Some((stream, event))) => session.stream(stream).map(|log| log.attach(Some(event + 1))),
    };
    match reader {
        Some(reader) => respond(Answer::Events { events: read_log(reader), resumable: true }),
        None => plain(StatusCode::BAD_REQUEST, "no stream of this session has that event"),
    }
}

pub(super) async fn delete(gateway: &Arc<Gateway>, visit: &Visit) -> Response<AnswerBody> {
    let session = match session(gateway, visit) {
        Ok(session) => session,
        Err(refusal) => return refused(&refusal),
    };
    gateway.sessions.close(&session.id);
    let mut status = StatusCode::OK;
    // Through the transparent door the client hears what the server says to it.
    let link = session.links().pop().filter(|(_, link)| link.era() == Era::Legacy);
    if let (Scope::One(_), Some((_, Link::Http(http)))) = (&visit.scope, link) {
        status = http.end().await.map_or(status, |reply| reply.status);
    } else {
        session.leave().await;
    }
    let mut response = Response::new(AnswerBody::empty());
    *response.status_mut() = status;
    response
}
