//! What belongs to Toolwarden (SELF-1): the paths no call may change without a person, and the keys and data no call
//! may read either. Each as it is named and as it really is.

use std::path::{Path, PathBuf};

use super::{Loading, choose};
use crate::lookup;
use crate::readers::SourceKind;

/// The key file, where the config names no other.
const KEY_FILE: &str = "master.key";

/// Files by which clients run hooks, start servers or let calls pass, in the home or in a workspace.
const CLIENT_FILES: [&str; 13] = [
    ".cursor/hooks.json",
    ".cursor/mcp.json",
    ".cursor/permissions.json",
    ".cursor/cli.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".mcp.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".vscode/mcp.json",
    ".roo/mcp.json",
    ".roomodes",
];
/// And those that only the home has.
const CLIENT_FILES_AT_HOME: [&str; 3] = [".cursor/cli-config.json", ".claude.json", ".gemini/policies"];

impl Loading<'_> {
    /// What no call may change without a person.
    pub(super) fn protected_paths(&self, chosen: &choose::Chosen) -> Vec<PathBuf> {
        let bases = [Some(&self.locations.home), self.workspace.as_ref()];
        let mut paths = vec![self.locations.config_dir.clone(), self.locations.user_permissions()];
        paths.extend(self.secret_paths(chosen));
        paths.extend(chosen.path.clone());
        // Rule files and the admin record, wherever they are.
        let kinds = [SourceKind::Rules, SourceKind::Admin];
        let named = self.sources.iter().filter(|source| kinds.contains(&source.kind));
        paths.extend(named.map(|source| source.path.clone()));
        paths.extend(self.trusted_files.iter().cloned());
        // Those of every trusted workspace: a token may be bound to another one than this.
        let recorded = self.records.directories.iter();
        paths.extend(recorded.flat_map(|(root, one)| one.files.keys().map(|file| Path::new(root).join(file))));
        paths.extend(bases.into_iter().flatten().flat_map(|base| CLIENT_FILES.iter().map(|file| base.join(file))));
        paths.extend(CLIENT_FILES_AT_HOME.iter().map(|file| self.locations.home.join(file)));
        with_real(paths)
    }

    /// What no call may read without a person: the data directory, the store where it is a file, and every key file.
    pub(super) fn secret_paths(&self, chosen: &choose::Chosen) -> Vec<PathBuf> {
        let config = &chosen.config;
        let mut paths = vec![self.locations.data_dir.clone(), self.locations.config_dir.join(KEY_FILE)];
        let key = config.vault.key.as_deref().and_then(|key| key.strip_prefix("file:"));
        paths.extend(key.map(|written| self.locations.resolve(&chosen.store_directory, written)));
        let url = config.store.url.as_ref().map(|url| url.reveal_to_upstream());
        let file = url.and_then(|url| url.strip_prefix("sqlite:")).map(|file| file.trim_start_matches("//"));
        let file = file.and_then(|file| file.split('?').next()).filter(|file| !file.is_empty() && *file != ":memory:");
        paths.extend(file.map(|file| self.locations.data_dir.join(file)));
        let key = config.gateway.tls.as_ref().and_then(|files| files.key.as_deref());
        paths.extend(key.map(|written| self.locations.resolve(&chosen.directory, written)));
        with_real(paths)
    }
}

fn with_real(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let real: Vec<_> = paths.iter().map(|path| lookup::real(path)).collect();
    paths.extend(real);
    paths.retain(|path| path.is_absolute());
    paths.sort();
    paths.dedup();
    paths
}
