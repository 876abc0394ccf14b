//! The stdio door: one client, one message per line, both eras on the same pipe.
//!
//! The connection is the session. Messages are handled at the same time; answers go out as they come.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::HeaderMap;
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use toolwarden_core::json::Limits;
use toolwarden_mcp::ladder::{check_meta, claimed_version};
use toolwarden_mcp::message::read;
use toolwarden_mcp::stdio::{LineReader, LineWriter};
use toolwarden_mcp::{Era, Incoming, Message, MessageError, Version};

use crate::answer::{self, Answer, Shape};
use crate::arrival::{Arrival, Credential, Scope, Via};
use crate::gateway::Gateway;
use crate::identify::identify;
use crate::pipeline::handle;
use crate::refusal::Refusal;
use crate::sessions::{ClientSession, Push};

const LINES_WAITING: usize = 1024;
const MOST_AT_ONCE: usize = 256;
/// How long calls, and then the last lines, may take at the end.
const GOODBYE: Duration = Duration::from_secs(2);

/// Why the door closed.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    #[error("no mode is called `{0}`; see `toolwarden modes list`")]
    UnknownMode(String),
    #[error("the client's pipe broke: {0}")]
    Pipe(String),
}

/// Serves one client until it closes its end.
///
/// # Errors
/// The mode is unknown, or a line is longer than the limit.
pub async fn serve(
    gateway: &Arc<Gateway>,
    scope: Scope,
    mode: Option<&str>,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
    stop: impl Future<Output = ()>,
) -> Result<(), StdioError> {
    let caller = identify(gateway, &Credential::Local, mode)
        .map_err(|_| StdioError::UnknownMode(mode.unwrap_or_default().to_owned()))?;
    let (lines, waiting) = mpsc::channel(LINES_WAITING);
    let writer = tokio::spawn(write(waiting, output));
    let push = Push::Lines(lines.clone());
    let session = Arc::new(ClientSession::new("stdio".to_owned(), caller, scope, push));
    let room = Arc::new(Semaphore::new(MOST_AT_ONCE));
    let mut reader = LineReader::new(input, gateway.settings.request_bytes);
    let mut calls = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    let ended = loop {
        while calls.try_join_next().is_some() {}
        let line = tokio::select! {
            line = reader.next_line() => line,
            () = &mut stop => break Ok(()),
        };
        let line = match line {
            Ok(Some(line)) => line,
            Ok(None) => break Ok(()),
            Err(error) => break Err(StdioError::Pipe(error.to_string())),
        };
        // A client that sends faster than its calls end waits here.
        let Ok(place) = room.clone().acquire_owned().await else { break Ok(()) };
        let in_order = arrive(gateway, &session, &line, &lines).await;
        if let Some(arrival) = in_order {
            let (gateway, lines) = (gateway.clone(), lines.clone());
            calls.spawn(async move {
                say(&lines, handle(&gateway, arrival).await).await;
                drop(place);
            });
        }
    };
    let goodbye = async { while calls.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GOODBYE, goodbye).await;
    // What still runs is given up, and says so in the journal before that is closed.
    calls.shutdown().await;
    session.leave().await;
    drop((lines, session));
    let _ = tokio::time::timeout(GOODBYE, writer).await;
    ended
}

/// Reads one line. Gives a message that may run beside others; whatever sets the order is done here.
async fn arrive(
    gateway: &Arc<Gateway>,
    session: &Arc<ClientSession>,
    line: &Bytes,
    lines: &mpsc::Sender<Bytes>,
) -> Option<Arrival> {
    let limits = Limits { bytes: gateway.settings.request_bytes, depth: gateway.settings.depth };
    let message = match read(line, limits) {
        Ok(Incoming::One(message)) => message,
        Ok(Incoming::Batch(_)) => {
            refuse(lines, None, &Refusal::Batch).await;
            return None;
        }
        Err(error) => {
            let id = MessageError::id(&error).cloned();
            refuse(lines, id, &Refusal::Malformed(error)).await;
            return None;
        }
    };
    let version = match version_of(session, &message) {
        Ok(version) => version,
        Err(refusal) => {
            let id = if let Message::Request(request) = &message { Some(request.id.clone()) } else { None };
            refuse(lines, id, &refusal).await;
            return None;
        }
    };
    let sets_order = match &message {
        Message::Request(request) => &*request.method == "initialize",
        Message::Notification(_) | Message::Response(_) => true,
    };
    let arrival = Arrival {
        via: Via::Stdio,
        scope: session.scope.clone(),
        caller: session.caller.clone(),
        message,
        size: line.len(),
        headers: Arc::new(HeaderMap::new()),
        session: Some(session.clone()),
        version,
    };
    if sets_order {
        say(lines, handle(gateway, arrival).await).await;
        return None;
    }
    Some(arrival)
}

fn version_of(session: &ClientSession, message: &Message) -> Result<Version, Refusal> {
    match message {
        Message::Request(request) if claimed_version(request.params.as_ref()).is_some() => {
            check_meta(request.params.as_ref()).map(|claims| claims.version).map_err(Refusal::Rung)
        }
        Message::Request(request) if session.agreed().is_none() && &*request.method == "server/discover" => {
            check_meta(request.params.as_ref()).map(|claims| claims.version).map_err(Refusal::Rung)
        }
        // Without `initialize` a pipe is modern: cancellations carry no claim.
        Message::Notification(_) if session.agreed().is_none() => Ok(Version::LATEST_MODERN),
        _ => Ok(session.version()),
    }
}

async fn refuse(lines: &mpsc::Sender<Bytes>, id: Option<toolwarden_mcp::Id>, refusal: &Refusal) {
    let shape = Shape { id, wants_answer: true, is_tool_call: false, era: Era::Modern };
    say(lines, answer::refuse(&shape, refusal)).await;
}

/// Writes an answer, message by message.
async fn say(lines: &mpsc::Sender<Bytes>, answer: Answer) {
    match answer {
        Answer::Accepted => {}
        Answer::Message(reply) => drop(lines.send(one_line(reply.body)).await),
        Answer::Body(body) => {
            if let Ok(whole) = body.collect().await {
                drop(lines.send(one_line(whole.to_bytes())).await);
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

async fn write(mut waiting: mpsc::Receiver<Bytes>, output: impl AsyncWrite + Unpin + Send) {
    let mut writer = LineWriter::new(output);
    let mut batch = Vec::new();
    while waiting.recv_many(&mut batch, 64).await > 0 {
        if writer.write_lines(batch.drain(..)).await.is_err() {
            return;
        }
    }
}
