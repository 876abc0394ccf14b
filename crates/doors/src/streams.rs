//! GET and DELETE of a legacy session: its standalone stream, resumption, and its end.

use std::sync::Arc;

use http::{Response, StatusCode};
use toolwarden_conversations::sessions::ClientSession;
use toolwarden_conversations::stream_log::StreamLog;
use toolwarden_gateway::{Answer, Gateway, Standing, standing_stream};
use toolwarden_mcp::headers;
use toolwarden_telemetry::TurnedAway;

use crate::body::AnswerBody;
use crate::http::{Visit, legacy_version, plain, refused, respond};
use crate::news::standing;
use crate::observing::turn_away;
use crate::post::{accepts, read_log, session};

pub(crate) async fn get(gateway: &Arc<Gateway>, visit: &Visit) -> Response<AnswerBody> {
    if !accepts(&visit.headers, "text/event-stream") {
        turn_away(gateway, TurnedAway::Headers);
        return plain(StatusCode::NOT_ACCEPTABLE, "Accept must list text/event-stream");
    }
    let session = match legacy_version(&visit.headers).and_then(|_| session(gateway, visit)) {
        Ok(session) => session,
        Err(refusal) => return refused(gateway, &refusal),
    };
    let stream = match gateway.open_stream(&session.caller()) {
        Ok(stream) => stream,
        Err(refusal) => return refused(gateway, &refusal),
    };
    match standing_stream(gateway, session, visit.headers.get(headers::LAST_EVENT)).await {
        Ok(Standing::Own(session)) => own(gateway, visit, &session, stream),
        Ok(Standing::Server(events)) => {
            respond(standing(gateway, Answer::Events { events, resumable: true }, stream, None))
        }
        Ok(Standing::Nothing(status)) if status.is_client_error() => plain(status, "the server offers no such stream"),
        Ok(Standing::Nothing(status)) => plain(status, "the server's stream cannot be used"),
        Err(refusal) => refused(gateway, &refusal),
    }
}

/// A stream of our own: news, or the rest of a stream that broke off.
fn own(
    gateway: &Gateway,
    visit: &Visit,
    session: &ClientSession,
    counted: impl Send + 'static,
) -> Response<AnswerBody> {
    let last = visit.headers.get(headers::LAST_EVENT).and_then(|id| id.to_str().ok());
    let place = last.map(StreamLog::parse_id);
    let reader = match place {
        None => session.stream(0).map(|log| log.attach(None)),
        Some(None) => None,
        // GATE-19: only streams of this very session are found.
        Some(Some((stream, event))) => match session.stream(stream) {
            // After an empty stream the TypeScript client would ask without the header, and hear all news twice.
            Some(log) if log.ends_with(event) => {
                return plain(StatusCode::METHOD_NOT_ALLOWED, "that stream has ended, and nothing of it is left");
            }
            log => log.map(|log| log.attach(Some(event.saturating_add(1)))),
        },
    };
    match reader {
        Some(reader) => {
            let events = Answer::Events { events: read_log(reader), resumable: true };
            respond(standing(gateway, events, counted, None))
        }
        None => plain(StatusCode::BAD_REQUEST, "no stream of this session has that event"),
    }
}

pub(crate) async fn delete(gateway: &Arc<Gateway>, visit: &Visit) -> Response<AnswerBody> {
    let session = match session(gateway, visit) {
        Ok(session) => session,
        Err(refusal) => return refused(gateway, &refusal),
    };
    let status = gateway.end_session(&session).await;
    let mut response = Response::new(AnswerBody::empty());
    *response.status_mut() = status;
    response
}
