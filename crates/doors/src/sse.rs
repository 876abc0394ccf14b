//! The oldest HTTP door (2024-11-05), for clients that know no other: one stream of events for everything
//! the client hears, and an address to which it posts what it says.
//!
//! `GET /sse` or `/sse/{server}` opens a session and names the address; the session ends with the stream.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{Method, Response, StatusCode};
use http_body::Body;
use tokio::sync::mpsc;
use toolwarden_conversations::sessions::{ClientSession, Push};
use toolwarden_gateway::{Answer, Gateway, Refusal, Via, handle};
use toolwarden_mcp::sse::Event;
use toolwarden_telemetry::TurnedAway;

use crate::body::AnswerBody;
use crate::http::{Visit, plain, refused, respond};
use crate::lines::{arrive, say};
use crate::observing::turn_away;
use crate::post::{accepts, collected, full, is_json, not_taken};
use crate::query::Query;

const LINES_WAITING: usize = 1024;

pub(crate) async fn visit<B>(
    gateway: &Arc<Gateway>,
    visit: Visit,
    method: &Method,
    path: &str,
    said: &Query<'_>,
    body: B,
) -> Response<AnswerBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match *method {
        Method::GET => open(gateway, &visit, path, said.mode_pair),
        Method::POST => post(gateway, &visit, said.session, body).await,
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "use GET for the stream, POST for messages"),
    }
}

fn open(gateway: &Arc<Gateway>, visit: &Visit, path: &str, mode: Option<&str>) -> Response<AnswerBody> {
    if !accepts(&visit.headers, "text/event-stream") {
        return plain(StatusCode::NOT_ACCEPTABLE, "Accept must list text/event-stream");
    }
    let (lines, waiting) = mpsc::channel(LINES_WAITING);
    let session = match gateway.open_session(&visit.caller, &visit.scope, Push::Lines(lines)) {
        Ok(session) => session,
        Err(refusal) => return refused(gateway, &refusal),
    };
    // Whoever posts is identified again, in the same mode.
    let mode = mode.map(|mode| format!("&{mode}")).unwrap_or_default();
    let address = Bytes::from(format!("{path}?session={}{mode}", session.id));
    let first = Event { name: Some(Bytes::from_static(b"endpoint")), ..Event::of(address) };
    // What is told to stop says first what it was asked; a session that is taken away says nothing more.
    let (begun, of) = (gateway.closing().begun(), session.clone());
    let said = Box::pin(async move {
        let stopped = async {
            begun.await;
            of.at_rest().await;
        };
        tokio::select! {
            () = stopped => {}
            () = of.over() => {}
        }
    });
    let stay = Stay { gateway: gateway.clone(), session };
    let open = (Some(first), waiting, said, stay);
    let events = stream::unfold(open, |(first, mut waiting, mut said, stay)| async move {
        if let Some(first) = first {
            return Some((first, (None, waiting, said, stay)));
        }
        loop {
            tokio::select! {
                biased;
                message = waiting.recv() => {
                    let event = Event { name: Some(Bytes::from_static(b"message")), ..Event::of(message?) };
                    return Some((event, (None, waiting, said, stay)));
                }
                () = &mut said, if !waiting.is_closed() => waiting.close(),
            }
        }
    });
    respond(Answer::Events { events: Box::pin(events), resumable: true })
}

/// The session, as long as its stream is open.
struct Stay {
    gateway: Arc<Gateway>,
    session: Arc<ClientSession>,
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.gateway.close_session(&self.session);
        let session = self.session.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { session.leave().await });
        }
    }
}

async fn post<B>(gateway: &Arc<Gateway>, visit: &Visit, session: Option<&str>, body: B) -> Response<AnswerBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if !is_json(&visit.headers) {
        turn_away(gateway, TurnedAway::Headers);
        return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json");
    }
    let session = session.and_then(|id| gateway.find_session(id, &visit.caller, &visit.scope).ok());
    // A session of another door has a stream of its own.
    let place = session.and_then(|session| match &session.push {
        Push::Lines(lines) => Some((session.clone(), lines.clone())),
        Push::Log(_) => None,
    });
    let Some((session, lines)) = place else { return refused(gateway, &Refusal::SessionGone) };
    let mut room = gateway.body_room(&visit.caller);
    let body = match collected(&visit.headers, body, gateway.request_limits().bytes, Some(&mut room)).await {
        Ok(body) => body,
        Err((status, text)) => {
            turn_away(gateway, TurnedAway::Body);
            return not_taken(status, text);
        }
    };
    if let Err((status, text)) = room.weigh(&body).map_err(full) {
        turn_away(gateway, TurnedAway::Body);
        return not_taken(status, text);
    }
    let body = (&body, Some(Arc::new(room)));
    if let Some(arrival) = arrive(gateway, &session, Via::Events, body, &lines).await {
        // A client that posts faster than its calls end waits here, with its own connection.
        let Ok(room) = session.room().acquire_owned().await else { return refused(gateway, &Refusal::SessionGone) };
        let gateway = gateway.clone();
        tokio::spawn(async move {
            say(&lines, handle(&gateway, arrival).await).await;
            drop(room);
        });
    }
    respond(Answer::Accepted)
}
