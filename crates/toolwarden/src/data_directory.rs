//! Whether whoever runs this can use the data directory: what stands in the way, where, and what to do about it.

use std::fmt;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, access};
use rustix::io::Errno;
use toolwarden_core::name::shown;
use toolwarden_sources::Locations;

const ANOTHER: &str = "choose another directory with --data-dir";

/// What stands in the way.
#[derive(Debug)]
pub struct Fault {
    pub what: String,
    pub next: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; {}", self.what, self.next)
    }
}

impl std::error::Error for Fault {}

/// Why it cannot be used; none where it can, or can be made.
pub fn fault(locations: &Locations) -> Option<Fault> {
    let path = &locations.data_dir;
    let label = format!("the data directory {}", shown(&path.to_string_lossy()));
    let own = locations.user_id;
    let fault = |what: String, next: String| Some(Fault { what, next: format!("{next}{ANOTHER}") });
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return unmade(path, &label, own),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let what = format!("{label} cannot be looked at by user {own}: {error}");
            return fault(what, "run this as the user whose it is, or ".to_owned());
        }
        Err(error) => return fault(format!("{label} cannot be used: {error}"), "correct the path, or ".to_owned()),
    };
    if !found.is_dir() {
        return fault(format!("{label} is a file, not a directory"), String::new());
    }
    if found.uid() != own {
        let what = format!("{label} belongs to user {}, and this is user {own}", found.uid());
        return fault(what, "run this as that user, or ".to_owned());
    }
    match access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => None,
        Err(Errno::ROFS) => {
            let what = format!("{label} cannot be written: its file system is mounted for reading only");
            fault(what, "mount it for writing, or ".to_owned())
        }
        Err(error) => {
            let what = format!("{label} cannot be written (mode {:o}): {error}", found.mode() & 0o777);
            fault(what, format!("run `chmod 700 {}`, or ", shown(&path.to_string_lossy())))
        }
    }
}

/// Why one that is not there cannot be made.
fn unmade(path: &Path, label: &str, own: u32) -> Option<Fault> {
    let above = path.ancestors().skip(1).find(|above| above.exists())?;
    let error = access(above, Access::WRITE_OK | Access::EXEC_OK).err()?;
    let above = shown(&above.to_string_lossy()).into_owned();
    let what = format!("{label} cannot be made in {above} by user {own}: {error}");
    Some(Fault { what, next: format!("make it for this user, or {ANOTHER}") })
}
