//! The file that holds the master key: made once, owner-only, read through one checked descriptor.
//!
//! Takes the directory; gives 32 bytes that wipe themselves; refuses a file or directory that
//! somebody else owns or could change, links, and anything that is not a key of a known format.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use zeroize::Zeroizing;

/// The name of the key file inside its directory.
pub const KEY_FILE: &str = "master.key";

/// What stands in front of the key, so that another file is never taken for one.
const FORMAT: &str = "toolwarden-key-1:";
/// The format, 64 hexadecimal digits and a line end.
const FILE_LENGTH: usize = FORMAT.len() + 65;

/// The master key; wiped when dropped.
pub(crate) type MasterKey = Zeroizing<[u8; 32]>;

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

/// Reads the key of a directory, and makes directory and key where there are none.
pub(crate) fn read_or_create(directory: &Path) -> Result<MasterKey, KeyFileError> {
    let write_error = |error| KeyFileError::Write { path: shown(directory), error };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| {
        if directory.exists() { KeyFileError::NotADirectory { path: shown(directory) } } else { write_error(error) }
    })?;
    check_directory(directory)?;
    if let Some(key) = read(directory)? {
        return Ok(key);
    }
    create(directory)?;
    // Read back, because another process may have been first: its key is the key then.
    read(directory)?.ok_or_else(|| write_error(io::ErrorKind::NotFound.into()))
}

/// Whoever may write to the directory may put another file in the key's place.
fn check_directory(directory: &Path) -> Result<(), KeyFileError> {
    let path = || shown(directory);
    let found = fs::metadata(directory).map_err(|error| KeyFileError::Read { path: path(), error })?;
    if !found.is_dir() {
        return Err(KeyFileError::NotADirectory { path: path() });
    }
    check_owner(&found, directory)?;
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
fn read(directory: &Path) -> Result<Option<MasterKey>, KeyFileError> {
    let path = directory.join(KEY_FILE);
    let read_error = |error| KeyFileError::Read { path: shown(&path), error };
    // Not waiting, because a pipe in the file's place must not hang the start.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(&path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(KeyFileError::Link { path: shown(&path) }),
        // A socket cannot be opened at all.
        Err(Errno::NXIO) => return Err(KeyFileError::NotRegular { path: shown(&path) }),
        Err(error) => return Err(read_error(error.into())),
    };
    // Asked of what was opened, not of the path, which may lead elsewhere by now.
    let found = file.metadata().map_err(read_error)?;
    if !found.is_file() {
        return Err(KeyFileError::NotRegular { path: shown(&path) });
    }
    check_owner(&found, &path)?;
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::WrongMode { path: shown(&path), mode, wanted: 0o600 });
    }
    // Room for one byte more than a key, so that the buffer never moves and leaves a copy behind.
    let mut text = Zeroizing::new(Vec::with_capacity(FILE_LENGTH + 1));
    file.take(FILE_LENGTH as u64 + 1).read_to_end(&mut text).map_err(read_error)?;
    parse(&text).map(Some).ok_or(KeyFileError::Malformed { path: shown(&path) })
}

fn parse(text: &[u8]) -> Option<MasterKey> {
    let digits = text.strip_prefix(FORMAT.as_bytes())?.strip_suffix(b"\n")?;
    if digits.len() != 64 {
        return None;
    }
    let mut key = MasterKey::default();
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    // An emptied or zero-filled key would be no secret.
    if key.iter().all(|byte| *byte == 0) { None } else { Some(key) }
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

/// Writes a new key under another name and links it into place, so that nobody ever sees half a key
/// and the first of two processes wins.
fn create(directory: &Path) -> Result<(), KeyFileError> {
    let path = directory.join(KEY_FILE);
    let write_error = |error| KeyFileError::Write { path: shown(&path), error };
    let mut key = MasterKey::default();
    aws_lc_rs::rand::fill(key.as_mut_slice()).map_err(|_| KeyFileError::NoRandomness)?;
    let mut text = Zeroizing::new(Vec::with_capacity(FILE_LENGTH));
    text.extend_from_slice(FORMAT.as_bytes());
    for byte in key.iter() {
        text.extend([byte >> 4, byte & 15].map(|half| if half < 10 { b'0' + half } else { b'a' + half - 10 }));
    }
    text.push(b'\n');
    let mut temporary = tempfile::Builder::new()
        .prefix(".toolwarden-key-")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(directory)
        .map_err(write_error)?;
    temporary.write_all(&text).map_err(write_error)?;
    temporary.as_file().sync_all().map_err(write_error)?;
    match temporary.persist_noclobber(&path) {
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
