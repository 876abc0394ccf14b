//! A conversation in lines with one client, for stdio and for the oldest HTTP transport.
//!
//! Lines go through the gate of the era, then over a pipe to rmcp; what either of them answers comes out as lines.

use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::Fixture;
use crate::era::lines::{Gate, Passage};
use crate::handler::Shared;

/// So many bytes wait in a pipe.
const PIPE: usize = 64 * 1024;
/// So many lines wait on each side.
const QUEUE: usize = 16;

/// Both ends of a conversation. Dropping `input` ends it; `output` ends after the last line.
#[derive(Debug)]
pub struct Lines {
    pub input: mpsc::Sender<Vec<u8>>,
    pub output: mpsc::Receiver<Vec<u8>>,
    /// How it ended.
    pub end: JoinHandle<anyhow::Result<()>>,
}

/// Begins a conversation. `listen` may wrap what rmcp reads from.
pub fn converse<R>(shared: Arc<Shared>, listen: impl FnOnce(DuplexStream) -> R) -> Lines
where
    R: AsyncRead + Send + Unpin + 'static,
{
    let (to_server, from_client) = duplex(PIPE);
    let (to_client, from_server) = duplex(PIPE);
    let (input, lines) = mpsc::channel(QUEUE);
    let (answers, output) = mpsc::channel(QUEUE);
    let inbound = tokio::spawn(carry_in(lines, Gate::new(shared.era), to_server, answers.clone()));
    tokio::spawn(carry_out(from_server, answers));
    let streams = (listen(from_client), to_client);
    let end = tokio::spawn(async move {
        let served = serve(shared, streams).await;
        // It holds on to the answers as long as the client may send.
        inbound.abort();
        served
    });
    Lines { input, output, end }
}

async fn serve<R, W>(shared: Arc<Shared>, streams: (R, W)) -> anyhow::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    match Fixture::new(shared).serve(streams).await {
        Ok(service) => drop(service.waiting().await?),
        // A client that only looked at what there is, and left.
        Err(ServerInitializeError::ConnectionClosed(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

async fn carry_in(
    mut lines: mpsc::Receiver<Vec<u8>>,
    mut gate: Gate,
    mut server: DuplexStream,
    answers: mpsc::Sender<Vec<u8>>,
) {
    while let Some(line) = lines.recv().await {
        let is_done = match gate.judge(&line) {
            Passage::Through => server.write_all(&line).await.is_ok() && server.write_all(b"\n").await.is_ok(),
            Passage::Nowhere => true,
            Passage::Answered(answer) => answers.send(answer.into_bytes()).await.is_ok(),
        };
        if !is_done {
            return;
        }
    }
}

async fn carry_out(server: DuplexStream, answers: mpsc::Sender<Vec<u8>>) {
    let mut lines = BufReader::new(server).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        if answers.send(line).await.is_err() {
            return;
        }
    }
}
