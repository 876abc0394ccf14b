//! Files from and to the disk: bounded reading, atomic replacing, owner-only checks.
//!
//! Takes paths that may be anything; gives bytes of regular files of bounded size; refuses
//! directories, pipes, sockets and devices without waiting on them.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use toolwarden_core::{Weakness, weak};

/// Opening a pipe must not wait for its other end, even when it took a file's place just now.
#[cfg(target_os = "linux")]
const DO_NOT_WAIT: i32 = 0o4000;
#[cfg(not(target_os = "linux"))]
const DO_NOT_WAIT: i32 = 0x0004;

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot be read: {0}")]
    Read(io::Error),
    #[error("cannot be written: {0}")]
    Write(io::Error),
    #[error("is not a regular file")]
    NotRegular,
    #[error("is not a directory; choose another with --data-dir")]
    NotADirectory,
    #[error("is larger than {0} MiB")]
    TooLarge(u64),
    #[error("leads outside the workspace through a symbolic link")]
    LeavesWorkspace,
    #[error("belongs to user {found}, not to user {wanted}; run `chown {wanted} {path}`")]
    WrongOwner { path: String, found: u32, wanted: u32 },
    #[error("can be read or changed by others (mode {mode:o}); run `chmod {wanted:o} {path}`")]
    WrongMode { path: String, mode: u32, wanted: u32 },
}

/// Reads a regular file of at most `largest` bytes; none where there is no file.
pub(crate) fn read(path: &Path, largest: u64) -> Result<Option<Vec<u8>>, FileError> {
    let Some(file) = open(path)? else { return Ok(None) };
    read_open(&file, largest).map(Some)
}

/// Opens a regular file; none where there is none.
pub(crate) fn open(path: &Path) -> Result<Option<File>, FileError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => return Err(FileError::NotRegular),
        Ok(_) => {}
        Err(error) if is_missing(&error) => return broken_link(path, error),
        Err(error) => return Err(FileError::Read(error)),
    }
    let file = match OpenOptions::new().read(true).custom_flags(DO_NOT_WAIT).open(path) {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(FileError::Read(error)),
    };
    // Asked again of what was really opened: the path may lead elsewhere by now.
    if file.metadata().map_err(FileError::Read)?.is_file() { Ok(Some(file)) } else { Err(FileError::NotRegular) }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A link that leads nowhere is not "no file": somebody meant something by it.
fn broken_link(path: &Path, error: io::Error) -> Result<Option<File>, FileError> {
    if fs::symlink_metadata(path).is_ok() { Err(FileError::Read(error)) } else { Ok(None) }
}

pub(crate) fn read_open(file: &File, largest: u64) -> Result<Vec<u8>, FileError> {
    let too_large = || FileError::TooLarge(largest / (1024 * 1024));
    let size = file.metadata().map_err(FileError::Read)?.len();
    if size > largest {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(largest + 1).read_to_end(&mut bytes).map_err(FileError::Read)?;
    if bytes.len() as u64 > largest { Err(too_large()) } else { Ok(bytes) }
}

/// Reads a file that came with a workspace: a link inside may not lead out of it.
pub(crate) fn read_inside(root: &Path, path: &Path, largest: u64) -> Result<Option<Vec<u8>>, FileError> {
    let Some(file) = open(path)? else { return Ok(None) };
    let real = fs::canonicalize(path).map_err(FileError::Read)?;
    // Compared by identity, so that the path cannot lead out for the opening and in for the check.
    let opened = file.metadata().map_err(FileError::Read)?;
    let checked = fs::metadata(&real).map_err(FileError::Read)?;
    let leaves = !real.starts_with(root) || (opened.dev(), opened.ino()) != (checked.dev(), checked.ino());
    if leaves && !weak::is(Weakness::Trust) {
        return Err(FileError::LeavesWorkspace);
    }
    read_open(&file, largest).map(Some)
}

/// Refuses a record that others could read or change.
pub(crate) fn check_owner_only(path: &Path, user_id: u32, wanted_mode: u32) -> Result<(), FileError> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if is_missing(&error) => return Ok(()),
        Err(error) => return Err(FileError::Read(error)),
    };
    if wanted_mode == 0o700 && !found.is_dir() {
        return Err(FileError::NotADirectory);
    }
    if found.uid() != user_id {
        return Err(FileError::WrongOwner { path: shown(path), found: found.uid(), wanted: user_id });
    }
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(FileError::WrongMode { path: shown(path), mode, wanted: wanted_mode });
    }
    Ok(())
}

/// Replaces a file as a whole: other readers see the old content or the new one, also after a crash.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut temporary = tempfile::Builder::new()
        .prefix(".toolwarden-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(directory)
        .map_err(FileError::Write)?;
    temporary.write_all(bytes).map_err(FileError::Write)?;
    keep_owner(path, temporary.as_file())?;
    // The process's umask may have taken bits away that the file had before.
    temporary.as_file().set_permissions(Permissions::from_mode(mode)).map_err(FileError::Write)?;
    temporary.as_file().sync_all().map_err(FileError::Write)?;
    temporary.persist(path).map_err(|failed| FileError::Write(failed.error))?;
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(FileError::Write)
}

/// Root editing somebody's file must not take it away from them.
fn keep_owner(path: &Path, new: &File) -> Result<(), FileError> {
    let (Ok(old), Ok(fresh)) = (fs::metadata(path), new.metadata()) else { return Ok(()) };
    if (old.uid(), old.gid()) == (fresh.uid(), fresh.gid()) {
        return Ok(());
    }
    fchown(new, Some(old.uid()), Some(old.gid())).map_err(FileError::Write)
}

/// Makes an owner-only directory where there is none.
pub(crate) fn make_private_directory(path: &Path) -> Result<(), FileError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(FileError::Write)
}

/// Whether every user of the machine may change a file.
pub(crate) fn is_open_to_all(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.mode() & 0o002 != 0)
}

/// The real path where the file exists, else the path as given.
pub(crate) fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

pub(crate) fn shown(path: &Path) -> String {
    toolwarden_core::name::shown(&path.to_string_lossy()).into_owned()
}
