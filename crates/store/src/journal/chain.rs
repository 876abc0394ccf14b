//! The growing end of a node's chain: what the journal's one lock protects.
//!
//! Takes the members of records; gives their place in the chain. A record is written whole or not
//! at all: what a failed write left behind is cut off before anything else is written.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use toolwarden_core::{Clock, Keyring, RecordKind};

use super::JournalError;
use super::disk::{Disk, append_all, check_private};
use super::inbox::{Letter, Letters};
use super::line::push_line;
use super::recover::Tail;
use super::segments::segment_path;
use super::statement::{Checkpoint, CheckpointKind, FORMAT, Matter, SegmentHeader, SegmentKind, Statement};
use super::walk::Position;

/// Outcomes wait in memory while nothing can be written; more than this would be a leak.
const LARGEST_PENDING: usize = 32 * 1024 * 1024;
/// More open calls than this are not carried into the next segment: the header must stay a line.
const MOST_OPEN_CALLS: usize = 40_000;

/// What never changes while a node writes.
pub(crate) struct Node {
    pub(crate) name: Arc<str>,
    pub(crate) directory: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) keyring: Arc<dyn Keyring>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The smallest call id not given out yet.
    pub(crate) next_call: AtomicU64,
    pub(crate) segment_bytes: u64,
    /// A segment with records is ended when it is this old.
    pub(crate) segment_age: Option<Duration>,
}

/// The state under the lock.
pub(crate) struct Chain {
    pub(crate) node: Arc<Node>,
    pub(crate) file: Arc<File>,
    pub(crate) segment: u64,
    /// Bytes of whole lines in the file.
    pub(crate) length: u64,
    /// Lines of the segment, written or pending.
    pub(crate) lines: u64,
    /// Bytes of a failed write may stand behind `length`.
    pub(crate) needs_cut: bool,
    /// Lines that are part of the chain and not yet written.
    pub(crate) pending: Vec<u8>,
    pub(crate) position: Position,
    pub(crate) open_calls: HashSet<u64>,
    /// Former segments that were written to since the last sync.
    pub(crate) retired: Vec<Arc<File>>,
    pub(crate) is_unsynced: bool,
    /// Lines since the last checkpoint.
    pub(crate) unsigned: u64,
    /// Records of the segment, without the chain's own lines.
    pub(crate) records: u64,
    /// When the segment was begun.
    pub(crate) began: Timestamp,
}

impl Chain {
    /// The chain of a node that has written nothing.
    pub(crate) fn begin(node: Arc<Node>) -> Result<Self, JournalError> {
        let members = header(&node, 1, Position::START, Vec::new())?;
        let path = segment_path(&node.directory, 1);
        let file = node.disk.create(&path).map_err(JournalError::Write)?;
        let mut chain = Self::at(node, file, 1, Position::START);
        chain.append_line(&members)?;
        Ok(chain)
    }

    /// The chain of a node that wrote before.
    pub(crate) fn resume(node: Arc<Node>, tail: Tail) -> Result<Self, JournalError> {
        let path = segment_path(&node.directory, tail.segment);
        let file = OpenOptions::new().append(true).open(&path).map_err(JournalError::Write)?;
        check_private(&file.metadata().map_err(JournalError::Write)?, &path, "600").map_err(JournalError::Write)?;
        let mut chain = Self::at(node, file, tail.segment, tail.end.position);
        chain.length = tail.end.length;
        chain.lines = tail.end.lines;
        chain.open_calls = tail.open_calls;
        chain.unsigned = tail.unsigned;
        chain.records = tail.records;
        chain.began = tail.began.unwrap_or(chain.began);
        Ok(chain)
    }

    fn at(node: Arc<Node>, file: File, segment: u64, position: Position) -> Self {
        let began = node.clock.now();
        Self {
            node,
            file: Arc::new(file),
            segment,
            length: 0,
            lines: 0,
            needs_cut: false,
            pending: Vec::new(),
            position,
            open_calls: HashSet::new(),
            retired: Vec::new(),
            is_unsynced: false,
            unsigned: 0,
            records: 0,
            began,
        }
    }

