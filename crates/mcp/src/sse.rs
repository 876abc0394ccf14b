//! Server-Sent Events: a bounded, incremental decoder by the WHATWG rules, and an encoder.
//!
//! The decoder takes chunks cut anywhere and gives events and comments; data is a slice of the chunk where it
//! stands in one piece. It refuses an event larger than its bound, before holding more than the bound.
//! The encoder writes one event; it refuses an id or a name that would not read back the same.

use bytes::{BufMut, Bytes, BytesMut};
use memchr::memchr2;
use toolwarden_core::weak;

/// One block of fields. A block without data is no event for a browser, but its id and delay count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    pub id: Option<Bytes>,
    pub name: Option<Bytes>,
    /// The data lines joined by line feeds; none if the block had no data line.
    pub data: Option<Bytes>,
    /// The reconnection time in milliseconds.
    pub retry: Option<u64>,
}

impl Event {
    /// An event that carries a message and nothing else.
    #[must_use]
    pub fn of(data: Bytes) -> Self {
        Self { data: Some(data), ..Self::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    Event(Event),
    /// A comment line, sent to keep the stream alive.
    Comment(Bytes),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    #[error("an event of the stream is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the id or name of an event contains a line break or a zero byte")]
    Unencodable,
}

/// Reads a stream: `feed` a chunk, then call `next` until it gives none.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    chunk: Bytes,
    /// The beginning of a line whose end has not arrived.
    line: BytesMut,
    /// A carriage return ended the last line: a line feed right after it belongs to it.
    after_return: bool,
    at_start: bool,
    event: Event,
    data: Data,
    has_fields: bool,
    failed: bool,
}

/// Data lines so far. One line stays a slice; only a second one makes a copy.
#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    One(Bytes),
    Many(BytesMut),
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(line) => line.len(),
            Self::Many(lines) => lines.len(),
        }
    }

    fn push(&mut self, line: Bytes) {
        let mut lines = match std::mem::take(self) {
            Self::None => {
                *self = Self::One(line);
                return;
            }
            Self::One(first) => BytesMut::from(first),
            Self::Many(lines) => lines,
        };
        lines.reserve(line.len() + 1);
        lines.put_u8(b'\n');
        lines.put(line);
        *self = Self::Many(lines);
    }

    fn take(&mut self) -> Option<Bytes> {
        match std::mem::take(self) {
            Self::None => None,
            Self::One(line) => Some(line),
            Self::Many(lines) => Some(lines.freeze()),
        }
    }
}

