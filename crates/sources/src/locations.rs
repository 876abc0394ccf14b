//! Where everything is: the one thing the caller looks up in its environment.

use std::path::{Path, PathBuf};

use crate::files;
use crate::stored::Record;
use crate::trust::TrustRecords;

/// The name of the config file.
pub const CONFIG_NAME: &str = "toolwarden.toml";

/// Places and names this room may use; it reads no environment variable itself.
#[derive(Debug, Clone)]
pub struct Locations {
    /// The person's home directory.
    pub home: PathBuf,
    /// Configurations of git that its environment names, besides those at the home and in a repository.
    pub git_configs: Vec<PathBuf>,
    /// Where the user's `toolwarden.toml` and `modes.yaml` are.
    pub config_dir: PathBuf,
    /// Where the owner-only records are.
    pub data_dir: PathBuf,
    /// `--config`.
    pub config: Option<PathBuf>,
    pub working_directory: PathBuf,
    /// Bound at the door; none = no workspace files.
    pub workspace: Option<PathBuf>,
    /// The operating-system user who runs Toolwarden, by name and by number.
    pub user: String,
    pub user_id: u32,
    /// An admin record that counts whatever the config says; used where the file exists.
    pub system_admin_file: Option<PathBuf>,
    pub workspace_trust: WorkspaceTrust,
}

/// Which workspace files count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkspaceTrust {
    /// Those a person trusted with `toolwarden trust`.
    #[default]
    Recorded,
    /// All of them as they are now: `--trust-workspace`, for this run only.
    AsTheyAre,
}

impl Locations {
    #[must_use]
    pub fn user_config(&self) -> PathBuf {
        self.config_dir.join(CONFIG_NAME)
    }

    /// The config that these locations lead to, if there is one: `--config`, the nearest one upwards, or the user's.
    #[must_use]
    pub fn config_file(&self) -> Option<PathBuf> {
        let found =
            || self.working_directory.ancestors().map(|place| place.join(CONFIG_NAME)).find(|path| path.is_file());
        self.config.clone().or_else(found).or_else(|| Some(self.user_config()).filter(|path| path.is_file()))
    }

    #[must_use]
    pub fn user_modes(&self) -> PathBuf {
        self.config_dir.join("modes.yaml")
    }

    #[must_use]
    pub fn user_permissions(&self) -> PathBuf {
        self.home.join(".cursor").join("permissions.json")
    }

    /// What a person trusted of workspaces.
    #[must_use]
    pub fn trust_record(&self) -> PathBuf {
        self.data_dir.join(TrustRecords::FILE)
    }

    /// The workspace's real path.
    #[must_use]
    pub fn workspace_root(&self) -> Option<PathBuf> {
        self.workspace.as_ref().map(|path| files::real(&self.working_directory.join(path)))
    }

    /// The real path of a workspace that a token names: workspaces are known by their real paths.
    #[must_use]
    pub fn bound_workspace(path: &Path) -> PathBuf {
        files::real(path)
    }

    /// A path as written in a file of `base`: `~/` is the home, other relative paths are the base's.
    #[must_use]
    pub fn resolve(&self, base: &Path, written: &str) -> PathBuf {
        match written.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => base.join(written),
        }
    }
}
