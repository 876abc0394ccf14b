//! POST: read the body, tell the era, find the session, hand each message to the corridor.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, StreamExt};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use toolwarden_conversations::sessions::ClientSession;
use toolwarden_core::{Weakness, weak};
use toolwarden_gateway::{Answer, Arrival, Course, Events, Full, Gateway, Refusal, Room, Shape, Via, answer, handle};
use toolwarden_mcp::ladder::{self, era_of};
use toolwarden_mcp::message::read;
use toolwarden_mcp::sse::Event;
use toolwarden_mcp::{Era, Incoming, Message, MessageError, Version, headers};
use toolwarden_telemetry::TurnedAway;

use crate::body::AnswerBody;
use crate::http::{Visit, legacy_version, plain, refused, respond};
use crate::news::walk;
use crate::observing::{turn_away, why};

/// How long a client may take to send its body.
const BODY_TIME: Duration = Duration::from_secs(30);

pub(crate) async fn post<B>(gateway: &Arc<Gateway>, visit: Visit, body: B) -> Response<AnswerBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if let Err((status, text)) = acceptable(&visit.headers) {
        turn_away(gateway, TurnedAway::Headers);
        return plain(status, text);
    }
    let limits = gateway.request_limits();
    let mut room = gateway.body_room(&visit.caller);
    let bytes = match collected(&visit.headers, body, limits.bytes, Some(&mut room)).await {
        Ok(bytes) => bytes,
        Err((status, text)) => {
            turn_away(gateway, TurnedAway::Body);
            return not_taken(status, text);
        }
    };
    if let Err((status, text)) = room.weigh(&bytes).map_err(full) {
        turn_away(gateway, TurnedAway::Body);
        return not_taken(status, text);
    }
    let body = Weight { size: bytes.len(), room: Arc::new(room) };
    match read(&bytes, limits) {
        Ok(Incoming::One(message)) => one(gateway, visit, message, body).await,
        Ok(Incoming::Batch(messages)) => batch(gateway, &visit, messages, body).await,
        Err(error) => malformed(gateway, error),
    }
}

/// What a body takes, for as long as its messages are on their way.
struct Weight {
    size: usize,
    room: Arc<Room>,
}

/// The whole body, if it comes in time and is not too large.
pub(crate) async fn collected<B>(
    headers: &HeaderMap,
    body: B,
    limit: usize,
    room: Option<&mut Room>,
) -> Result<Bytes, (StatusCode, &'static str)>
where
    B: Body<Data = Bytes> + Send + Unpin,
{
    let late = (StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
    tokio::time::timeout(BODY_TIME, collect(headers, body, weak::limit(limit), room)).await.unwrap_or(Err(late))
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json") || weak::is(Weakness::Ladder)
}

fn acceptable(headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
    if !is_json(headers) {
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json"));
    }
    if accepts(headers, "application/json") && accepts(headers, "text/event-stream") {
        return Ok(());
    }
    Err((StatusCode::NOT_ACCEPTABLE, "Accept must list application/json and text/event-stream"))
}

pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let lists = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let family = kind.split('/').next().unwrap_or_default();
    lists.flat_map(|list| list.split(',')).any(|offer| {
        let offer = offer.split(';').next().unwrap_or_default().trim();
        offer.eq_ignore_ascii_case(kind)
            || offer == "*/*"
            || offer.strip_suffix("/*").is_some_and(|start| start.eq_ignore_ascii_case(family))
    })
}

/// The answer to a body that was not taken; where others are in the way, it says when to come back.
pub(crate) fn not_taken(status: StatusCode, text: &str) -> Response<AnswerBody> {
    let mut response = plain(status, text);
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

pub(crate) fn full(full: Full) -> (StatusCode, &'static str) {
    match full {
        Full::Caller => (StatusCode::TOO_MANY_REQUESTS, "too many large requests of this caller are on their way"),
        Full::Everybody => (StatusCode::SERVICE_UNAVAILABLE, "too many large requests are on their way"),
    }
}

async fn collect<B>(
    headers: &HeaderMap,
    mut body: B,
    limit: usize,
    mut room: Option<&mut Room>,
) -> Result<Bytes, (StatusCode, &'static str)>
where
    B: Body<Data = Bytes> + Send + Unpin,
{
    let too_large =
        (StatusCode::PAYLOAD_TOO_LARGE, "the request is larger than the limit (`request_bytes` of the gateway)");
    let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limit) {
        return Err(too_large);
    }
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err((StatusCode::BAD_REQUEST, "the body broke off")) };
        let Ok(data) = frame.into_data() else { continue };
        if rest.len() + first.as_ref().map_or(0, Bytes::len) + data.len() > limit {
            return Err(too_large);
        }
        if let Some(room) = room.as_deref_mut() {
            room.take(data.len()).map_err(full)?;
        }
        match &first {
            // Most bodies come in one piece, which needs no copy.
            None => first = Some(data),
            Some(_) => rest.extend_from_slice(&data),
        }
    }
    let first = first.unwrap_or_default();
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok(whole.freeze())
}

