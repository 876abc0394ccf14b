//! The files of a node: segments by number, and reading their whole lines.
//!
//! `segment-00000001.log` and so on, `head`, `pruned`, `lock`, and what recovery put aside (`torn-1`).

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// No record is longer, so nothing longer is read into memory.
pub(crate) const LONGEST_LINE: usize = 1024 * 1024;

const PREFIX: &str = "segment-";
const SUFFIX: &str = ".log";

pub(crate) fn segment_name(number: u64) -> String {
    format!("{PREFIX}{number:08}{SUFFIX}")
}

pub(crate) fn segment_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(segment_name(number))
}

pub(crate) fn head_path(directory: &Path) -> PathBuf {
    directory.join("head")
}

/// Up to where records were removed.
pub(crate) fn pruned_path(directory: &Path) -> PathBuf {
    directory.join("pruned")
}

pub(crate) fn lock_path(directory: &Path) -> PathBuf {
    directory.join("lock")
}

/// The numbers of the segments there are, in order.
pub(crate) fn segment_numbers(directory: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok());
        // Only the one spelling a number has: a copy under another name is not a segment.
        numbers.extend(number.filter(|number| name == segment_name(*number).as_str()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// The nodes below a journal root, in order.
pub(crate) fn nodes(root: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.extend(entry.file_name().into_string().ok());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// What stands at a place of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A line with its end.
    Line,
    /// Bytes without a line end, up to the end of the file, or longer than any line.
    Torn,
    End,
}

/// Reads one segment line after line.
#[derive(Debug)]
pub(crate) struct SegmentReader {
    reader: BufReader<File>,
    /// Where the next line begins.
    pub(crate) offset: u64,
    line: Vec<u8>,
}

impl SegmentReader {
    pub(crate) fn open(path: &Path, offset: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(Self { reader: BufReader::with_capacity(256 * 1024, file), offset, line: Vec::new() })
    }

    /// Reads the next line; its bytes, without the end, are in `line()`.
    pub(crate) fn advance(&mut self) -> io::Result<Found> {
        self.line.clear();
        let limit = LONGEST_LINE as u64 + 1;
        let read = io::Read::take(&mut self.reader, limit).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(Found::End);
        }
        if self.line.pop_if(|byte| *byte == b'\n').is_none() {
            return Ok(Found::Torn);
        }
        self.offset += read as u64;
        Ok(Found::Line)
    }

    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }
}
