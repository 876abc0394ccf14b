//! The disk as the journal uses it: owner-only files that are appended to, cut back and synced.
//!
//! A trait, so that tests can make every one of these steps fail.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The steps that can fail while records are written.
pub(crate) trait Disk: Send + Sync {
    /// Makes a new file to append to; it must not exist.
    fn create(&self, path: &Path) -> io::Result<File>;
    /// Writes some of the bytes at the end of the file and says how many.
    fn append(&self, file: &File, bytes: &[u8]) -> io::Result<usize>;
    fn truncate(&self, file: &File, length: u64) -> io::Result<()>;
    fn sync(&self, file: &File) -> io::Result<()>;
}

/// The disk of the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)
    }

    fn append(&self, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        file.set_len(length)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }
}

/// Writes all of the bytes, or says why not; then some of them may be in the file.
pub(crate) fn append_all(disk: &dyn Disk, file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match disk.append(file, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether the disk takes a few bytes, in a file without a name that is gone at once.
pub(crate) fn try_out(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    let file = tempfile::tempfile_in(directory)?;
    append_all(disk, &file, &[b'\n'; 4096])?;
    disk.sync(&file)
}

/// Makes an owner-only directory where there is none, and refuses one that is not ours alone.
pub(crate) fn private_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    check_private(&fs::metadata(path)?, path, "700")
}

/// SELF-3: what others could read or change is refused, with the way out.
pub(crate) fn check_private(found: &fs::Metadata, path: &Path, wanted_mode: &str) -> io::Result<()> {
    let path = toolwarden_core::name::shown(&path.to_string_lossy()).into_owned();
    let wanted = rustix::process::geteuid().as_raw();
    if found.uid() != wanted {
        let owner = found.uid();
        return Err(io::Error::other(format!("belongs to user {owner}; run `chown {wanted} {path}`")));
    }
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        let told = format!("can be read or changed by others (mode {mode:o}); run `chmod {wanted_mode} {path}`");
        return Err(io::Error::other(told));
    }
    Ok(())
}

/// Reads a small file; none where there is none.
pub(crate) fn read_small(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(64 * 1024).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Replaces a file as a whole: readers see the old content or the new one, also after a crash.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut temporary = tempfile::Builder::new()
        .prefix(".toolwarden-")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(directory)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|failed| failed.error)?;
    sync_directory(directory)
}

pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
