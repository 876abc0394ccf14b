//! A look at the brackets before a foreign parser sees the text.
//!
//! Takes text; refuses nesting or counts that could exhaust a recursive parser's stack or memory.
//! It may count too much in broken texts, never too little in well-formed ones.

use toolwarden_core::weak;

use super::{DEEPEST, MOST_NODES};

/// What was exceeded, and at which byte.
pub(super) struct Exceeded {
    pub(super) offset: usize,
    pub(super) code: &'static str,
    pub(super) message: &'static str,
}

const TOO_DEEP: (&str, &str) = ("too_deep", "nested deeper than 64 levels");
const TOO_MANY: (&str, &str) = ("too_many_values", "the file holds more than 200000 values");

struct Count {
    depth: usize,
    separators: usize,
}

impl Count {
    fn new() -> Self {
        Self { depth: 0, separators: 0 }
    }

    fn open(&mut self, offset: usize) -> Result<(), Exceeded> {
        self.depth += 1;
        if self.depth > weak::limit(DEEPEST) { Err(exceeded(offset, TOO_DEEP)) } else { self.separate(offset) }
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn separate(&mut self, offset: usize) -> Result<(), Exceeded> {
        self.separators += 1;
        if self.separators > weak::limit(MOST_NODES) { Err(exceeded(offset, TOO_MANY)) } else { Ok(()) }
    }
}

fn exceeded(offset: usize, (code, message): (&'static str, &'static str)) -> Exceeded {
    Exceeded { offset, code, message }
}

/// JSON with comments: brackets and commas outside strings and comments.
pub(super) fn check_jsonc(text: &str) -> Result<(), Exceeded> {
    let bytes = text.as_bytes();
    let mut count = Count::new();
    let mut offset = 0;
    while let Some(byte) = bytes.get(offset) {
        match (byte, bytes.get(offset + 1)) {
            (b'"', _) => offset = skip_quoted(bytes, offset),
            (b'/', Some(b'/')) => offset = skip_until(bytes, offset, b"\n"),
            (b'/', Some(b'*')) => offset = skip_until(bytes, offset + 2, b"*/"),
            (b'[' | b'{', _) => count.open(offset)?,
            (b']' | b'}', _) => count.close(),
            (b',', _) => count.separate(offset)?,
            _ => {}
        }
        offset += 1;
    }
    Ok(())
}

/// TOML: brackets, and dots of keys, because `a.b.c` nests as deep as three tables.
pub(super) fn check_toml(text: &str) -> Result<(), Exceeded> {
    let bytes = text.as_bytes();
    let mut count = Count::new();
    let mut dots = 0_usize;
    let mut offset = 0;
    while let Some(byte) = bytes.get(offset) {
        match byte {
            b'"' | b'\'' => offset = skip_toml_string(bytes, offset, *byte),
            b'#' => {
                offset = skip_until(bytes, offset, b"\n");
                dots = 0;
            }
            b'[' | b'{' => {
                count.open(offset)?;
                dots = 0;
            }
            b']' | b'}' => count.close(),
            b',' | b'=' | b'\n' => {
                dots = 0;
                count.separate(offset)?;
            }
            b'.' => {
                dots += 1;
                if dots + count.depth > weak::limit(DEEPEST) {
                    return Err(exceeded(offset, TOO_DEEP));
                }
            }
            _ => {}
        }
        offset += 1;
    }
    Ok(())
}

/// YAML: the scanner itself is bounded and not recursive, but it buffers what stands in `[..]`.
pub(super) fn check_yaml(text: &str) -> Result<(), Exceeded> {
    let mut separators = text.bytes().enumerate().filter(|(_, byte)| matches!(byte, b',' | b'[' | b'{' | b'\n' | b'?'));
    separators.nth(MOST_NODES * 2).map_or(Ok(()), |(offset, _)| Err(exceeded(offset, TOO_MANY)))
}

/// The offset of the quote that ends the string beginning at `start`.
fn skip_quoted(bytes: &[u8], start: usize) -> usize {
    let mut offset = start + 1;
    while let Some(byte) = bytes.get(offset) {
        match byte {
            b'\\' => offset += 1,
            b'"' | b'\n' => return offset,
            _ => {}
        }
        offset += 1;
    }
    offset
}

fn skip_toml_string(bytes: &[u8], start: usize, quote: u8) -> usize {
    let three = [quote; 3];
    if !bytes.get(start..).is_some_and(|rest| rest.starts_with(&three)) {
        return if quote == b'"' { skip_quoted(bytes, start) } else { skip_literal(bytes, start) };
    }
    let mut offset = start + 3;
    while let Some(rest) = bytes.get(offset..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(&three) {
            return offset + 2;
        }
        let escaped = quote == b'"' && rest.first() == Some(&b'\\');
        offset += 1 + usize::from(escaped);
    }
    offset
}

fn skip_literal(bytes: &[u8], start: usize) -> usize {
    let end = bytes.iter().skip(start + 1).position(|byte| matches!(byte, b'\'' | b'\n'));
    end.map_or(bytes.len(), |length| start + 1 + length)
}

/// The offset of the last byte of `end`, or of the end of the text.
fn skip_until(bytes: &[u8], start: usize, end: &[u8]) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    rest.windows(end.len())
        .position(|window| window == end)
        .map_or(bytes.len(), |length| start + length + end.len() - 1)
}
