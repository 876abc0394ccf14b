//! Which workspaces a person trusted, file by file (PERM-4).
//!
//! Takes a directory; records the hash and a copy of each workspace file in it. Later each file is
//! compared with its record: only what was trusted counts, whatever the file says by then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolwarden_core::{Digest, Weakness, weak};

use crate::files::{self, FileError};
use crate::finding::Finding;
use crate::glob;
use crate::locations::{CONFIG_NAME, Locations, WorkspaceTrust};
use crate::readers::{SourceKind, check_bytes, config};
use crate::stored::{self, Record, StoredError};
use crate::tree::LARGEST_FILE;

/// The files of a workspace that can count, besides the rule files its config names.
pub const WORKSPACE_FILES: [(&str, SourceKind); 7] = [
    (CONFIG_NAME, SourceKind::Config),
    (".roomodes", SourceKind::Modes),
    (".roo/mcp.json", SourceKind::Servers),
    (".cursor/mcp.json", SourceKind::Servers),
    (".vscode/mcp.json", SourceKind::Servers),
    (".mcp.json", SourceKind::Servers),
    (".cursor/permissions.json", SourceKind::Permissions),
];

/// Why a directory cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("{path} {error}")]
    File { path: String, error: FileError },
    #[error("{0} is not a directory")]
    NotADirectory(String),
    #[error("{0} cannot be trusted: its name or content is not UTF-8")]
    NotText(String),
    #[error(transparent)]
    Stored(#[from] StoredError),
}

/// `trust.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrustRecords {
    pub directories: BTreeMap<String, TrustedDirectory>,
}

/// One trusted directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedDirectory {
    pub trusted_at: Timestamp,
    /// By path relative to the directory.
    pub files: BTreeMap<String, TrustedFile>,
}

/// One file as it was trusted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedFile {
    pub sha256: String,
    pub content: String,
}

impl Record for TrustRecords {
    const FILE: &'static str = "trust.json";
}

/// What `trust` did.
#[derive(Debug)]
pub struct Trusted {
    pub directory: PathBuf,
    /// Relative paths of the files that count from now on.
    pub files: Vec<String>,
    /// What those files have to say: a person should see it now rather than later.
    pub findings: Vec<Finding>,
}

/// The workspace files of a directory as they were read, ready to be trusted.
#[derive(Debug)]
pub struct Ready {
    key: String,
    files: BTreeMap<String, TrustedFile>,
    trusted: Trusted,
}

/// Trusts the workspace files of a directory as they are now.
///
/// # Errors
/// Not a directory, a file that cannot be read or leads outside, or the record cannot be written.
pub fn trust(locations: &Locations, directory: &Path, now: Timestamp) -> Result<Trusted, TrustError> {
    keep(locations, read(locations, directory)?, now)
}

/// Reads the workspace files of a directory; nothing is trusted yet.
///
/// # Errors
/// Not a directory, or a file that cannot be read or leads outside.
pub fn read(locations: &Locations, directory: &Path) -> Result<Ready, TrustError> {
    let (root, key) = canonical(locations, directory)?;
    let mut files = BTreeMap::new();
    let mut findings = Vec::new();
    for (relative, kind) in WORKSPACE_FILES {
        if let Some(content) = read_text(&root, relative)? {
            findings.extend(check_bytes(&files::shown(&root.join(relative)), kind, content.as_bytes()));
            files.insert(relative.to_owned(), content);
        }
    }
    for relative in rule_files(&root, files.get(CONFIG_NAME)) {
        if let Some(content) = read_text(&root, &relative)? {
            files.insert(relative, content);
        }
    }
    let names = files.keys().cloned().collect();
    let files = files.into_iter().map(|(relative, content)| (relative, TrustedFile::of(content))).collect();
    Ok(Ready { key, files, trusted: Trusted { directory: root, files: names, findings } })
}

/// Trusts what was read.
///
/// # Errors
/// The record cannot be written.
pub fn keep(locations: &Locations, ready: Ready, now: Timestamp) -> Result<Trusted, TrustError> {
    let Ready { key, files, trusted } = ready;
    let held = stored::lock(locations)?;
    stored::change(locations, &held, |records: &mut TrustRecords| {
        records.directories.insert(key, TrustedDirectory { trusted_at: now, files })
    })?;
    Ok(trusted)
}

/// Takes the trust away; false where there was none.
///
/// # Errors
/// The record cannot be read or written.
pub fn untrust(locations: &Locations, directory: &Path) -> Result<bool, TrustError> {
    let key = key_of(locations, directory);
    let held = stored::lock(locations)?;
    Ok(stored::change(locations, &held, |records: &mut TrustRecords| records.directories.remove(&key).is_some())?)
}

