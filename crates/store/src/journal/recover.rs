//! Opening a node: the first free slot, what the last run left there, and where the chain goes on.
//!
//! A torn last line is put aside. A chain that does not hold is never continued: its directory stays
//! as it is, as evidence, and the next slot is taken.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use toolwarden_core::Keyring;

use super::disk::{self, private_directory, read_small};
use super::line::{LineKind, Outline};
use super::segments::{head_path, lock_path, segment_numbers, segment_path};
use super::statement::Head;
use super::walk::{Fault, Line, Position, SegmentEnd, Walk};
use super::{JournalError, shown};

/// So many processes with the same base name may write at once.
const MOST_SLOTS: u32 = 256;

/// What opening a journal found of former runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Recovery {
    pub node: String,
    /// Where the bytes of an unfinished last line were put.
    pub torn: Option<PathBuf>,
    /// Calls that had left and whose end nobody knows.
    pub unknown_calls: Vec<u64>,
    /// Nodes that were left alone because their chain does not hold, and why.
    pub damaged: Vec<(String, String)>,
}

impl Recovery {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.torn.is_none() && self.unknown_calls.is_empty() && self.damaged.is_empty()
    }

    /// One sentence for the record of it.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut parts = Vec::new();
        if let Some(torn) = self.torn.as_ref().and_then(|path| path.file_name()) {
            parts.push(format!("an unfinished last line was put aside as {}", torn.to_string_lossy()));
        }
        if !self.unknown_calls.is_empty() {
            parts.push(format!("{} calls have an unknown outcome", self.unknown_calls.len()));
        }
        parts.extend(self.damaged.iter().map(|(node, why)| format!("the journal of {node} was left as it is: {why}")));
        format!("recovered after a stop: {}", parts.join("; "))
    }
}

/// A slot taken for life.
pub(crate) struct Slot {
    pub(crate) node: String,
    pub(crate) directory: PathBuf,
    pub(crate) lock: File,
    /// None for a node that has written nothing.
    pub(crate) tail: Option<Tail>,
}

/// Where a chain goes on.
#[derive(Debug)]
pub(crate) struct Tail {
    pub(crate) segment: u64,
    pub(crate) end: SegmentEnd,
    pub(crate) next_call: u64,
    pub(crate) open_calls: HashSet<u64>,
    pub(crate) unsigned: u64,
    /// Records in the last segment, and when it was begun.
    pub(crate) records: u64,
    pub(crate) began: Option<jiff::Timestamp>,
}

/// Takes the first slot of a base name that is free and whose chain holds.
pub(crate) fn take_slot(root: &Path, base_name: &str, keyring: &dyn Keyring) -> Result<(Slot, Recovery), JournalError> {
    let failed = |path: &Path, error| JournalError::Directory { path: shown(path), error };
    private_directory(root).map_err(|error| failed(root, error))?;
    let mut recovery = Recovery::default();
    for number in 1..=MOST_SLOTS {
        let node = format!("{base_name}-{number}");
        let directory = root.join(&node);
        let failed = |error| failed(&directory, error);
        private_directory(&directory).map_err(failed)?;
        let Some(lock) = lock(&directory).map_err(failed)? else { continue };
        match inspect(&directory, &node, keyring).map_err(failed)? {
            Ok(found) => {
                let tail = found.settle(&directory, &mut recovery).map_err(failed)?;
                recovery.node.clone_from(&node);
                return Ok((Slot { node, directory, lock, tail }, recovery));
            }
            Err(why) => recovery.damaged.push((node, why)),
        }
    }
    Err(JournalError::NoSlot { base_name: base_name.to_owned(), slots: MOST_SLOTS })
}

pub(crate) fn lock(directory: &Path) -> io::Result<Option<File>> {
    let path = lock_path(directory);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Whether a process is writing to the node now.
pub(crate) fn is_in_use(directory: &Path) -> bool {
    let Ok(file) = File::open(lock_path(directory)) else { return false };
    matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock))
}

/// What stands in a slot, before anything is changed.
struct Inspection {
    tail: Option<Tail>,
    /// A segment without one whole line: it was begun, and nothing of it counts.
    stillborn: Option<u64>,
}

/// Reads the end of a chain: its last segment and its head. Earlier segments are for `verify`.
fn inspect(directory: &Path, node: &str, keyring: &dyn Keyring) -> io::Result<Result<Inspection, String>> {
    let numbers = segment_numbers(directory)?;
    let head = match read_small(&head_path(directory))? {
        Some(text) => match Head::read(&text, keyring, node) {
            Some(head) => Some(head),
            None => return Ok(Err("its head is not signed with this installation's key".to_owned())),
        },
        None => None,
    };
    let mut stillborn = None;
    for segment in numbers.into_iter().rev() {
        let mut reading = Reading::new(head.as_ref().map_or(0, |(head, _)| head.sequence));
        let walk = Walk { directory, node, segment, keyring, follows: None };
        match walk.run(|line| reading.take(&line))? {
            Ok(end) if end.lines == 0 && stillborn.is_none() => stillborn = Some(segment),
            Ok(end) if end.lines == 0 => return Ok(Err("its last segments are empty".to_owned())),
            Ok(end) => {
                let tail = reading.tail(segment, end);
                return Ok(match reading.contradicts(head.as_ref(), &tail) {
                    Some(why) => Err(why),
                    None => Ok(Inspection { tail: Some(tail), stillborn }),
                });
            }
            Err(Fault { file, line, sentence, .. }) => return Ok(Err(format!("{file}:{line}: {sentence}"))),
        }
    }
    Ok(match head {
        Some(_) => Err("its segments are missing".to_owned()),
        None => Ok(Inspection { tail: None, stillborn }),
    })
}

