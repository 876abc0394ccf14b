//! The data directory has one writer at a time: an exclusive lock on its file `lock`.
//!
//! Takes the directory and how long to wait; gives a guard that frees the lock when dropped.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use crate::files;
use crate::stored::StoredError;

/// How often a taken lock is asked for again.
const STEP: Duration = Duration::from_millis(10);
/// How long edits wait: they hold the lock for a few milliseconds each.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Held while the data directory is being changed.
#[derive(Debug)]
pub struct DataLock {
    _file: File,
}

impl DataLock {
    /// Takes the lock of a data directory that exists.
    ///
    /// # Errors
    /// Somebody else holds it longer than `patience`, or the lock file cannot be opened.
    pub fn take(data_dir: &Path, patience: Duration) -> Result<Self, StoredError> {
        let path = data_dir.join("lock");
        let error = |error: std::io::Error| StoredError::File {
            path: files::shown(&path),
            error: files::FileError::Write(error),
        };
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(error)?;
        let mut waited = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(failed)) => return Err(error(failed)),
                Err(TryLockError::WouldBlock) if waited >= patience => {
                    return Err(StoredError::Locked { path: files::shown(data_dir) });
                }
                Err(TryLockError::WouldBlock) => {
                    std::thread::park_timeout(STEP);
                    waited += STEP;
                }
            }
        }
    }
}