fn malformed(gateway: &Gateway, error: MessageError) -> Response<AnswerBody> {
    turn_away(gateway, TurnedAway::Malformed);
    let shape = Shape { id: error.id().cloned(), wants_answer: true, is_tool_call: false, era: Era::Legacy };
    respond(answer::refuse(&shape, &Refusal::Malformed(error)))
}

async fn one(gateway: &Arc<Gateway>, visit: Visit, message: Message, body: Weight) -> Response<AnswerBody> {
    let placed = match &message {
        Message::Request(request) if era_of(&visit.headers, request.params.as_ref()) == Era::Modern => {
            modern(&visit, &message)
        }
        Message::Notification(news) if era_of(&visit.headers, news.params.as_ref()) == Era::Modern => {
            Ok((Version::LATEST_MODERN, None))
        }
        _ => legacy(gateway, &visit, &message),
    };
    let (version, session) = match placed {
        Ok(placed) => placed,
        Err(refusal) => return refuse(gateway, &message, &visit, &refusal),
    };
    let answer = walk(gateway, arrival(&visit, message, &body, version, session.clone())).await;
    respond(resumable(answer, session))
}

fn arrival(
    visit: &Visit,
    message: Message,
    body: &Weight,
    version: Version,
    session: Option<Arc<ClientSession>>,
) -> Arrival {
    Arrival {
        via: Via::Http,
        scope: visit.scope.clone(),
        caller: session.as_ref().map_or_else(|| visit.caller.clone(), |session| session.caller()),
        message,
        size: body.size,
        headers: visit.headers.clone(),
        session,
        version,
        course: Course::default(),
        room: Some(body.room.clone()),
    }
}

type Placed = (Version, Option<Arc<ClientSession>>);

fn modern(visit: &Visit, message: &Message) -> Result<Placed, Refusal> {
    let Message::Request(request) = message else { return Ok((Version::LATEST_MODERN, None)) };
    let claims = ladder::check(&visit.headers, request).map_err(Refusal::Rung)?;
    Ok((claims.version, None))
}

fn legacy(gateway: &Gateway, visit: &Visit, message: &Message) -> Result<Placed, Refusal> {
    legacy_version(&visit.headers)?;
    if let Message::Request(request) = message
        && &*request.method == "initialize"
    {
        return Ok((Version::LATEST_LEGACY, None));
    }
    let session = session(gateway, visit)?;
    Ok((session.version(), Some(session)))
}

pub(crate) fn session(gateway: &Gateway, visit: &Visit) -> Result<Arc<ClientSession>, Refusal> {
    match headers::single(&visit.headers, &headers::SESSION) {
        headers::Single::Absent => Err(Refusal::SessionMissing),
        headers::Single::Unusable => Err(Refusal::SessionGone),
        headers::Single::One(id) => gateway.find_session(id, &visit.caller, &visit.scope),
    }
}

