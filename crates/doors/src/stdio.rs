//! The stdio door: one client, one message per line, both eras on the same pipe.
//!
//! The connection is the session. Messages are handled at the same time; answers go out as they come.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toolwarden_conversations::Scope;
use toolwarden_conversations::sessions::Push;
use toolwarden_core::Reason;
use toolwarden_gateway::{Credential, Gateway, Refusal, Via, identify};
use toolwarden_mcp::stdio::{LineReader, LineWriter};

use crate::lines::{arrive, say};
use crate::news::walk;

const LINES_WAITING: usize = 1024;
const MOST_WAITING: usize = 4096;
/// How long calls may take after the client closed its end, and the last lines after that.
const GOODBYE: Duration = Duration::from_secs(2);

/// Why the door closed.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    #[error("no mode is called `{0}`; see `toolwarden modes list`")]
    UnknownMode(String),
    #[error("{0}")]
    Unauthorized(&'static str),
    #[error("the client's pipe broke: {0}")]
    Pipe(String),
}

/// Who is at the other end, and what for.
#[derive(Debug)]
pub struct Client<'a> {
    pub scope: Scope,
    pub credential: &'a Credential,
    pub mode: Option<&'a str>,
}

/// Nothing changes but by this process.
pub fn nothing_to_catch_up() -> std::future::Ready<()> {
    std::future::ready(())
}

/// Serves one client until it closes its end. Before each message, `catch_up` takes over what other processes changed.
///
/// # Errors
/// The credential is not good, the mode is unknown, or a line is longer than the limit.
pub async fn serve<F: Future<Output = ()> + Send + 'static>(
    gateway: &Arc<Gateway>,
    Client { scope, credential, mode }: Client<'_>,
    (input, output): (impl AsyncRead + Unpin + Send, impl AsyncWrite + Unpin + Send + 'static),
    stop: impl Future<Output = ()>,
    catch_up: impl Fn() -> F,
) -> Result<(), StdioError> {
    let caller = identify(gateway, credential, mode).map_err(|refusal| match refusal {
        Refusal::Unauthorized(why) => StdioError::Unauthorized(why),
        Refusal::TooManyGuesses => StdioError::Unauthorized("the credential is not known here"),
        Refusal::Unverified => StdioError::Unauthorized(Reason::CredentialUnverified.sentence()),
        _ => StdioError::UnknownMode(mode.unwrap_or_default().to_owned()),
    })?;
    let (lines, waiting) = mpsc::channel(LINES_WAITING);
    let writer = tokio::spawn(write(waiting, output));
    let push = Push::Lines(lines.clone());
    let session = gateway.line_session(caller, scope, push);
    let mut reader = LineReader::new(input, gateway.request_limits().bytes);
    let mut calls = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    // A client that closed its end does not wait for long; one that is not told of the end may.
    let mut patience = GOODBYE;
    let ended = loop {
        while calls.try_join_next().is_some() {}
        let line = tokio::select! {
            line = reader.next_line() => line,
            () = &mut stop => {
                patience = gateway.settings().grace;
                break Ok(());
            }
        };
        let line = match line {
            Ok(Some(line)) => line,
            Ok(None) => break Ok(()),
            Err(error) => break Err(StdioError::Pipe(error.to_string())),
        };
        let in_order = arrive(gateway, &session, Via::Stdio, (&line, None), &lines).await;
        if let Some(arrival) = in_order {
            // A client that sends far more than ends waits here; answers and cancellations are past it.
            while calls.len() >= MOST_WAITING {
                let _ = calls.join_next().await;
            }
            let room = session.room();
            let (gateway, lines) = (gateway.clone(), lines.clone());
            let caught_up = catch_up();
            calls.spawn(async move {
                let place = room.acquire_owned().await;
                caught_up.await;
                say(&lines, walk(&gateway, arrival).await).await;
                drop(place);
            });
        }
    };
    gateway.closing().begin();
    let goodbye = async { while calls.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(patience, goodbye).await;
    // What still runs is given up, and says so in the journal before that is closed.
    calls.shutdown().await;
    session.leave().await;
    drop((lines, session));
    let _ = tokio::time::timeout(GOODBYE, writer).await;
    ended
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
