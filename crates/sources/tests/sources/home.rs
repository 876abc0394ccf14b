//! A person's home, config, data and workspace in a directory that vanishes afterwards.

use std::cell::RefCell;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use toolwarden_core::records::Place as Spot;
use toolwarden_core::{Record, Records};
use toolwarden_sources::edit::{Added, EditError, Removed, Write, add_entry, remove_entry};
use toolwarden_sources::records::{StoredUser, lists_of};
use toolwarden_sources::{Finding, List, Loaded, Locations, Refusal, WorkspaceTrust, load};

/// Everything one test needs of a disk.
pub(crate) struct Home {
    root: tempfile::TempDir,
    /// What the store holds.
    pub(crate) store: RefCell<Records>,
    pub(crate) locations: Locations,
}

pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

impl Home {
    pub(crate) fn new() -> Result<Self, std::io::Error> {
        let root = tempfile::tempdir()?;
        // The real path, because trust and findings show real paths.
        let base = fs::canonicalize(root.path())?;
        for directory in ["home/.cursor", "config", "data", "work"] {
            fs::create_dir_all(base.join(directory))?;
        }
        fs::set_permissions(base.join("data"), Permissions::from_mode(0o700))?;
        let locations = Locations {
            git_configs: Vec::new(),
            home: base.join("home"),
            config_dir: base.join("config"),
            data_dir: base.join("data"),
            config: None,
            working_directory: base.join("work"),
            workspace: Some(base.join("work")),
            user: "me".to_owned(),
            user_id: fs::metadata(&base)?.uid(),
            system_admin_file: None,
            workspace_trust: WorkspaceTrust::Recorded,
        };
        Ok(Self { root, locations, store: RefCell::default() })
    }

    pub(crate) fn base(&self) -> PathBuf {
        fs::canonicalize(self.root.path()).unwrap_or_else(|_| self.root.path().to_path_buf())
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.base().join(relative)
    }

    /// Writes a file below the base; data files are owner-only.
    pub(crate) fn write(&self, relative: &str, content: impl AsRef<[u8]>) -> Result<PathBuf, std::io::Error> {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        fs::write(&path, content)?;
        if relative.starts_with("data/") {
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        }
        Ok(path)
    }

    pub(crate) fn read(&self, relative: &str) -> Result<String, std::io::Error> {
        fs::read_to_string(self.path(relative))
    }

    pub(crate) fn load(&self) -> Result<Loaded, Refusal> {
        load(&self.locations, &self.store.borrow())
    }

    /// Keeps a record.
    pub(crate) fn keep(&self, place: Spot, content: serde_json::Value) {
        self.store.borrow_mut().by_place.insert(place, Record { version: 1, content });
    }

    pub(crate) fn user(&self, user: &str) -> StoredUser {
        let store = self.store.borrow();
        let kept = store.get(&lists_of(user)).map(|record| record.content.clone());
        kept.and_then(|content| serde_json::from_value(content).ok()).unwrap_or_default()
    }

    /// Changes what is stored for a user, as the clerk does.
    fn with_user<T>(&self, user: &str, edit: impl FnOnce(&mut StoredUser) -> T) -> T {
        let mut lists = self.user(user);
        let done = edit(&mut lists);
        self.keep(lists_of(user), serde_json::to_value(lists).unwrap_or_default());
        done
    }

    pub(crate) fn add(&self, user: &str, list: List, text: &str) -> Result<Added, EditError> {
        self.with_user(user, |lists| add_entry(&self.locations, (user, lists), (list, text), Write::Yes))
    }

    pub(crate) fn remove(&self, user: &str, list: List, text: &str) -> Result<Removed, EditError> {
        self.with_user(user, |lists| remove_entry(&self.locations, (user, lists), (list, text), Write::Yes))
    }

    /// Trusts the workspace as it is.
    pub(crate) fn trust(&self) -> Outcome {
        toolwarden_sources::trust::trust(&self.locations, Path::new("."), jiff::Timestamp::UNIX_EPOCH)?;
        Ok(())
    }

    /// Findings with paths relative to the base.
    pub(crate) fn shown(&self, findings: &[Finding]) -> Vec<String> {
        let base = format!("{}/", self.base().display());
        findings.iter().map(|finding| finding.to_string().replace(&base, "")).collect()
    }
}
