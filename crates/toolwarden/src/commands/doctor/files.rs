//! Whether the data and config directory and the key belong to the owner alone.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use toolwarden_core::Keyring;
use toolwarden_core::name::shown;
use toolwarden_sources::Locations;
use toolwarden_vault::{FileKeyring, KEY_FILE};

use super::Check;
use crate::{keys, store};

pub(super) fn check(locations: &Locations) -> Vec<Check> {
    vec![private("data directory", &locations.data_dir, locations.user_id, 0o077), config_directory(locations)]
}

/// Others may read the config; whoever writes there could put another key in place.
pub(super) fn config_directory(locations: &Locations) -> Check {
    private("config directory", &locations.config_dir, locations.user_id, 0o022)
}

fn private(name: &str, path: &Path, user_id: u32, forbidden: u32) -> Check {
    let label = shown(&path.to_string_lossy()).into_owned();
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Check::ok(name, format!("{label} is made when first needed"));
        }
        Err(error) => {
            return Check::problem(name, format!("{label} cannot be looked at: {error}"), "check its parents");
        }
    };
    if !found.is_dir() {
        return Check::problem(name, format!("{label} is not a directory"), "move it away");
    }
    if found.uid() != user_id {
        let message = format!("{label} belongs to user {}, not to user {user_id}", found.uid());
        return Check::problem(name, message, format!("run `chown -R {user_id} {label}`"));
    }
    let mode = found.mode() & 0o777;
    if mode & forbidden != 0 {
        let message = format!("{label} is open to others (mode {mode:o})");
        return Check::problem(name, message, format!("run `chmod 700 {label}`"));
    }
    if mode & 0o700 != 0o700 {
        let message = format!("{label} is shut to its owner, too (mode {mode:o})");
        return Check::problem(name, message, format!("run `chmod 700 {label}`"));
    }
    let meaning = if mode & 0o077 == 0 { "is the owner's alone" } else { "can be changed by its owner alone" };
    Check::ok(name, format!("{label} {meaning} (mode {mode:o})"))
}

/// The key file of a house whose store has no keys yet.
pub(super) fn key(locations: &Locations) -> (Option<Arc<dyn Keyring>>, Check) {
    let path = locations.config_dir.join(KEY_FILE);
    let label = shown(&path.to_string_lossy()).into_owned();
    if std::fs::symlink_metadata(&path).is_err() {
        if locations.data_dir.join("journal").is_dir() {
            let message = format!("{label} is missing, and there is a record that was signed with it");
            let next = "restore it from a backup: a new key cannot verify what exists";
            return (None, Check::problem("key", message, next));
        }
        return (None, Check::ok("key", "is made when first needed"));
    }
    let lost = store::here(locations).and_then(|choice| keys::of_lost_store(locations, &choice));
    let keyring: anyhow::Result<Arc<dyn Keyring>> = match lost {
        Ok(Some(ring)) => Ok(Arc::new(ring)),
        Ok(None) => FileKeyring::open(&locations.config_dir).map(|keyring| Arc::new(keyring) as _).map_err(Into::into),
        Err(error) => Err(error),
    };
    match keyring {
        Ok(keyring) => (Some(keyring), Check::ok("key", format!("{label} can be used; keep a backup of it"))),
        Err(error) => {
            let next = "do what the message says, then run doctor again";
            (None, Check::problem("key", format!("{error:#}"), next))
        }
    }
}
