//! Bytes into text, and byte offsets into lines and columns.
//!
//! Takes any bytes; gives UTF-8 text without its byte order mark; refuses other encodings and
//! control characters, which no editor shows and every parser treats differently.

use std::cell::Cell;

use super::{Place, TreeError};

/// What some editors put before UTF-8 text.
pub const BYTE_ORDER_MARK: char = '\u{FEFF}';

/// Checks the encoding and skips a byte order mark.
pub fn decode(bytes: &[u8]) -> Result<&str, TreeError> {
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        let message = "the file is UTF-16; save it as UTF-8";
        return Err(TreeError::new(Place { line: 1, column: 1 }, "encoding", message));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid =
            bytes.get(..error.valid_up_to()).and_then(|good| std::str::from_utf8(good).ok()).unwrap_or_default();
        let place = Places::new(valid).at(valid.len());
        TreeError::new(place, "encoding", format!("not UTF-8 at byte {}", error.valid_up_to()))
    })?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    match first_control(text) {
        None => Ok(text),
        Some((offset, character)) => {
            let message = if character == '\r' {
                "carriage return without line feed".to_owned()
            } else {
                format!("control character U+{:04X}", u32::from(character))
            };
            Err(TreeError::new(Places::new(text).at(offset), "control_character", message))
        }
    }
}

fn first_control(text: &str) -> Option<(usize, char)> {
    let bytes = text.as_bytes();
    text.char_indices().find(|(offset, character)| match character {
        '\n' | '\t' => false,
        '\r' => bytes.get(offset + 1) != Some(&b'\n'),
        other => other.is_control(),
    })
}

/// Finds lines and columns, fast when asked in the order of the text.
pub(super) struct Places<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
    /// The last offset asked for and its column, to count on from there in long lines.
    last: Cell<(usize, Place)>,
}

impl<'a> Places<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(offset, _)| offset + 1);
        let line_starts = std::iter::once(0).chain(breaks).collect();
        Self { text, line_starts, last: Cell::new((0, Place { line: 1, column: 1 })) }
    }

    /// The place of a byte offset; one past the end is the end.
    pub(super) fn at(&self, offset: usize) -> Place {
        let offset = offset.min(self.text.len());
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let (last_offset, last) = self.last.get();
        let (from, column) =
            if start <= last_offset && last_offset <= offset { (last_offset, last.column) } else { (start, 1) };
        let between = self.text.get(from..offset).map_or(0, |part| part.chars().count());
        let place = Place { line: small(line), column: column.saturating_add(small(between)) };
        self.last.set((offset, place));
        place
    }
}

/// Files are at most 4 MiB, so every position fits.
pub(super) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