fn refuse(gateway: &Gateway, message: &Message, visit: &Visit, refusal: &Refusal) -> Response<AnswerBody> {
    turn_away(gateway, why(refusal));
    let (id, params) = match message {
        Message::Request(request) => (Some(request.id.clone()), request.params.as_ref()),
        Message::Notification(_) | Message::Response(_) => (None, None),
    };
    let era = era_of(&visit.headers, params);
    respond(answer::refuse(&Shape { id, wants_answer: true, is_tool_call: false, era }, refusal))
}

/// A legacy client can come back for the rest of a stream, so it is kept apart from its connection.
fn resumable(answer: Answer, session: Option<Arc<ClientSession>>) -> Answer {
    let (mut events, session) = match (answer, session) {
        (Answer::Events { events, resumable: false }, Some(session)) => (events, session),
        (answer, _) => return answer,
    };
    let log = session.open_stream();
    let reader = log.attach(Some(0));
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if let Some(data) = event.data {
                log.append(data).await;
            }
        }
        log.close();
    });
    Answer::Events { events: read_log(reader), resumable: true }
}

/// The events of a kept stream, with ids to resume by.
pub(crate) fn read_log(reader: toolwarden_conversations::stream_log::LogReader) -> Events {
    Box::pin(stream::unfold(reader, |mut reader| async move {
        let (id, data) = reader.next().await?;
        Some((Event { id: Some(Bytes::from(id)), ..Event::of(data) }, reader))
    }))
}

/// 2025-03-26 only: each member walks the corridor by itself.
async fn batch(
    gateway: &Arc<Gateway>,
    visit: &Visit,
    messages: Vec<Result<Message, MessageError>>,
    body: Weight,
) -> Response<AnswerBody> {
    let session = match session(gateway, visit) {
        Ok(session) if session.version() == Version::V2025_03_26 || weak::is(Weakness::Ladder) => session,
        Ok(_) => return refused(gateway, &Refusal::Batch),
        Err(Refusal::SessionMissing) => return refused(gateway, &Refusal::Batch),
        Err(refusal) => return refused(gateway, &refusal),
    };
    let body = &body;
    let members = messages.into_iter().map(|message| {
        let session = session.clone();
        async move {
            let message = match message {
                Ok(message) => message,
                Err(error) => {
                    turn_away(gateway, TurnedAway::Malformed);
                    let id = error.id().cloned();
                    let shape = Shape { id, wants_answer: true, is_tool_call: false, era: Era::Legacy };
                    return last_message(answer::refuse(&shape, &Refusal::Malformed(error))).await;
                }
            };
            let version = session.version();
            last_message(handle(gateway, arrival(visit, message, body, version, Some(session))).await).await
        }
    });
    let answers: Vec<Bytes> = stream::iter(members).buffered(16).filter_map(|bytes| async { bytes }).collect().await;
    if answers.is_empty() {
        return respond(Answer::Accepted);
    }
    let mut text = BytesMut::from("[");
    for (index, answer) in answers.iter().enumerate() {
        text.extend_from_slice(if index == 0 { b"" } else { b"," });
        text.extend_from_slice(answer);
    }
    text.extend_from_slice(b"]");
    respond(Answer::message(text.freeze()))
}

/// The response of an answer; what came before it is not part of a batch.
async fn last_message(answer: Answer) -> Option<Bytes> {
    match answer {
        Answer::Accepted => None,
        Answer::Message(reply) => Some(reply.body),
        Answer::Body(body) => answer::gathered(body).await,
        Answer::Events { mut events, .. } => {
            let mut last = None;
            while let Some(event) = events.next().await {
                last = event.data.or(last);
            }
            last
        }
    }
}
