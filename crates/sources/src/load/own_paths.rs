//! What belongs to Toolwarden (SELF-1): the paths no call may change without a person, and the keys and data no call
//! may read either. Each as it is named and as it really is.

use std::path::{Path, PathBuf};

use super::{Loading, choose};
use crate::lookup;
use crate::readers::SourceKind;

/// The key file, where the config names no other.
const KEY_FILE: &str = "master.key";

/// Files and directories by which clients run hooks, start servers or let calls pass, in the home or in a workspace.
const CLIENT_FILES: [&str; 33] = [
    ".cursor/hooks.json",
    ".cursor/hooks",
    ".cursor/mcp.json",
    ".cursor/permissions.json",
    ".cursor/cli.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    ".mcp.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".codex/rules",
    ".gemini/settings.json",
    ".gemini/policies",
    ".gemini/extensions",
    ".gemini/hooks",
    ".vscode/settings.json",
    ".vscode/mcp.json",
    ".github/hooks",
    ".copilot",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".windsurf/hooks.json",
    ".windsurf/mcp.json",
    ".windsurf/mcp_config.json",
    ".roo/mcp.json",
    ".roomodes",
    ".kilo",
    ".kilocode/mcp.json",
    ".kilocodemodes",
    "kilo.json",
    "kilo.jsonc",
];
/// And those that only the home has.
const CLIENT_FILES_AT_HOME: [&str; 10] = [
    ".cursor/cli-config.json",
    ".claude.json",
    ".claude/plugins",
    ".codex/requirements.toml",
    ".gemini/trustedFolders.json",
    ".codeium/windsurf",
    ".config/opencode",
    ".config/kilo",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
];
/// Where editors keep what counts in every workspace, and the files of it.
const EDITORS_AT_HOME: [&str; 2] = [".config", "Library/Application Support"];
const EDITORS: [&str; 5] = ["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"];
const EDITOR_FILES: [&str; 3] =
    ["User/settings.json", "User/mcp.json", "User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"];
/// What administrators of a machine say to its clients.
const CLIENT_FILES_OF_THE_MACHINE: [&str; 5] = [
    "/etc/cursor/hooks.json",
    "/etc/claude-code/managed-settings.json",
    "/etc/claude-code/managed-settings.d",
    "/etc/codex/requirements.toml",
    "/etc/gemini-cli/policies",
];

/// What clients keep in a home that counts in every workspace.
fn of_editors(home: &Path) -> impl Iterator<Item = PathBuf> {
    EDITORS_AT_HOME.iter().flat_map(move |kept| {
        EDITORS.iter().flat_map(move |editor| {
            let directory = home.join(kept).join(editor);
            EDITOR_FILES.iter().map(move |file| directory.join(file))
        })
    })
}

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
        paths.extend(of_editors(&self.locations.home));
        paths.extend(CLIENT_FILES_OF_THE_MACHINE.iter().map(PathBuf::from));
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
