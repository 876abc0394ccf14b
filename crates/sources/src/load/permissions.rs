//! The permissions.json files of the operating-system user (PERM-1 to PERM-4).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolwarden_core::Layer;
use toolwarden_policy::input::{LocalInput, PermissionsInput};

use super::{Loading, SourceState};
use crate::files;
use crate::finding::{Finding, Severity};
use crate::readers::{SourceKind, permissions};
use crate::tree::LARGEST_FILE;
use crate::trust::{FileState, WorkspaceFile};

const WORKSPACE_FILE: &str = ".cursor/permissions.json";

/// The user's file, and that of every workspace a call can be bound to: this one, and every trusted one, because a token
/// names its own.
pub(super) fn read(loading: &mut Loading<'_>) -> LocalInput {
    let mut local = LocalInput {
        user: loading.locations.user.clone(),
        files: read_user(loading).into_iter().collect(),
        workspaces: BTreeMap::new(),
        workspace: loading.workspace.clone(),
    };
    if let Some(root) = loading.workspace.clone() {
        local.workspaces.extend(read_workspace(loading, &root).map(|file| (root, file)));
    }
    let trusted = loading.records.directories.iter().filter(|(_, one)| one.files.contains_key(WORKSPACE_FILE));
    let mut others: Vec<PathBuf> = trusted.map(|(root, _)| PathBuf::from(root)).collect();
    others.retain(|root| local.workspace.as_ref() != Some(root));
    for root in others {
        local.workspaces.extend(read_elsewhere(loading, &root).map(|file| (root, file)));
    }
    local
}

/// The same as `read_workspace`; what is wrong there is only noted, since most calls happen elsewhere.
fn read_elsewhere(loading: &mut Loading<'_>, root: &Path) -> Option<PermissionsInput> {
    let before = loading.findings.len();
    let found = read_workspace(loading, root);
    loading.findings.iter_mut().skip(before).for_each(|finding| finding.severity = Severity::Note);
    found
}

fn broken() -> PermissionsInput {
    PermissionsInput { broken: true, ..PermissionsInput::default() }
}

fn read_user(loading: &mut Loading<'_>) -> Option<PermissionsInput> {
    let path = loading.locations.user_permissions();
    let label = files::shown(&path);
    match files::read(&path, LARGEST_FILE) {
        Ok(Some(bytes)) => {
            let reading = permissions::read_bytes(&label, Layer::UserFile, &bytes);
            // Broken, it grants nothing and stops nothing else (PERM-3).
            loading.source(
                &path,
                SourceKind::Permissions,
                if reading.broken { SourceState::Broken } else { SourceState::Used },
            );
            loading.findings.extend(reading.findings);
            loading.warn_of_open_file(&path);
            Some(reading.value)
        }
        Ok(None) => {
            loading.source(&path, SourceKind::Permissions, SourceState::Missing);
            None
        }
        Err(error) => {
            loading.findings.push(Finding::whole(Severity::Error, "unreadable", &label, error.to_string()));
            loading.source(&path, SourceKind::Permissions, SourceState::Broken);
            Some(broken())
        }
    }
}

fn read_workspace(loading: &mut Loading<'_>, root: &Path) -> Option<PermissionsInput> {
    if root == files::real(&loading.locations.home) {
        // In the home directory itself both are one file, which is the user's.
        return None;
    }
    let file = WorkspaceFile::look(loading.locations, &loading.records, root, WORKSPACE_FILE);
    loading.announce(&file, SourceKind::Permissions);
    let trusted = file.trusted.as_ref()?;
    loading.trusted_files.push(file.path.clone());
    let reading = permissions::read_bytes(&file.label, Layer::WorkspaceFile, trusted);
    match file.state() {
        FileState::Unchanged => {
            let state = if reading.broken { SourceState::Broken } else { SourceState::Used };
            loading.source(&file.path, SourceKind::Permissions, state);
            loading.findings.extend(reading.findings);
            Some(reading.value)
        }
        // What is broken now grants nothing at once, whatever was trusted before.
        FileState::Changed if is_broken_now(loading, &file) => Some(broken()),
        FileState::Changed => Some(loading.glance(reading)),
        FileState::Missing | FileState::Deleted | FileState::Untrusted => None,
    }
}

fn is_broken_now(loading: &mut Loading<'_>, file: &WorkspaceFile) -> bool {
    match &file.present {
        Some(Ok(present)) => {
            let reading = permissions::read_bytes(&file.label, Layer::WorkspaceFile, present);
            let broken = reading.broken;
            loading.findings.extend(reading.findings.into_iter().filter(|_| broken));
            broken
        }
        _ => true,
    }
}
