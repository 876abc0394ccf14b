//! `[audit] retention`: segments whose records are all older than a time are removed, and the chain still verifies.
//!
//! Before anything is removed, the file `pruned` says up to which record, with its hash, and is signed: `verify` begins
//! behind it. A segment is removed only if it is whole, follows what was removed before, is in the index, and lies
//! behind the signed head. What does not hold is kept, as evidence.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use toolwarden_core::Keyring;

use super::disk::{read_small, replace, sync_directory};
use super::recover::lock;
use super::segments::{SegmentReader, head_path, nodes, pruned_path, segment_numbers, segment_path};
use super::statement::{Head, Matter};
use super::walk::{Position, Walk};
use super::{JournalError, Seen, shown};

/// What was removed of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    pub node: String,
    pub segments: u64,
    /// The last record that is gone.
    pub through: u64,
}

/// Up to where a node's records were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pruned {
    pub(crate) segment: u64,
    pub(crate) position: Position,
}

impl Pruned {
    const NOTHING: Self = Self { segment: 0, position: Position::START };

    /// What the file says; the error is a file that this node did not sign.
    pub(crate) fn read(directory: &Path, node: &str, keyring: &dyn Keyring) -> io::Result<Result<Self, ()>> {
        let Some(text) = read_small(&pruned_path(directory))? else { return Ok(Ok(Self::NOTHING)) };
        let read = Head::read_as(Matter::Pruned, &text, keyring, node);
        Ok(read
            .ok_or(())
            .map(|(head, hash)| Self { segment: head.segment, position: Position { sequence: head.sequence, hash } }))
    }
}

/// Removes what every node below `root` wrote before `before` and nobody needs. `own` is the node this process writes
/// itself; others are left alone while they are in use. `seen` is how far the index has them.
///
/// # Errors
/// A directory or file cannot be read or written.
pub fn prune(
    root: &Path,
    keyring: &dyn Keyring,
    own: &str,
    seen: &[Seen],
    before: Timestamp,
) -> Result<Vec<Removed>, JournalError> {
    let failed = |path: &Path, error| JournalError::Directory { path: shown(path), error };
    let mut removed = Vec::new();
    for node in nodes(root).map_err(|error| failed(root, error))? {
        let directory = root.join(&node);
        let failed = |error| failed(&directory, error);
        // Held to the end of the look: nobody begins to write meanwhile.
        let held = if node == own { None } else { lock(&directory).map_err(failed)? };
        if held.is_none() && node != own {
            continue;
        }
        let delivered = seen.iter().find(|seen| seen.node == node).map_or(0, |seen| seen.sequence);
        let pruning = Pruning { directory, node, keyring, before, delivered };
        removed.extend(pruning.run()?);
    }
    Ok(removed)
}

/// One node.
struct Pruning<'a> {
    directory: PathBuf,
    node: String,
    keyring: &'a dyn Keyring,
    before: Timestamp,
    delivered: u64,
}

impl Pruning<'_> {
    fn run(&self) -> Result<Option<Removed>, JournalError> {
        let failed = |error| JournalError::Directory { path: shown(&self.directory), error };
        let Ok(former) = Pruned::read(&self.directory, &self.node, self.keyring).map_err(failed)? else {
            return Ok(None);
        };
        // A crash may have come between the file and the removal.
        let count = self.remove_through(former.segment).map_err(failed)?;
        let now = self.reach(former).map_err(failed)?;
        if now == former {
            let through = former.position.sequence;
            return Ok((count > 0).then(|| Removed { node: self.node.clone(), segments: count, through }));
        }
        let Position { sequence, hash } = now.position;
        let text = Head::sign_as(Matter::Pruned, self.keyring, &self.node, now.segment, sequence, hash)?.text();
        replace(&pruned_path(&self.directory), &text).map_err(failed)?;
        let segments = count + self.remove_through(now.segment).map_err(failed)?;
        Ok(Some(Removed { node: self.node.clone(), segments, through: sequence }))
    }

    /// How far removal may go: over whole segments that are old enough.
    fn reach(&self, mut reached: Pruned) -> io::Result<Pruned> {
        let head = read_small(&head_path(&self.directory))?;
        let head = head.and_then(|text| Head::read(&text, self.keyring, &self.node));
        let signed = head.map_or(0, |(head, _)| head.sequence);
        let numbers = segment_numbers(&self.directory)?;
        let gone = reached.segment;
        for segment in numbers.iter().copied().filter(|number| *number > gone) {
            let next = segment + 1;
            if segment != reached.segment + 1 || !numbers.contains(&next) {
                break;
            }
            // Records of a segment are older than the header of the next one.
            let Some(began) = self.began(next)? else { break };
            if began >= self.before {
                break;
            }
            let follows = Some(reached.position);
            let walk = Walk { directory: &self.directory, node: &self.node, segment, keyring: self.keyring, follows };
            let end = match walk.run(|_| {})? {
                Ok(end) if !end.is_torn && end.lines > 0 => end,
                _ => break,
            };
            if end.position.sequence > self.delivered || end.position.sequence >= signed {
                break;
            }
            reached = Pruned { segment, position: end.position };
        }
        Ok(reached)
    }

    /// When a segment was begun, by its signed header.
    fn began(&self, segment: u64) -> io::Result<Option<Timestamp>> {
        let mut reader = SegmentReader::open(&segment_path(&self.directory, segment), 0)?;
        reader.advance()?;
        let walk = Walk { directory: &self.directory, node: &self.node, segment, keyring: self.keyring, follows: None };
        Ok(walk.header_time(reader.line()))
    }

    fn remove_through(&self, segment: u64) -> io::Result<u64> {
        let mut count = 0;
        for number in segment_numbers(&self.directory)?.into_iter().filter(|number| *number <= segment) {
            std::fs::remove_file(segment_path(&self.directory, number))?;
            count += 1;
        }
        if count > 0 {
            sync_directory(&self.directory)?;
        }
        Ok(count)
    }
}
