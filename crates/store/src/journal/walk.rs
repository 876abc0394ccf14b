//! Walks the lines of a segment and checks each against the one before.
//!
//! Takes a node's directory and a segment number; shows every good line to a visitor; stops at the
//! first line that does not fit and says where and why. Used by recovery and by `verify`.

use std::io;
use std::path::Path;

use toolwarden_core::Keyring;

use super::line::{ChainHash, check_line};
use super::segments::{Found, SegmentReader, segment_name, segment_path};
use super::statement::{Checkpoint, FORMAT, Matter, SegmentHeader, Statement};

/// The first bad place of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) file: String,
    /// Counted from one; zero where the file as a whole is meant.
    pub(crate) line: u64,
    pub(crate) sequence: u64,
    pub(crate) sentence: String,
}

/// Where the chain stands: the last good line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) sequence: u64,
    pub(crate) hash: ChainHash,
}

impl Position {
    pub(crate) const START: Self = Self { sequence: 0, hash: ChainHash::START };
}

/// A good line.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub(crate) position: Position,
    pub(crate) json: &'a [u8],
    /// Set on the first line of a segment.
    pub(crate) header: Option<SegmentHeader>,
    pub(crate) is_checkpoint: bool,
}

/// How a segment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentEnd {
    pub(crate) position: Position,
    pub(crate) lines: u64,
    /// Bytes of whole lines.
    pub(crate) length: u64,
    /// There are bytes after them.
    pub(crate) is_torn: bool,
}

/// One segment of one node.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) node: &'a str,
    pub(crate) segment: u64,
    pub(crate) keyring: &'a dyn Keyring,
    /// The line in front of the segment, or none to take its signed header's word for it.
    pub(crate) follows: Option<Position>,
}

impl Walk<'_> {
    /// Walks to the end of the segment, or to its first fault.
    pub(crate) fn run(&self, mut visit: impl FnMut(Line<'_>)) -> io::Result<Result<SegmentEnd, Fault>> {
        let mut reader = SegmentReader::open(&segment_path(self.directory, self.segment), 0)?;
        let mut position = self.follows.unwrap_or(Position::START);
        let mut lines = 0;
        loop {
            let is_torn = match reader.advance()? {
                Found::Line => false,
                Found::Torn => true,
                Found::End => {
                    return Ok(Ok(SegmentEnd { position, lines, length: reader.offset, is_torn: false }));
                }
            };
            if is_torn {
                return Ok(Ok(SegmentEnd { position, lines, length: reader.offset, is_torn }));
            }
            lines += 1;
            let checked = if lines == 1 { self.header(reader.line()) } else { self.line(reader.line(), position) };
            match checked {
                Ok(line) => {
                    position = line.position;
                    visit(line);
                }
                Err(sentence) => {
                    let (file, sequence) = (segment_name(self.segment), position.sequence + 1);
                    return Ok(Err(Fault { file, line: lines, sequence, sentence }));
                }
            }
        }
    }

    /// When the segment was begun, if this line is its header.
    pub(crate) fn header_time(&self, line: &[u8]) -> Option<jiff::Timestamp> {
        self.header(line).ok()?.header.map(|header| header.time)
    }

    fn header<'l>(&self, line: &'l [u8]) -> Result<Line<'l>, String> {
        let not_a_header = || "the first line is not the header of this segment".to_owned();
        let json = line.get(65..).unwrap_or_default();
        let header: SegmentHeader = serde_json::from_slice(json).map_err(|_| not_a_header())?;
        let previous = ChainHash::parse(header.previous.as_bytes()).ok_or_else(not_a_header)?;
        let before = Position { sequence: header.seq.saturating_sub(1), hash: previous };
        if self.follows.is_some_and(|follows| follows != before) {
            return Err("the segment does not follow the one before: lines or segments are missing".to_owned());
        }
        if header.format != FORMAT {
            return Err(format!("the segment has format {}, this version reads {FORMAT}", header.format));
        }
        if header.node != self.node || header.segment != self.segment {
            return Err(not_a_header());
        }
        let (hash, json) = check_line(line, previous, header.seq).map_err(|fault| fault.to_string())?;
        let statement = self.statement(Matter::Segment, Position { sequence: header.seq, hash: previous });
        if !statement.is_signed(self.keyring, &header.signed) {
            return Err("the header is not signed with this installation's key: the chain was rebuilt".to_owned());
        }
        let position = Position { sequence: header.seq, hash };
        Ok(Line { position, json, header: Some(header), is_checkpoint: false })
    }

    fn line<'l>(&self, line: &'l [u8], before: Position) -> Result<Line<'l>, String> {
        let sequence = before.sequence + 1;
        let (hash, json) = check_line(line, before.hash, sequence).map_err(|fault| fault.to_string())?;
        let is_checkpoint = is_checkpoint(json);
        if is_checkpoint {
            let checkpoint: Option<Checkpoint> = serde_json::from_slice(json).ok();
            let statement = self.statement(Matter::Checkpoint, before);
            if !checkpoint.is_some_and(|checkpoint| statement.is_signed(self.keyring, &checkpoint.signed)) {
                return Err(
                    "the checkpoint is not signed with this installation's key: the chain was rebuilt".to_owned()
                );
            }
        }
        Ok(Line { position: Position { sequence, hash }, json, header: None, is_checkpoint })
    }

    fn statement(&self, matter: Matter, position: Position) -> Statement<'_> {
        let (node, segment) = (self.node, self.segment);
        Statement { matter, node, segment, sequence: position.sequence, hash: position.hash }
    }
}

/// The kind follows the sequence number in every line, so that this needs no parsing.
fn is_checkpoint(json: &[u8]) -> bool {
    let members = json.iter().position(|byte| *byte == b',').and_then(|comma| json.get(comma + 1..));
    members.is_some_and(|members| members.starts_with(b"\"kind\":\"checkpoint\""))
}
