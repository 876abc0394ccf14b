//! Messages of a client that come and go on one line each: over a pipe, or over the oldest HTTP transport.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::HeaderMap;
use tokio::sync::mpsc;
use toolwarden_conversations::sessions::ClientSession;
use toolwarden_gateway::{Answer, Arrival, Course, Gateway, Refusal, Room, Shape, Via, answer, handle};
use toolwarden_mcp::ladder::{check_meta, claimed_version};
use toolwarden_mcp::message::read;
use toolwarden_mcp::{Era, Incoming, Message, MessageError, Version};

use crate::observing::{turn_away, why};

/// Reads one line. Gives a message that may run beside others; whatever sets the order is done here.
pub(crate) async fn arrive(
    gateway: &Arc<Gateway>,
    session: &Arc<ClientSession>,
    via: Via,
    (line, room): (&Bytes, Option<Arc<Room>>),
    lines: &mpsc::Sender<Bytes>,
) -> Option<Arrival> {
    let message = match read(line, gateway.request_limits()) {
        Ok(Incoming::One(message)) => message,
        Ok(Incoming::Batch(_)) => {
            refuse(gateway, lines, None, &Refusal::Batch).await;
            return None;
        }
        Err(error) => {
            let id = MessageError::id(&error).cloned();
            refuse(gateway, lines, id, &Refusal::Malformed(error)).await;
            return None;
        }
    };
    let version = match version_of(session, via, &message) {
        Ok(version) => version,
        Err(refusal) => {
            let id = if let Message::Request(request) = &message { Some(request.id.clone()) } else { None };
            refuse(gateway, lines, id, &refusal).await;
            return None;
        }
    };
    let sets_order = match &message {
        Message::Request(request) => &*request.method == "initialize",
        Message::Notification(_) | Message::Response(_) => true,
    };
    let arrival = Arrival {
        via,
        scope: session.scope.clone(),
        caller: session.caller(),
        message,
        size: line.len(),
        headers: Arc::new(HeaderMap::new()),
        session: Some(session.clone()),
        version,
        course: Course::default(),
        room,
    };
    if sets_order {
        say(lines, handle(gateway, arrival).await).await;
        return None;
    }
    Some(arrival)
}

fn version_of(session: &ClientSession, via: Via, message: &Message) -> Result<Version, Refusal> {
    match message {
        // The oldest transport is older than claims.
        Message::Request(_) if via == Via::Events => Ok(session.version()),
        Message::Request(request) if claimed_version(request.params.as_ref()).is_some() => {
            check_meta(request.params.as_ref()).map(|claims| claims.version).map_err(Refusal::Rung)
        }
        Message::Request(request) if session.agreed().is_none() && &*request.method == "server/discover" => {
            check_meta(request.params.as_ref()).map(|claims| claims.version).map_err(Refusal::Rung)
        }
        // Without `initialize` a pipe is modern: cancellations carry no claim.
        Message::Notification(_) if session.agreed().is_none() && via == Via::Stdio => Ok(Version::LATEST_MODERN),
        _ => Ok(session.version()),
    }
}

async fn refuse(gateway: &Gateway, lines: &mpsc::Sender<Bytes>, id: Option<toolwarden_mcp::Id>, refusal: &Refusal) {
    turn_away(gateway, why(refusal));
    let shape = Shape { id, wants_answer: true, is_tool_call: false, era: Era::Modern };
    say(lines, answer::refuse(&shape, refusal)).await;
}

/// Writes an answer, message by message.
pub(crate) async fn say(lines: &mpsc::Sender<Bytes>, answer: Answer) {
    match answer {
        Answer::Accepted => {}
        Answer::Message(reply) => drop(lines.send(one_line(reply.body)).await),
        Answer::Body(body) => {
            if let Some(whole) = answer::gathered(body).await {
                drop(lines.send(one_line(whole)).await);
            }
        }
        Answer::Events { mut events, .. } => {
            while let Some(event) = events.next().await {
                if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                    drop(lines.send(one_line(data)).await);
                }
            }
        }
    }
}

/// A line break in JSON is white space between tokens; on a pipe it would end the message.
fn one_line(text: Bytes) -> Bytes {
    if !text.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return text;
    }
    let mut flat = BytesMut::from(&*text);
    flat.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    flat.freeze()
}