impl Decoder {
    #[must_use]
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            limit: weak::limit(max_event_bytes),
            chunk: Bytes::new(),
            line: BytesMut::new(),
            after_return: false,
            at_start: true,
            event: Event::default(),
            data: Data::None,
            has_fields: false,
            failed: false,
        }
    }

    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, chunk: Bytes) {
        if self.chunk.is_empty() {
            self.chunk = chunk;
        } else {
            let mut joined = BytesMut::from(std::mem::take(&mut self.chunk));
            joined.put(chunk);
            self.chunk = joined.freeze();
        }
    }

    /// The next event or comment of what was fed, or none if more bytes are needed.
    ///
    /// # Errors
    /// An event or a line is larger than the bound; the decoder gives nothing but this error from then on.
    #[expect(clippy::should_implement_trait, reason = "an iterator that ends and goes on after a feed would mislead")]
    pub fn next(&mut self) -> Result<Option<Item>, SseError> {
        let too_large = SseError::TooLarge { limit: self.limit };
        while !self.failed {
            match self.next_line() {
                Ok(None) => return Ok(None),
                Ok(Some(line)) => {
                    if let Some(item) = self.accept(&line) {
                        return Ok(Some(item));
                    }
                }
                Err(()) => self.failed = true,
            }
            self.failed = self.failed || self.data.len() > self.limit;
        }
        (self.chunk, self.line, self.data) = (Bytes::new(), BytesMut::new(), Data::None);
        Err(too_large)
    }

    /// Takes one whole line from what was fed, without its end.
    fn next_line(&mut self) -> Result<Option<Bytes>, ()> {
        if self.after_return && !self.chunk.is_empty() {
            self.after_return = false;
            if self.chunk.first() == Some(&b'\n') {
                let _ = self.chunk.split_to(1);
            }
        }
        let end = memchr2(b'\n', b'\r', &self.chunk);
        let length = self.line.len() + end.unwrap_or(self.chunk.len());
        // Data gathered so far counts with the line that would join it.
        if length.saturating_add(self.data.len()) > self.limit.saturating_add(FIELD_ROOM) {
            return Err(());
        }
        let Some(end) = end else {
            self.line.extend_from_slice(&self.chunk);
            self.chunk = Bytes::new();
            return Ok(None);
        };
        let mut line = self.chunk.split_to(end);
        self.after_return = self.chunk.split_to(1).first() == Some(&b'\r');
        if !self.line.is_empty() {
            self.line.extend_from_slice(&line);
            line = self.line.split().freeze();
        }
        if std::mem::take(&mut self.at_start) && line.starts_with(BYTE_ORDER_MARK) {
            line = line.split_off(BYTE_ORDER_MARK.len());
        }
        Ok(Some(line))
    }

    fn accept(&mut self, line: &Bytes) -> Option<Item> {
        if line.is_empty() {
            return self.dispatch().map(Item::Event);
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                let value = line.slice(colon + 1..);
                let spaces = usize::from(value.first() == Some(&b' '));
                (line.slice(..colon), value.slice(spaces..))
            }
            None => (line.clone(), Bytes::new()),
        };
        match &*field {
            b"" => return Some(Item::Comment(value)),
            b"data" => self.data.push(value),
            b"event" => self.event.name = Some(value),
            b"id" if !value.contains(&0) => self.event.id = Some(value),
            b"retry" => match decimal(&value) {
                Some(time) => self.event.retry = Some(time),
                None => return None,
            },
            _ => return None,
        }
        self.has_fields = true;
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        if !std::mem::take(&mut self.has_fields) {
            return None;
        }
        let mut event = std::mem::take(&mut self.event);
        event.data = self.data.take();
        Some(event)
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Room on a line for what is not data: the mark, the field's name, the colon and the space.
const FIELD_ROOM: usize = 16;

fn decimal(text: &[u8]) -> Option<u64> {
    let digits = text.iter().all(u8::is_ascii_digit);
    digits.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

/// Appends one event, its closing empty line included.
///
/// # Errors
/// The id or the name cannot be written on one line; nothing was appended.
pub fn encode(event: &Event, out: &mut BytesMut) -> Result<(), SseError> {
    let one_line = |text: &Option<Bytes>| text.as_ref().is_none_or(|text| memchr2(b'\n', b'\r', text).is_none());
    if !one_line(&event.id) || !one_line(&event.name) || event.id.as_ref().is_some_and(|id| id.contains(&0)) {
        return Err(SseError::Unencodable);
    }
    out.reserve(64 + event.data.as_ref().map_or(0, Bytes::len));
    if let Some(name) = &event.name {
        put_field(out, b"event: ", name);
    }
    if let Some(id) = &event.id {
        put_field(out, b"id: ", id);
    }
    if let Some(retry) = event.retry {
        put_field(out, b"retry: ", retry.to_string().as_bytes());
    }
    if let Some(data) = &event.data {
        put_lines(out, b"data: ", data);
    }
    out.put_u8(b'\n');
    Ok(())
}

/// Appends a comment, which readers ignore; it keeps the stream alive.
pub fn encode_comment(text: &[u8], out: &mut BytesMut) {
    put_lines(out, b": ", text);
    out.put_u8(b'\n');
}

fn put_field(out: &mut BytesMut, start: &[u8], text: &[u8]) {
    out.put_slice(start);
    out.put_slice(text);
    out.put_u8(b'\n');
}

/// One line for each line of the text, so that no byte of it can pass for a field.
fn put_lines(out: &mut BytesMut, start: &[u8], text: &[u8]) {
    let mut rest = text;
    while let Some(end) = memchr2(b'\n', b'\r', rest) {
        let (line, after) = rest.split_at(end);
        put_field(out, start, line);
        let ending = if after.starts_with(b"\r\n") { 2 } else { 1 };
        rest = after.get(ending..).unwrap_or_default();
    }
    put_field(out, start, rest);
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