/// Whether there is trust to take away.
///
/// # Errors
/// The record cannot be read.
pub fn is_trusted(locations: &Locations, directory: &Path) -> Result<bool, TrustError> {
    Ok(list(locations)?.contains_key(&key_of(locations, directory)))
}

/// The directory itself may be gone by now.
fn key_of(locations: &Locations, directory: &Path) -> String {
    files::real(&locations.working_directory.join(directory)).to_string_lossy().into_owned()
}

/// All trusted directories.
///
/// # Errors
/// The record cannot be read.
pub fn list(locations: &Locations) -> Result<BTreeMap<String, TrustedDirectory>, StoredError> {
    stored::read(locations).map(|records: TrustRecords| records.directories)
}

impl TrustedFile {
    fn of(content: String) -> Self {
        Self { sha256: Digest::of_bytes(content.as_bytes()).to_string(), content }
    }
}

fn canonical(locations: &Locations, directory: &Path) -> Result<(PathBuf, String), TrustError> {
    let path = locations.working_directory.join(directory);
    let root = std::fs::canonicalize(&path)
        .map_err(|error| TrustError::File { path: files::shown(&path), error: FileError::Read(error) })?;
    if !root.is_dir() {
        return Err(TrustError::NotADirectory(files::shown(&root)));
    }
    let key = root.to_str().ok_or_else(|| TrustError::NotText(files::shown(&root)))?.to_owned();
    Ok((root, key))
}

fn read_text(root: &Path, relative: &str) -> Result<Option<String>, TrustError> {
    let path = root.join(relative);
    let label = files::shown(&path);
    let bytes = files::read_inside(root, &path, LARGEST_FILE)
        .map_err(|error| TrustError::File { path: label.clone(), error })?;
    bytes.map(String::from_utf8).transpose().map_err(|_| TrustError::NotText(label))
}

/// The rule files a workspace's config names, relative to it.
fn rule_files(root: &Path, config: Option<&String>) -> Vec<String> {
    let Some(content) = config else { return Vec::new() };
    let rules = config::read_bytes(CONFIG_NAME, config::Standing::Workspace, content.as_bytes()).value.rules;
    let patterns = rules.files.iter().filter(|pattern| !glob::leaves_base(&pattern.value));
    let paths = patterns.flat_map(|pattern| glob::expand(root, &pattern.value));
    paths.filter_map(|path| path.strip_prefix(root).ok()?.to_str().map(str::to_owned)).collect()
}

/// A workspace file and what was trusted of it.
#[derive(Debug)]
pub(crate) struct WorkspaceFile {
    pub(crate) root: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) label: String,
    /// What a person trusted.
    pub(crate) trusted: Option<Vec<u8>>,
    /// What is there now; none where there is no file.
    pub(crate) present: Option<Result<Vec<u8>, FileError>>,
}

/// How a workspace file stands to its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileState {
    Missing,
    /// It was trusted and is gone: its grants went with it, its restrictions stay.
    Deleted,
    Unchanged,
    Changed,
    Untrusted,
}

impl WorkspaceFile {
    /// Looks at one file of a canonical directory.
    pub(crate) fn look(locations: &Locations, records: &TrustRecords, root: &Path, relative: &str) -> Self {
        let path = root.join(relative);
        let present = files::read_inside(root, &path, LARGEST_FILE).transpose();
        let record = root.to_str().and_then(|key| records.directories.get(key)?.files.get(relative));
        let is_workspace = locations.workspace_root().is_some_and(|workspace| workspace == root);
        let trusted = match (locations.workspace_trust, &present) {
            (WorkspaceTrust::AsTheyAre, Some(Ok(bytes))) if is_workspace => Some(bytes.clone()),
            (_, Some(Ok(bytes))) if weak::is(Weakness::Trust) => Some(bytes.clone()),
            _ => record.map(|record| record.content.clone().into_bytes()),
        };
        Self { root: root.to_path_buf(), label: files::shown(&path), path, trusted, present }
    }

    pub(crate) fn state(&self) -> FileState {
        match (&self.trusted, &self.present) {
            (None, None) => FileState::Missing,
            (Some(_), None) => FileState::Deleted,
            (None, Some(_)) => FileState::Untrusted,
            (Some(trusted), Some(Ok(present))) if trusted == present => FileState::Unchanged,
            (Some(_), Some(_)) => FileState::Changed,
        }
    }

    /// What a person can type to make the file count as it is.
    pub(crate) fn remedy(&self) -> String {
        format!("look at it, then run `toolwarden trust {}`", files::shown(&self.root))
    }
}