    /// Makes letters part of the chain and writes everything. `placed` gets an answer for each, in
    /// order: a letter somebody waits for is written or refused; an outcome is kept until it can be written.
    pub(crate) fn take(&mut self, mail: &Letters, placed: &mut Vec<Result<Position, JournalError>>) {
        let mut batch = Batch { first: placed.len(), mark: self.mark() };
        let mut rest = mail.text.as_slice();
        for letter in &mail.letters {
            let (members, more) = rest.split_at_checked(letter.length).unwrap_or_default();
            rest = more;
            if self.is_full(members.len()) {
                self.settle(&batch, mail, placed);
                let rotated = self.rotate();
                batch = Batch { first: placed.len(), mark: self.mark() };
                match rotated {
                    Ok(()) => {}
                    Err(error) if letter.writer.is_some() => {
                        placed.push(Err(error));
                        batch.first += 1;
                        continue;
                    }
                    // A segment slightly too long is better than an outcome lost.
                    Err(error) => tracing::warn!(%error, "the journal cannot begin a new segment"),
                }
            }
            self.push(members);
            self.records += 1;
            placed.push(Ok(self.position));
        }
        self.settle(&batch, mail, placed);
    }

    /// Writes a batch, or takes it out again except for its outcomes.
    fn settle(&mut self, batch: &Batch, mail: &Letters, placed: &mut [Result<Position, JournalError>]) {
        let written = self.write_pending();
        if written.is_err() {
            self.back_to(&batch.mark);
        }
        let mut offset: usize = mail.letters.iter().take(batch.first).map(|letter| letter.length).sum();
        for (letter, place) in mail.letters.iter().zip(placed).skip(batch.first) {
            let members = mail.text.get(offset..offset + letter.length).unwrap_or_default();
            offset += letter.length;
            if let Err(error) = &written {
                *place = self.keep_or_refuse(letter, members, error);
            }
            if place.is_ok() {
                self.count(letter.kind, letter.call);
            }
        }
    }

    fn keep_or_refuse(&mut self, letter: &Letter, members: &[u8], error: &io::Error) -> Result<Position, JournalError> {
        if letter.writer.is_some() {
            return Err(JournalError::Write(same(error)));
        }
        if self.pending.len() > LARGEST_PENDING {
            return Err(JournalError::Write(io::ErrorKind::StorageFull.into()));
        }
        self.push(members);
        Ok(self.position)
    }

    fn mark(&self) -> Mark {
        Mark { position: self.position, pending: self.pending.len(), lines: self.lines }
    }

    fn back_to(&mut self, mark: &Mark) {
        self.position = mark.position;
        self.pending.truncate(mark.pending);
        self.lines = mark.lines;
    }

    fn count(&mut self, kind: RecordKind, call: u64) {
        self.unsigned += 1;
        match kind {
            RecordKind::Intent => {
                self.open_calls.insert(call);
            }
            RecordKind::Outcome => {
                self.open_calls.remove(&call);
            }
            RecordKind::Refusal | RecordKind::Event => {}
        }
    }

    fn push(&mut self, members: &[u8]) {
        let sequence = self.position.sequence + 1;
        let hash = push_line(&mut self.pending, self.position.hash, sequence, members);
        self.position = Position { sequence, hash };
        self.lines += 1;
    }

    /// Writes one more line, or leaves the chain as it was.
    fn append_line(&mut self, members: &[u8]) -> Result<Position, JournalError> {
        let mark = self.mark();
        self.push(members);
        if let Err(error) = self.write_pending() {
            self.back_to(&mark);
            return Err(JournalError::Write(error));
        }
        Ok(self.position)
    }

