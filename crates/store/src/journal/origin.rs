//! The name of a journal root, for an index that several of them are delivered to.
//!
//! Nodes are numbered in each root, so `serve-1` alone would be many. Made once, at random, and kept in the root.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::rand::{GetRandomFlags, getrandom};

const FILE: &str = "origin";

/// The name of a journal root; makes both where there are none.
///
/// # Errors
/// It cannot be read or written, or is not a name.
pub fn origin(root: &Path) -> io::Result<String> {
    super::disk::private_directory(root)?;
    let path = root.join(FILE);
    match fs::read_to_string(&path) {
        Ok(name) if is_name(&name) => return Ok(name),
        Ok(_) => return Err(io::Error::other(format!("{} holds no name; restore it from a backup", path.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut bytes = [0_u8; 6];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(root)?;
    file.write_all(name.as_bytes())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(&path) {
        Ok(_) => Ok(name),
        // Another process was first.
        Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => fs::read_to_string(&path),
        Err(failed) => Err(failed.error),
    }
}

fn is_name(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
