//! What runs beside a child: one task writes its input, one reads its output, one its log, one waits for its end.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Child;
use tokio::sync::{mpsc, watch};

use super::group::Group;
use super::{ChildSpec, Exit, ExitCause, log};
use crate::stdio::{LineError, LineReader, LineWriter};

/// So many waiting messages are written at once.
const WRITTEN_AT_ONCE: usize = 256;
/// How long the last lines of a dead child may take to come through a pipe.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The tasks' ends of the channels.
pub(super) struct Ends {
    pub(super) queued: mpsc::Receiver<Bytes>,
    pub(super) lines: mpsc::Sender<Bytes>,
    pub(super) is_closing: watch::Receiver<bool>,
    pub(super) ended: watch::Sender<Option<Exit>>,
    pub(super) group: Arc<Group>,
    pub(super) last: log::LastLine,
}

pub(super) fn start(mut process: Child, spec: &ChildSpec, ends: Ends) {
    let Ends { queued, lines, is_closing, ended, group, last } = ends;
    let writer = process.stdin.take().map(|stdin| tokio::spawn(write(stdin, queued, is_closing)));
    let overlong = Arc::new(OnceLock::new());
    let has_answered = Arc::new(AtomicBool::new(false));
    if let Some(stdout) = process.stdout.take() {
        let reader = LineReader::new(stdout, spec.limits.max_line_bytes);
        let (group, overlong, exit) = (group.clone(), overlong.clone(), ended.subscribe());
        let answers = has_answered.clone();
        tokio::spawn(async move {
            if let Some(limit) = read(reader, lines, exit, &answers).await {
                // Set before the kill, so that whoever sees the end sees why.
                let _ = overlong.set(ExitCause::LineTooLong { limit });
                group.kill();
            }
        });
    }
    let writer_of_log = log::Writer {
        server: spec.server.clone(),
        has_answered,
        last,
        environment: spec.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
    };
    let logger = process.stderr.take().map(|stderr| tokio::spawn(log::read(stderr, writer_of_log)));
    tokio::spawn(async move {
        let status = process.wait().await;
        group.kill_rest();
        if let Some(writer) = writer {
            writer.abort();
        }
        // Its last words say why it ended.
        if let Some(mut logger) = logger
            && tokio::time::timeout(LAST_WORDS, &mut logger).await.is_err()
        {
            logger.abort();
        }
        let cause = overlong.get().copied().unwrap_or_else(|| status.map_or(ExitCause::Unknown, cause_of));
        ended.send_replace(Some(Exit { cause }));
    });
}

fn cause_of(status: ExitStatus) -> ExitCause {
    let signal = status.signal().map(ExitCause::Signal);
    status.code().map(ExitCause::Status).or(signal).unwrap_or(ExitCause::Unknown)
}

/// Writes queued messages until the child is to end; then closes its input.
async fn write(
    stdin: impl AsyncWrite + Unpin,
    mut queued: mpsc::Receiver<Bytes>,
    mut is_closing: watch::Receiver<bool>,
) {
    let mut writer = LineWriter::new(stdin);
    let mut batch = Vec::with_capacity(WRITTEN_AT_ONCE);
    loop {
        let count = tokio::select! {
            biased;
            count = queued.recv_many(&mut batch, WRITTEN_AT_ONCE) => count,
            () = until_closing(&mut is_closing), if !queued.is_closed() => {
                // What was accepted before is still written.
                queued.close();
                continue;
            }
        };
        if count == 0 || writer.write_lines(batch.drain(..)).await.is_err() {
            return;
        }
    }
}

async fn until_closing(is_closing: &mut watch::Receiver<bool>) {
    // An owner that is gone wants the same.
    let _ = is_closing.wait_for(|closing| *closing).await;
}

/// Passes lines on until the pipe closes, and as long as anybody listens. Gives the limit if a line was over it.
async fn read(
    mut reader: LineReader<impl AsyncRead + Unpin>,
    lines: mpsc::Sender<Bytes>,
    mut exit: watch::Receiver<Option<Exit>>,
    has_answered: &AtomicBool,
) -> Option<usize> {
    let mut has_ended = false;
    loop {
        let line = if has_ended {
            // What a dead child wrote is there at once; only a process that left its group could hold the pipe open.
            tokio::time::timeout(LAST_WORDS, reader.next_line()).await.unwrap_or(Ok(None))
        } else {
            tokio::select! {
                biased;
                line = reader.next_line() => line,
                () = until_ended(&mut exit) => {
                    has_ended = true;
                    continue;
                }
            }
        };
        match line {
            Ok(Some(line)) => {
                has_answered.store(true, Ordering::Relaxed);
                lines.send(line).await.ok()?;
            }
            Ok(None) | Err(LineError::Io(_)) => return None,
            Err(LineError::TooLong { limit }) => return Some(limit),
        }
    }
}

async fn until_ended(exit: &mut watch::Receiver<Option<Exit>>) {
    let _ = exit.wait_for(Option::is_some).await;
}
