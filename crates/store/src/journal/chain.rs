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

use serde::Serialize;
use toolwarden_core::{Clock, Keyring, RecordKind};

use super::JournalError;
use super::disk::{Disk, append_all, check_private};
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
        Ok(chain)
    }

    fn at(node: Arc<Node>, file: File, segment: u64, position: Position) -> Self {
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
        }
    }

    /// Appends a record and writes everything up to it.
    pub(crate) fn append(&mut self, kind: RecordKind, call: u64, members: &[u8]) -> Result<Position, JournalError> {
        if self.is_full(members.len()) {
            self.rotate()?;
        }
        let position = self.append_line(members)?;
        self.count(kind, call);
        Ok(position)
    }

    /// Makes an outcome part of the chain; it is written with the next record, or by the timer.
    pub(crate) fn queue(&mut self, kind: RecordKind, call: u64, members: &[u8]) -> Result<Position, JournalError> {
        if self.pending.len() > LARGEST_PENDING {
            return Err(JournalError::Write(io::ErrorKind::StorageFull.into()));
        }
        if self.is_full(members.len())
            && let Err(error) = self.rotate()
        {
            // A segment slightly too long is better than an outcome lost.
            tracing::warn!(%error, "the journal cannot begin a new segment");
        }
        self.push(members);
        self.count(kind, call);
        Ok(self.position)
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
        let (before, length) = (self.position, self.pending.len());
        self.push(members);
        if let Err(error) = self.write_pending() {
            self.pending.truncate(length);
            self.position = before;
            self.lines -= 1;
            return Err(JournalError::Write(error));
        }
        Ok(self.position)
    }

    /// Writes the lines that wait. On failure they go on waiting, and the file ends with a whole line.
    pub(crate) fn write_pending(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let disk = &self.node.disk;
        if self.needs_cut {
            disk.truncate(&self.file, self.length)?;
            self.needs_cut = false;
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
        length > self.node.segment_bytes && self.lines > 1
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
