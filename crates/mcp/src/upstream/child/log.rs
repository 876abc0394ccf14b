//! What a child writes to its error output, as log lines with the server's name.
//!
//! Lines are cut at a bound, control characters are escaped so that a server cannot forge log lines or drive a
//! terminal, and a server that writes without end is logged only so often. Until it has answered anything its lines
//! say why it does not start; later they may say what it was called with, and are for those who look closely.
//! Values of its environment are in none of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;
use toolwarden_core::Secret;
use toolwarden_core::name::shown;

/// Bytes of a line that are shown.
const SHOWN: usize = 2048;
/// Lines that are shown in each period.
const LINES: u32 = 200;
const SHORTEST_SECRET: usize = 6;
const PERIOD: Duration = Duration::from_secs(10);

/// Logs until the pipe closes.
pub(super) async fn read(mut pipe: impl AsyncRead + Unpin, writer: Writer) {
    let mut buffer = BytesMut::new();
    let mut rate = Rate::new(Instant::now());
    // The rest of a line that was already shown cut is passed over.
    let mut skipping = false;
    loop {
        buffer.reserve(SHOWN);
        let read = pipe.read_buf(&mut buffer).await.unwrap_or(0);
        loop {
            let end = memchr(b'\n', &buffer);
            if end.is_none() && buffer.len() < SHOWN && read > 0 {
                break;
            }
            let line = buffer.split_to(end.unwrap_or(buffer.len()));
            if !skipping && !line.trim_ascii().is_empty() {
                log(&writer, &line, &mut rate);
            }
            skipping = end.is_none();
            if skipping {
                break;
            }
            buffer.advance(1);
        }
        if read == 0 {
            return;
        }
    }
}

fn log(writer: &Writer, line: &[u8], rate: &mut Rate) {
    let (shown, unshown) = rate.count(Instant::now());
    let server = &*writer.server;
    if unshown > 0 {
        tracing::info!(target: "toolwarden::server", server, "{unshown} lines were not shown");
    }
    match (shown, writer.has_answered.load(Ordering::Relaxed)) {
        (true, false) => {
            let text = writer.readable(line);
            tracing::info!(target: "toolwarden::server", server, "{text}");
            *writer.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        }
        (true, true) => tracing::debug!(target: "toolwarden::server", server, "{}", writer.readable(line)),
        (false, _) => {}
    }
}

/// What a child wrote last.
pub(super) type LastLine = Arc<Mutex<Option<String>>>;

/// Who writes.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) server: Arc<str>,
    pub(super) has_answered: Arc<AtomicBool>,
    /// The last line before it answered anything.
    pub(super) last: LastLine,
    /// By name; what is this short is no secret, and stands in other words.
    pub(super) environment: Vec<(String, Secret)>,
}

impl Writer {
    /// The line as text, at most so long, without values of the environment. These go first: half of one is no
    /// longer found.
    fn readable(&self, line: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
        for (name, value) in &self.environment {
            let value = value.reveal_to_upstream();
            if value.len() >= SHORTEST_SECRET && text.contains(value) {
                text = text.replace(value, &format!("[{name}]"));
            }
        }
        if text.len() > SHOWN {
            text.truncate(text.floor_char_boundary(SHOWN));
            text.push_str(" ..");
        }
        shown(&text).into_owned()
    }
}

/// Counts lines in each period.
struct Rate {
    since: Instant,
    lines: u32,
}

impl Rate {
    fn new(now: Instant) -> Self {
        Self { since: now, lines: 0 }
    }

    /// Whether this line is shown, and how many of the last period were not.
    fn count(&mut self, now: Instant) -> (bool, u32) {
        let mut unshown = 0;
        if now.duration_since(self.since) >= PERIOD {
            unshown = self.lines.saturating_sub(LINES);
            *self = Self::new(now);
        }
        self.lines = self.lines.saturating_add(1);
        (self.lines <= LINES, unshown)
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
