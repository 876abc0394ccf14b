//! The hostile workspace: a directory somebody cloned, beside a home and a config of one's own.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use toolwarden_core::Records;
use toolwarden_sources::{Loaded, Locations, Refusal, WorkspaceTrust, load, trust};

use crate::Fault;

/// Everything one attack needs of a disk.
#[derive(Debug)]
pub struct Workspace {
    _root: TempDir,
    base: PathBuf,
    locations: Locations,
}

impl Workspace {
    /// An empty one.
    ///
    /// # Errors
    /// A directory cannot be made.
    pub fn new() -> Result<Self, Fault> {
        let root = tempfile::tempdir()?;
        // The real path, because trust is kept by real paths.
        let base = fs::canonicalize(root.path())?;
        for directory in ["home/.cursor", "config", "data", "work/.cursor", "elsewhere"] {
            fs::create_dir_all(base.join(directory))?;
        }
        fs::set_permissions(base.join("data"), Permissions::from_mode(0o700))?;
        let locations = Locations {
            home: base.join("home"),
            git_configs: Vec::new(),
            config_dir: base.join("config"),
            data_dir: base.join("data"),
            config: None,
            working_directory: base.join("work"),
            workspace: Some(base.join("work")),
            user: "ada".to_owned(),
            user_id: fs::metadata(&base)?.uid(),
            system_admin_file: None,
            workspace_trust: WorkspaceTrust::Recorded,
        };
        Ok(Self { _root: root, base, locations })
    }

    /// Writes a file below the base.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, relative: &str, content: &str) -> Result<(), Fault> {
        let path = self.base.join(relative);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        Ok(fs::write(path, content)?)
    }

    /// Puts a link that leads to another file below the base in the place of a file.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn link(&self, relative: &str, to: &str) -> Result<(), Fault> {
        fs::remove_file(self.base.join(relative))?;
        Ok(symlink(self.base.join(to), self.base.join(relative))?)
    }

    /// A person looks at the workspace and trusts it as it is.
    ///
    /// # Errors
    /// It cannot be trusted.
    pub fn trust(&self) -> Result<(), Fault> {
        trust::trust(&self.locations, Path::new("."), jiff::Timestamp::UNIX_EPOCH)?;
        Ok(())
    }

    /// What counts here.
    ///
    /// # Errors
    /// Nothing does: something is broken or not trusted.
    pub fn load(&self) -> Result<Loaded, Refusal> {
        load(&self.locations, &Records::default())
    }
}
