//! The records of the data directory that belong to this machine alone: trusted workspaces, agreed policies.
//!
//! What counts for every gateway is in the store. Owner-only JSON files (directory 0700, files 0600), replaced as a whole under the lock. A record
//! that others could read or change, or that cannot be parsed, is an error, never an empty record.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::files::{self, FileError};
use crate::locations::Locations;
use crate::lock::{DataLock, PATIENCE};

/// Our own records may be larger than people's files: they hold copies of them.
const LARGEST_RECORD: u64 = 64 * 1024 * 1024;

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    #[error("{path} {error}")]
    File { path: String, error: FileError },
    #[error("{path}:{line}:{column}: {message}; {next}")]
    Syntax { path: String, line: usize, column: usize, message: String, next: &'static str },
    #[error("{path} is in use by another toolwarden process; try again, or stop the other one")]
    Locked { path: String },
}

impl StoredError {
    /// The same with another thing to do about a record that cannot be parsed.
    #[must_use]
    pub fn with_next(mut self, other: &'static str) -> Self {
        if let Self::Syntax { next, .. } = &mut self {
            *next = other;
        }
        self
    }
}

/// One kind of record and its file.
pub(crate) trait Record: Serialize + DeserializeOwned + Default {
    const FILE: &'static str;

    fn path(locations: &Locations) -> PathBuf {
        locations.data_dir.join(Self::FILE)
    }
}

/// `confirmed.json`: policies a person agreed to before they were in force (SELF-2).
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Confirmed {
    marks: BTreeMap<String, Timestamp>,
}

/// Digits of a policy's mark. Whoever writes the files chooses what it is made of: with fewer, two policies could
/// be prepared that share one.
pub const MARK: usize = 32;
/// How long a confirmation counts: a policy is put in force at once, and must not come back by itself much later.
const CONFIRMED_FOR: SignedDuration = SignedDuration::from_mins(10);

impl Record for Confirmed {
    const FILE: &'static str = "confirmed.json";
}

/// Reads a record; none stored yet = an empty one.
pub(crate) fn read<R: Record>(locations: &Locations) -> Result<R, StoredError> {
    read_at(locations, Path::new(R::FILE)).map(Option::unwrap_or_default)
}

/// Reads a record by its place below the data directory.
///
/// # Errors
/// It cannot be read, or others may read or change it.
pub fn read_at<R: DeserializeOwned>(locations: &Locations, place: &Path) -> Result<Option<R>, StoredError> {
    let path = locations.data_dir.join(place);
    let label = files::shown(&path);
    let failed = |error| StoredError::File { path: label.clone(), error };
    for directory in path.ancestors().skip(1).take_while(|directory| directory.starts_with(&locations.data_dir)) {
        files::check_owner_only(directory, locations.user_id, 0o700)
            .map_err(|error| StoredError::File { path: files::shown(directory), error })?;
    }
    files::check_owner_only(&path, locations.user_id, 0o600).map_err(failed)?;
    let Some(bytes) = files::read(&path, LARGEST_RECORD).map_err(failed)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| StoredError::Syntax {
        path: label.clone(),
        line: error.line(),
        column: error.column(),
        message: syntax_message(&error),
        next: "restore it from a backup, or move it away",
    })
}

/// Replaces a record by its place below the data directory.
///
/// # Errors
/// It cannot be written, or would be too large to be read again.
pub fn replace_at<R: Serialize>(
    locations: &Locations,
    _held: &DataLock,
    place: &Path,
    record: &R,
) -> Result<(), StoredError> {
    replace_copy(locations, place, record)
}

/// Replaces a record that is only a copy of what the store holds: whoever writes it writes the same, so that it needs no
/// lock.
///
/// # Errors
/// As for `replace_at`.
pub fn replace_copy<R: Serialize>(locations: &Locations, place: &Path, record: &R) -> Result<(), StoredError> {
    let path = locations.data_dir.join(place);
    let failed = |error| StoredError::File { path: files::shown(&path), error };
    let written = |error: std::io::Error| failed(FileError::Write(error));
    let mut text = serde_json::to_string_pretty(record).map_err(|error| written(error.into()))?;
    text.push('\n');
    if text.len() as u64 > LARGEST_RECORD {
        return Err(written(std::io::Error::other("the record would be too large")));
    }
    if let Some(directory) = path.parent() {
        files::make_private_directory(directory).map_err(failed)?;
    }
    files::replace(&path, text.as_bytes(), 0o600).map_err(failed)
}

/// Without serde's own "at line 1 column 2", which is already in front.
fn syntax_message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(message, _)| message.to_owned())
}

/// Makes the data directory where there is none, and checks that it is the owner's alone.
///
/// # Errors
/// It cannot be made, or others may use it.
pub fn make_data_directory(locations: &Locations) -> Result<(), StoredError> {
    let failed = |error| StoredError::File { path: files::shown(&locations.data_dir), error };
    files::make_private_directory(&locations.data_dir).map_err(failed)?;
    files::check_owner_only(&locations.data_dir, locations.user_id, 0o700).map_err(failed)
}

/// Makes the data directory where there is none, and takes its lock.
///
/// # Errors
/// Somebody else holds it, or the directory cannot be used.
pub fn lock(locations: &Locations) -> Result<DataLock, StoredError> {
    make_data_directory(locations)?;
    DataLock::take(&locations.data_dir, PATIENCE)
}

/// Changes a record under a lock already held.
pub(crate) fn change<R: Record, T>(
    locations: &Locations,
    held: &DataLock,
    edit: impl FnOnce(&mut R) -> T,
) -> Result<T, StoredError> {
    let mut record: R = read(locations)?;
    let outcome = edit(&mut record);
    replace_at(locations, held, Path::new(R::FILE), &record)?;
    Ok(outcome)
}

/// Agrees to the policy of this mark.
///
/// # Errors
/// The data directory is locked by somebody else, or a record cannot be read or written.
pub fn confirm_policy(locations: &Locations, mark: &str, now: Timestamp) -> Result<(), StoredError> {
    let held = lock(locations)?;
    change(locations, &held, |confirmed: &mut Confirmed| {
        confirmed.marks.retain(|_, at| counts(*at, now));
        confirmed.marks.insert(mark.to_owned(), now);
    })
}

fn counts(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at).abs() < CONFIRMED_FOR
}

/// Whether a person agreed to the policy of this mark.
///
/// # Errors
/// The record cannot be read.
pub fn is_confirmed(locations: &Locations, mark: &str, now: Timestamp) -> Result<bool, StoredError> {
    read(locations).map(|confirmed: Confirmed| confirmed.marks.get(mark).is_some_and(|at| counts(*at, now)))
}
