//! `audit verify`: whether every node's chain is whole, from its first line to its signed head.
//!
//! What it proves, and against whom:
//! - Without the key nobody can edit, reorder, remove, insert or rebuild what is in front of the
//!   last checkpoint: lines are chained, headers, checkpoints and the head are signed.
//! - Lines after the last checkpoint are chained but not yet signed: whoever may write to the
//!   directory can replace them until the next one (`checkpoint_every`), unless the index has them.
//! - Whoever may write to the directory can put back an older state of it as a whole, head
//!   included. Only the index, or an anchor elsewhere, remembers more.
//! - Records that `[audit] retention` removed are gone: the signed file `pruned` names the last of them, and the chain is
//!   checked from there. Removing more, or less, than it names is found.
//! - Whoever owns directory, key and index can write any history they like. Only an anchor kept
//!   where they cannot reach tells.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toolwarden_core::Keyring;

use super::disk::read_small;
use super::line::ChainHash;
use super::prune::Pruned;
use super::recover::is_in_use;
use super::segments::{head_path, nodes, segment_name, segment_numbers};
use super::statement::Head;
use super::walk::{Fault, Line, Position, SegmentEnd, Walk};
use super::{JournalError, shown};

/// How often a node is looked at again that changed meanwhile.
const LOOKS: usize = 3;

/// What somebody else remembers of a node: the index, an anchor, a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub node: String,
    pub sequence: u64,
    pub hash: ChainHash,
}

/// The first bad place of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The file within the node's directory.
    pub file: String,
    /// Counted from one; zero where the file as a whole is meant.
    pub line: u64,
    /// The record that is bad or missing.
    pub sequence: u64,
    pub sentence: String,
}

/// One node's chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    pub node: String,
    pub segments: u64,
    /// The last good record.
    pub last_sequence: u64,
    /// How far a signature covers it.
    pub signed_through: u64,
    /// The last record that `[audit] retention` removed.
    #[serde(default)]
    pub removed_through: u64,
    pub in_use: bool,
    pub problem: Option<Problem>,
}

/// Every node below a journal root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub nodes: Vec<NodeReport>,
}

impl Report {
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.nodes.iter().all(|node| node.problem.is_none())
    }
}

/// Checks every node below `root`, also while they are being written to. `seen` is what others
/// remember of them, such as `Index::seen`.
///
/// # Errors
/// A directory or file cannot be read.
pub fn verify(root: &Path, keyring: &dyn Keyring, seen: &[Seen]) -> Result<Report, JournalError> {
    let failed = |path: &Path, error| JournalError::Directory { path: shown(path), error };
    let mut names = nodes(root).map_err(|error| failed(root, error))?;
    names.extend(seen.iter().map(|seen| seen.node.clone()));
    names.sort_unstable();
    names.dedup();
    let mut reports = Vec::new();
    for node in names {
        let directory = root.join(&node);
        let known: Vec<&Seen> = seen.iter().filter(|seen| seen.node == node).collect();
        let mut looked = verify_node(&directory, node.clone(), keyring, &known);
        for _ in 0..LOOKS {
            // A segment may be removed between two looks at its directory.
            if !matches!(&looked, Err(error) if error.kind() == io::ErrorKind::NotFound) {
                break;
            }
            looked = verify_node(&directory, node.clone(), keyring, &known);
        }
        reports.push(looked.map_err(|error| failed(&directory, error))?);
    }
    Ok(Report { nodes: reports })
}

/// What must be met on the way.
struct Expected {
    sequence: u64,
    hash: ChainHash,
    by: &'static str,
    is_met: bool,
}

fn verify_node(directory: &Path, node: String, keyring: &dyn Keyring, seen: &[&Seen]) -> io::Result<NodeReport> {
    let mut report = NodeReport {
        node,
        segments: 0,
        last_sequence: 0,
        signed_through: 0,
        removed_through: 0,
        in_use: false,
        problem: None,
    };
    if !directory.is_dir() {
        report.problem = Some(whole_file(".", 1, "the index knows this node, but its journal is gone"));
        return Ok(report);
    }
    // The head first: a journal in use only grows, so what is read later holds what it names.
    let head_text = read_small(&head_path(directory))?;
    report.in_use = is_in_use(directory);
    let head = head_text.as_ref().map(|text| Head::read(text, keyring, &report.node));
    let mut expected: Vec<Expected> = seen
        .iter()
        .map(|seen| Expected { sequence: seen.sequence, hash: seen.hash, by: "the index has", is_met: false })
        .collect();
    if let Some(Some((head, hash))) = &head {
        let (sequence, hash) = (head.sequence, *hash);
        expected.push(Expected { sequence, hash, by: "the signed head names", is_met: false });
    }
    walk_segments(directory, keyring, &mut report, &mut expected)?;
    if report.problem.is_some() {
        return Ok(report);
    }
    report.problem = match head {
        Some(None) => Some(whole_file("head", 0, "the head is not what this installation's key signed")),
        // A new node has a first line before it has a head.
        None if report.last_sequence > 1 => Some(whole_file("head", 0, "the signed head is missing")),
        Some(Some((head, _))) => {
            report.signed_through = report.signed_through.max(head.sequence);
            None
        }
        None => None,
    };
    let missing = expected.iter().filter(|expected| !expected.is_met).max_by_key(|expected| expected.sequence);
    if let (None, Some(missing)) = (&report.problem, missing) {
        let (by, sequence, last) = (missing.by, missing.sequence, report.last_sequence);
        let sentence = format!("the journal ends at record {last}, but {by} record {sequence}: the end was cut off");
        let file = segment_name(report.segments.max(1));
        report.problem = Some(Problem { file, line: 0, sequence: last + 1, sentence });
    }
    Ok(report)
}

