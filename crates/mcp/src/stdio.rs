//! Messages as lines: bounded, newline-delimited framing for a child's pipes and for our own.
//!
//! The reader gives one `Bytes` for each line that is not empty, without copying; it refuses a line over its bound.
//! The writer takes queued messages and writes as many as are waiting at once.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use memchr::{memchr, memchr2};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use toolwarden_core::weak;

/// What a pipe holds on Linux: reading less at a time costs calls, reading more gives nothing.
const READ_SIZE: usize = 64 * 1024;
/// Small messages are joined up to this size before they are written.
const WRITE_SIZE: usize = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("a line is longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error("the pipe failed: {0}")]
    Io(#[from] io::Error),
}

/// Reads lines.
#[derive(Debug)]
pub struct LineReader<R> {
    reader: R,
    limit: usize,
    buffer: BytesMut,
    /// So much of the buffer holds no line end; it is not searched again.
    searched: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(reader: R, max_line_bytes: usize) -> Self {
        Self { reader, limit: weak::limit(max_line_bytes), buffer: BytesMut::new(), searched: 0 }
    }

    /// The next line without its end; none at the end of the stream. Losing the future loses no bytes.
    ///
    /// # Errors
    /// The line is longer than the bound, or the pipe failed.
    pub async fn next_line(&mut self) -> Result<Option<Bytes>, LineError> {
        loop {
            if let Some(line) = self.buffered_line()? {
                return Ok(Some(line));
            }
            // Asking for the whole size every time would take a new block for each small message.
            if self.buffer.capacity() - self.buffer.len() < READ_SIZE / 8 {
                self.buffer.reserve(READ_SIZE);
            }
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                // A last line without an end is still a message.
                self.searched = 0;
                return Ok(without_return(self.buffer.split()));
            }
        }
    }

    /// A line that has already been read, if there is one.
    ///
    /// # Errors
    /// The line is longer than the bound.
    pub fn buffered_line(&mut self) -> Result<Option<Bytes>, LineError> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            let end = memchr(b'\n', unsearched).map(|end| self.searched + end);
            if end.unwrap_or(self.buffer.len()) > self.limit {
                (self.buffer, self.searched) = (BytesMut::new(), 0);
                return Err(LineError::TooLong { limit: self.limit });
            }
            let Some(end) = end else {
                self.searched = self.buffer.len();
                return Ok(None);
            };
            let line = self.buffer.split_to(end);
            self.buffer.advance(1);
            self.searched = 0;
            if let Some(line) = without_return(line) {
                return Ok(Some(line));
            }
        }
    }
}

/// The line, if there is anything on it.
fn without_return(mut line: BytesMut) -> Option<Bytes> {
    if line.last() == Some(&b'\r') {
        line.truncate(line.len() - 1);
    }
    (!line.is_empty()).then(|| line.freeze())
}

/// Writes messages as lines.
#[derive(Debug)]
pub struct LineWriter<W> {
    writer: W,
    joined: BytesMut,
}

impl<W: AsyncWrite + Unpin> LineWriter<W> {
    pub fn new(writer: W) -> Self {
        Self { writer, joined: BytesMut::new() }
    }

    /// Writes messages, small ones joined into one write, and flushes.
    ///
    /// # Errors
    /// The pipe is closed or failed.
    pub async fn write_lines(&mut self, messages: impl IntoIterator<Item = Bytes>) -> io::Result<()> {
        for message in messages {
            let message = on_one_line(message);
            if message.len() >= WRITE_SIZE {
                self.write_joined().await?;
                self.writer.write_all_buf(&mut message.chain(&b"\n"[..])).await?;
                continue;
            }
            if self.joined.len() + message.len() >= WRITE_SIZE {
                self.write_joined().await?;
            }
            self.joined.reserve(message.len() + 1);
            self.joined.put(message);
            self.joined.put_u8(b'\n');
        }
        self.write_joined().await?;
        self.writer.flush().await
    }

    async fn write_joined(&mut self) -> io::Result<()> {
        let result = self.writer.write_all(&self.joined).await;
        self.joined.clear();
        result
    }
}

/// JSON has line ends only between its tokens, where a space means the same; a server that indents its answers
/// would otherwise be torn into several messages.
fn on_one_line(message: Bytes) -> Bytes {
    if memchr2(b'\n', b'\r', &message).is_none() {
        return message;
    }
    let replace = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    message.iter().map(replace).collect()
}

#[cfg(test)]
#[path = "stdio_tests.rs"]
mod tests;