    /// Writes the lines that wait. On failure they go on waiting, and the file ends with a whole line.
    pub(crate) fn write_pending(&mut self) -> io::Result<()> {
        let disk = &self.node.disk;
        if self.needs_cut {
            disk.truncate(&self.file, self.length)?;
            self.needs_cut = false;
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        if let Err(error) = append_all(disk.as_ref(), &self.file, &self.pending) {
            self.needs_cut = disk.truncate(&self.file, self.length).is_err();
            return Err(error);
        }
        self.length += self.pending.len() as u64;
        self.pending.clear();
        self.is_unsynced = true;
        Ok(())
    }

    fn is_full(&self, more: usize) -> bool {
        let length = self.length + (self.pending.len() + more) as u64;
        // A segment holds at least one record beside its header, however small the limit is.
        (length > self.node.segment_bytes && self.lines > 1) || self.age_left(self.node.clock.now()).is_zero()
    }

    /// How long the segment goes on; for ever without records, or where nothing is removed.
    pub(crate) fn age_left(&self, now: Timestamp) -> Duration {
        match self.node.segment_age {
            // A clock that was set back ends it, too.
            Some(most) if self.records > 0 => match Duration::try_from(now.duration_since(self.began)) {
                Ok(age) => most.saturating_sub(age),
                Err(_) => Duration::ZERO,
            },
            _ => Duration::MAX,
        }
    }

    /// Ends a segment that is old enough, so that it can be removed one day.
    pub(crate) fn end_old_segment(&mut self, now: Timestamp) {
        if !self.age_left(now).is_zero() {
            return;
        }
        match self.rotate() {
            Ok(()) => self.unsigned += 1,
            Err(error) => {
                tracing::warn!(%error, "the journal cannot begin a new segment");
                self.began = now;
            }
        }
    }

    /// Begins the next segment. Its header is written together with the next record.
    fn rotate(&mut self) -> Result<(), JournalError> {
        self.write_pending().map_err(JournalError::Write)?;
        let open_calls = self.open_calls.iter().copied().take(MOST_OPEN_CALLS).collect();
        let members = header(&self.node, self.segment + 1, self.position, open_calls)?;
        let path = segment_path(&self.node.directory, self.segment + 1);
        let file = Arc::new(self.node.disk.create(&path).map_err(JournalError::Write)?);
        self.retired.push(std::mem::replace(&mut self.file, file));
        self.segment += 1;
        self.length = 0;
        self.lines = 0;
        self.needs_cut = false;
        (self.records, self.began) = (0, self.node.clock.now());
        self.push(&members);
        Ok(())
    }

    /// Writes a signed checkpoint over the last line; gives the place the head is to name.
    pub(crate) fn checkpoint(&mut self) -> Result<(u64, Position), JournalError> {
        let Position { sequence, hash } = self.position;
        let (node, segment) = (self.node.name.as_ref(), self.segment);
        let statement = Statement { matter: Matter::Checkpoint, node, segment, sequence, hash };
        let signed = statement.sign(self.node.keyring.as_ref())?;
        let time = self.node.clock.now();
        let members = members(&Checkpoint { seq: 0, kind: CheckpointKind::Checkpoint, time, signed })?;
        let position = self.append_line(&members)?;
        self.unsigned = 0;
        Ok((self.segment, position))
    }
}

/// Letters that are written at once, from the first of them.
struct Batch {
    first: usize,
    mark: Mark,
}

/// The end of the chain at some moment.
struct Mark {
    position: Position,
    pending: usize,
    lines: u64,
}

/// An error for everybody whose record shared the write.
fn same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// The members of the header that follows `before`.
pub(crate) fn header(
    node: &Node,
    segment: u64,
    before: Position,
    open_calls: Vec<u64>,
) -> Result<Vec<u8>, JournalError> {
    let name = node.name.as_ref();
    let sequence = before.sequence + 1;
    let statement = Statement { matter: Matter::Segment, node: name, segment, sequence, hash: before.hash };
    members(&SegmentHeader {
        seq: 0,
        kind: SegmentKind::Segment,
        time: node.clock.now(),
        node: name.to_owned(),
        segment,
        format: FORMAT,
        previous: before.hash.to_string(),
        next_call: node.next_call.load(Ordering::Relaxed),
        open_calls,
        signed: statement.sign(node.keyring.as_ref())?,
    })
}

/// The JSON of a record of our own, without the opening brace and its `seq`, which the line adds.
fn members(record: &impl Serialize) -> Result<Vec<u8>, JournalError> {
    let json = serde_json::to_vec(record).map_err(JournalError::Encode)?;
    Ok(json.strip_prefix(b"{\"seq\":0,").unwrap_or_default().to_vec())
}
