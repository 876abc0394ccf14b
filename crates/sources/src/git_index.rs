//! Reads the index of a repository, as far as it names nested repositories.
//!
//! Takes the directory of git's state; gives the paths of its gitlinks, which git enters by itself when it compares the
//! work tree. Understands versions 2 to 4, SHA-1 and SHA-256, and shared indexes. Gives `None` for whatever it does not
//! understand, and for an index that is larger than 64 MiB.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::files;

const LARGEST_INDEX: u64 = 64 * 1024 * 1024;
const MOST_SHARED: usize = 16;
/// Mode of an entry that is a commit of another repository.
const GITLINK: u32 = 0o160_000;
const TYPE_BITS: u32 = 0o170_000;

/// The paths of all gitlinks, relative to the top of the work tree.
pub(crate) fn gitlinks(state: &Path) -> Option<Vec<PathBuf>> {
    let mut links = of_file(&state.join("index"))?;
    // A split index keeps most entries in a file of its own.
    let entries = fs::read_dir(state).ok()?;
    let is_shared =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("sharedindex."));
    let shared: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_shared).collect();
    if shared.len() > MOST_SHARED {
        return None;
    }
    for path in shared {
        links.extend(of_file(&path)?);
    }
    Some(links)
}

fn of_file(path: &Path) -> Option<Vec<PathBuf>> {
    let Some(bytes) = files::read(path, LARGEST_INDEX).ok()? else { return Some(Vec::new()) };
    [20, 32].into_iter().find_map(|hash| parse(&bytes, hash))
}

/// Reads entries with hashes of this length; they must end where the extensions begin.
fn parse(bytes: &[u8], hash: usize) -> Option<Vec<PathBuf>> {
    let mut reader = Reader { bytes, at: 0 };
    if reader.take(4)? != b"DIRC" {
        return None;
    }
    let version = reader.number()?;
    let count = reader.number()?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut links = Vec::new();
    let mut path: Vec<u8> = Vec::new();
    for _ in 0..count {
        let start = reader.at;
        reader.take(24)?;
        let mode = reader.number()?;
        reader.take(12_usize.saturating_add(hash))?;
        let flags = reader.take(2)?;
        if version > 2 && flags.first().is_some_and(|flags| flags & 0x40 != 0) {
            reader.take(2)?;
        }
        if version == 4 {
            let kept = path.len().checked_sub(reader.stripped()?)?;
            path.truncate(kept);
            path.extend_from_slice(reader.until_zero()?);
        } else {
            path = reader.until_zero()?.to_vec();
            // Padded with zeros to a multiple of eight.
            let length = reader.at.checked_sub(start)?;
            reader.take(length.next_multiple_of(8).checked_sub(length)?)?;
        }
        if mode & TYPE_BITS == GITLINK {
            links.push(PathBuf::from(OsString::from_vec(path.clone())));
        }
    }
    reader.ends_in_extensions(hash).then_some(links)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    fn until_zero(&mut self) -> Option<&'a [u8]> {
        let length = self.bytes.get(self.at..)?.iter().position(|byte| *byte == 0)?;
        let taken = self.take(length)?;
        self.take(1)?;
        Some(taken)
    }

    /// How many bytes of the path before are dropped: a number of variable length.
    fn stripped(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        for position in 0..5 {
            let byte = usize::from(*self.take(1)?.first()?);
            value = value.checked_mul(128)?.checked_add(byte & 0x7f)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            // Each further byte stands for one more.
            value = value.checked_add(1).filter(|_| position < 4)?;
        }
        None
    }

    /// Behind the entries stand extensions, each with its length, and a hash over everything.
    fn ends_in_extensions(&mut self, hash: usize) -> bool {
        while self.bytes.len().saturating_sub(self.at) > hash {
            let Some(name) = self.take(4) else { return false };
            // An extension with a small letter changes how entries are read; those of split and sparse indexes do not.
            let is_known = name.first().is_some_and(u8::is_ascii_uppercase) || name == b"link" || name == b"sdir";
            let Some(length) = self.number().and_then(|length| usize::try_from(length).ok()) else { return false };
            if !is_known || self.take(length).is_none() {
                return false;
            }
        }
        self.bytes.len().saturating_sub(self.at) == hash
    }
}
