//! The file that holds the master key: made once, owner-only, read through one checked descriptor.
//!
//! Takes the file's path; gives 32 bytes that wipe themselves; refuses a file or directory that
//! somebody else owns or could change, links, and anything that is not a key of a known format.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::key_text::{self, KeyBytes};

/// The name of the key file where none is configured.
pub const KEY_FILE: &str = "master.key";

/// A key and its line end.
const FILE_LENGTH: usize = key_text::LENGTH + 1;

/// Why the key file cannot be used. Never says anything of the key.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    #[error("{path} cannot be read: {error}")]
    Read { path: String, error: io::Error },
    #[error("{path} cannot be made: {error}")]
    Write { path: String, error: io::Error },
    #[error("{path} is a symbolic link; put the key file itself there")]
    Link { path: String },
    #[error("{path} is not a regular file; move it away, or choose another directory")]
    NotRegular { path: String },
    #[error("{path} is not a directory; choose another one for the key")]
    NotADirectory { path: String },
    #[error("{path} belongs to user {found}, not to user {wanted}; run `chown {wanted} {path}`")]
    WrongOwner { path: String, found: u32, wanted: u32 },
    #[error("{path} can be read or changed by others (mode {mode:o}); run `chmod {wanted:o} {path}`")]
    WrongMode { path: String, mode: u32, wanted: u32 },
    #[error(
        "{path} does not hold a toolwarden key; restore it from a backup (a new key cannot open or verify what exists)"
    )]
    Malformed { path: String },
    #[error("the operating system gives no random bytes")]
    NoRandomness,
}

/// Reads the key of a file, and makes directory and key where there are none.
pub(crate) fn read_or_create(path: &Path) -> Result<KeyBytes, KeyFileError> {
    let directory = directory(path)?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| {
        if directory.exists() {
            KeyFileError::NotADirectory { path: shown(directory) }
        } else {
            KeyFileError::Write { path: shown(directory), error }
        }
    })?;
    if let Some(key) = read(path)? {
        return Ok(key);
    }
    create(path, directory)?;
    // Read back, because another process may have been first: its key is the key then.
    let missing = || KeyFileError::Write { path: shown(path), error: io::ErrorKind::NotFound.into() };
    read(path)?.ok_or_else(missing)
}

/// Where the key lies that is to follow, until rows are sealed by it.
pub(crate) fn next_of(path: &Path) -> PathBuf {
    path.with_added_extension("next")
}

/// Puts the key that follows in the place of the one in use. The former one is kept under its mark: backups of the store
/// are sealed by it. At every moment one of the two is the key; done twice it changes nothing.
pub(crate) fn follow(path: &Path, former: &str) -> Result<(), KeyFileError> {
    let next = next_of(path);
    if read(&next)?.is_none() {
        return Ok(());
    }
    let write_error = |error| KeyFileError::Write { path: shown(path), error };
    match fs::hard_link(path, path.with_added_extension(former)) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
            return Err(write_error(error));
        }
        _ => {}
    }
    fs::rename(&next, path).map_err(write_error)?;
    File::open(directory(path)?).and_then(|directory| directory.sync_all()).map_err(write_error)
}

fn directory(path: &Path) -> Result<&Path, KeyFileError> {
    path.parent().ok_or_else(|| KeyFileError::NotRegular { path: shown(path) })
}

/// Whoever may write to the directory may put another file in the key's place.
fn check_directory(directory: &Path) -> Result<(), KeyFileError> {
    let path = || shown(directory);
    let found = fs::metadata(directory).map_err(|error| KeyFileError::Read { path: path(), error })?;
    if !found.is_dir() {
        return Err(KeyFileError::NotADirectory { path: path() });
    }
    // Root can put anything anywhere, so a directory of root's is as good as our own.
    if found.uid() != 0 {
        check_owner(&found, directory)?;
    }
    let mode = found.mode() & 0o777;
    if mode & 0o022 != 0 { Err(KeyFileError::WrongMode { path: path(), mode, wanted: 0o700 }) } else { Ok(()) }
}

fn check_owner(found: &fs::Metadata, path: &Path) -> Result<(), KeyFileError> {
    let wanted = rustix::process::geteuid().as_raw();
    if found.uid() == wanted {
        return Ok(());
    }
    Err(KeyFileError::WrongOwner { path: shown(path), found: found.uid(), wanted })
}

/// The key, or none where there is no file.
pub(crate) fn read(path: &Path) -> Result<Option<KeyBytes>, KeyFileError> {
    let directory = directory(path)?;
    if fs::metadata(directory).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(None);
    }
    check_directory(directory)?;
    let read_error = |error| KeyFileError::Read { path: shown(path), error };
    // Not waiting, because a pipe in the file's place must not hang the start.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(KeyFileError::Link { path: shown(path) }),
        // A socket cannot be opened at all.
        Err(Errno::NXIO) => return Err(KeyFileError::NotRegular { path: shown(path) }),
        Err(error) => return Err(read_error(error.into())),
    };
    // Asked of what was opened, not of the path, which may lead elsewhere by now.
    let found = file.metadata().map_err(read_error)?;
    if !found.is_file() {
        return Err(KeyFileError::NotRegular { path: shown(path) });
    }
    check_owner(&found, path)?;
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::WrongMode { path: shown(path), mode, wanted: 0o600 });
    }
    // Room for one byte more than a key, so that the buffer never moves and leaves a copy behind.
    let mut text = Zeroizing::new(Vec::with_capacity(FILE_LENGTH + 1));
    file.take(FILE_LENGTH as u64 + 1).read_to_end(&mut text).map_err(read_error)?;
    let key = text.strip_suffix(b"\n").and_then(key_text::read);
    key.map(Some).ok_or(KeyFileError::Malformed { path: shown(path) })
}

/// Writes a new key under another name and links it into place, so that nobody ever sees half a key
/// and the first of two processes wins. Says whether that was us.
fn create(path: &Path, directory: &Path) -> Result<(), KeyFileError> {
    let write_error = |error| KeyFileError::Write { path: shown(path), error };
    let mut key = KeyBytes::default();
    crate::randomness::fill(key.as_mut_slice()).map_err(|_| KeyFileError::NoRandomness)?;
    let mut text = key_text::write(&key);
    text.push(b'\n');
    let mut temporary = tempfile::Builder::new()
        .prefix(".toolwarden-key-")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(directory)
        .map_err(write_error)?;
    temporary.write_all(&text).map_err(write_error)?;
    temporary.as_file().sync_all().map_err(write_error)?;
    match temporary.persist_noclobber(path) {
        Ok(_) => {}
        Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(failed) => return Err(write_error(failed.error)),
    }
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(write_error)
}

fn shown(path: &Path) -> String {
    toolwarden_core::name::shown(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
#[path = "key_file_tests.rs"]
mod tests;