/// What is gathered while the last segment is walked.
struct Reading {
    next_call: u64,
    open_calls: HashSet<u64>,
    unsigned: u64,
    head_sequence: u64,
    at_head: Option<Position>,
    first_sequence: u64,
    records: u64,
    began: Option<jiff::Timestamp>,
}

impl Reading {
    fn new(head_sequence: u64) -> Self {
        let open_calls = HashSet::new();
        Self {
            next_call: 1,
            open_calls,
            unsigned: 0,
            head_sequence,
            at_head: None,
            first_sequence: 0,
            records: 0,
            began: None,
        }
    }

    fn take(&mut self, line: &Line<'_>) {
        if line.position.sequence == self.head_sequence {
            self.at_head = Some(line.position);
        }
        if let Some(header) = &line.header {
            self.first_sequence = line.position.sequence;
            self.next_call = header.next_call;
            self.began = Some(header.time);
            self.open_calls.extend(&header.open_calls);
        }
        self.records += u64::from(!line.is_checkpoint && line.header.is_none());
        self.unsigned = if line.is_checkpoint { 0 } else { self.unsigned + 1 };
        let Ok(Outline { kind, call }) = serde_json::from_slice(line.json) else { return };
        match kind {
            LineKind::Intent => {
                self.open_calls.insert(call);
            }
            LineKind::Outcome => {
                self.open_calls.remove(&call);
            }
            LineKind::Refusal | LineKind::Event | LineKind::Segment | LineKind::Checkpoint => {}
        }
        self.next_call = self.next_call.max(call.saturating_add(1));
    }

    fn tail(&mut self, segment: u64, end: SegmentEnd) -> Tail {
        let open_calls = std::mem::take(&mut self.open_calls);
        let (records, began) = (self.records, self.began);
        Tail { segment, end, next_call: self.next_call, open_calls, unsigned: self.unsigned, records, began }
    }

    /// Whether the end found is less than, or other than, what was once signed.
    fn contradicts(&self, head: Option<&(Head, super::ChainHash)>, tail: &Tail) -> Option<String> {
        let Some((head, hash)) = head else {
            // The head is made after the first line, before any other, and never taken away.
            return (tail.end.position.sequence > 1).then(|| "its head is missing".to_owned());
        };
        if head.sequence > tail.end.position.sequence {
            let (signed, last) = (head.sequence, tail.end.position.sequence);
            return Some(format!("it ends at record {last}, but record {signed} was signed: records are missing"));
        }
        let is_elsewhere = head.sequence < self.first_sequence;
        let fits = self.at_head.is_some_and(|position| position.hash == *hash);
        (!is_elsewhere && !fits).then(|| format!("record {} is not the one that was signed", head.sequence))
    }
}

impl Inspection {
    /// Puts torn bytes aside and cuts them off.
    fn settle(self, directory: &Path, recovery: &mut Recovery) -> io::Result<Option<Tail>> {
        if let Some(segment) = self.stillborn {
            let path = segment_path(directory, segment);
            if fs::metadata(&path)?.len() > 0 {
                recovery.torn = Some(put_aside(directory, &path, 0)?);
            }
            fs::remove_file(&path)?;
        }
        if let Some(tail) = self.tail.as_ref().filter(|tail| tail.end.is_torn) {
            let path = segment_path(directory, tail.segment);
            recovery.torn = Some(put_aside(directory, &path, tail.end.length)?);
            let file = OpenOptions::new().write(true).open(&path)?;
            file.set_len(tail.end.length)?;
            file.sync_all()?;
        }
        let mut calls: Vec<u64> = self.tail.iter().flat_map(|tail| &tail.open_calls).copied().collect();
        calls.sort_unstable();
        recovery.unknown_calls = calls;
        Ok(self.tail)
    }
}

/// Copies the end of a file to `torn-<n>`: it may tell what was going on.
fn put_aside(directory: &Path, path: &Path, offset: u64) -> io::Result<PathBuf> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let aside = (1_u32..).map(|number| directory.join(format!("torn-{number}"))).find(|path| !path.exists());
    let aside = aside.unwrap_or_else(|| directory.join("torn"));
    disk::replace(&aside, &bytes)?;
    Ok(aside)
}