fn walk_segments(
    directory: &Path,
    keyring: &dyn Keyring,
    report: &mut NodeReport,
    expected: &mut [Expected],
) -> io::Result<()> {
    let mut numbers = segment_numbers(directory)?;
    let Ok(pruned) = Pruned::read(directory, &report.node, keyring)? else {
        report.problem = Some(whole_file("pruned", 0, "what was removed is not what this installation's key signed"));
        return Ok(());
    };
    // What was to be removed and is still there is nobody's word any more.
    numbers.retain(|number| *number > pruned.segment);
    let last = numbers.last().copied().unwrap_or_default();
    let mut position = pruned.position;
    if pruned.segment > 0 {
        (report.removed_through, report.last_sequence) = (position.sequence, position.sequence);
        expected.iter_mut().filter(|one| one.sequence < position.sequence).for_each(|one| one.is_met = true);
        expected
            .iter_mut()
            .filter(|one| Position { sequence: one.sequence, hash: one.hash } == position)
            .for_each(|one| one.is_met = true);
    }
    for (segment, wanted) in numbers.into_iter().zip(pruned.segment + 1..) {
        if segment != wanted {
            let sentence = format!("the segment is missing, and {} is there", segment_name(segment));
            report.problem = Some(whole_file(&segment_name(wanted), position.sequence + 1, &sentence));
            return Ok(());
        }
        let walk = Walk { directory, node: &report.node, segment, keyring, follows: Some(position) };
        let (mut lines, mut clash, mut signed) = (0, None, report.signed_through);
        let ended = walk.run(|line| {
            lines += 1;
            if line.is_checkpoint || line.header.is_some() {
                signed = line.position.sequence - 1;
            }
            clash = clash.take().or_else(|| meet(&line, expected, segment, lines));
        })?;
        report.signed_through = signed;
        match conclude(ended, clash, segment, last, report.in_use) {
            Ok(end) => position = end.position,
            Err(problem) => {
                report.problem = Some(problem);
                return Ok(());
            }
        }
        report.segments = segment;
        report.last_sequence = position.sequence;
    }
    Ok(())
}

/// Whether a line is one that somebody remembers otherwise.
fn meet(line: &Line<'_>, expected: &mut [Expected], segment: u64, number: u64) -> Option<Problem> {
    let Position { sequence, hash } = line.position;
    let mut problem = None;
    for expected in expected.iter_mut().filter(|expected| expected.sequence == sequence) {
        expected.is_met = true;
        if expected.hash != hash {
            let sentence = format!("record {sequence} is another one than {}: the chain was rebuilt", expected.by);
            problem = Some(Problem { file: segment_name(segment), line: number, sequence, sentence });
        }
    }
    problem
}

/// The end of a segment, or what is wrong with the segment.
fn conclude(
    ended: Result<SegmentEnd, Fault>,
    clash: Option<Problem>,
    segment: u64,
    last: u64,
    in_use: bool,
) -> Result<SegmentEnd, Problem> {
    if let Some(problem) = clash {
        return Err(problem);
    }
    let end = match ended {
        Ok(end) => end,
        Err(Fault { file, line, sequence, sentence }) => {
            return Err(Problem { file, line, sequence, sentence });
        }
    };
    let (file, sequence) = (segment_name(segment), end.position.sequence + 1);
    // In a journal in use these bytes are a line that is being written.
    if end.is_torn && !(in_use && segment == last) {
        let sentence = "the last line is unfinished: writing was interrupted (the next start puts it aside), or the file was changed";
        return Err(Problem { file, line: end.lines + 1, sequence, sentence: sentence.to_owned() });
    }
    if end.lines == 0 && segment != last {
        return Err(whole_file(&file, sequence, "the segment is empty"));
    }
    Ok(end)
}

fn whole_file(file: &str, sequence: u64, sentence: &str) -> Problem {
    Problem { file: file.to_owned(), line: 0, sequence, sentence: sentence.to_owned() }
}
