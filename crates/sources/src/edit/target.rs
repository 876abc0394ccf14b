//! Where an entry of a user takes effect, and what the layers hold now.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use toolwarden_core::{Layer, Sourced};
use toolwarden_policy::input::PermissionsInput;

use super::{EditError, Write, entries_of, splice, stored_place};
use crate::entries::List;
use crate::files::{self, FileError};
use crate::locations::Locations;
use crate::readers::permissions;
use crate::records::StoredUser;
use crate::stored;
use crate::tree::LARGEST_FILE;
use crate::trust::{FileState, TrustRecords, WorkspaceFile};

/// The layers of one list of one user.
pub(super) struct Situation {
    pub(super) user_file: UserFile,
    pub(super) stored: Vec<String>,
    workspace: Option<WorkspaceList>,
}

/// The list of a trusted workspace file that defines the key.
struct WorkspaceList {
    entries: Vec<String>,
    place: String,
    directory: String,
}

/// Where to write.
pub(super) enum Target {
    UserFile,
    Stored,
    /// Only a workspace file defines the list: no entry of the user's own would count.
    Nowhere {
        entries: Vec<String>,
        place: String,
        directory: String,
    },
}

/// The user's permissions.json, or the place where it would be.
pub(super) struct UserFile {
    path: PathBuf,
    pub(super) label: String,
    /// None where there is no file.
    text: Option<String>,
    defines: bool,
    pub(super) entries: Vec<String>,
}

impl Situation {
    pub(super) fn look(
        locations: &Locations,
        (user, stored): (&str, &mut StoredUser),
        list: List,
    ) -> Result<Self, EditError> {
        let stored = entries_of(stored, list).clone();
        if user != locations.user {
            // The files belong to the operating-system user alone (PERM-1).
            return Ok(Self { user_file: UserFile::none(locations), stored, workspace: None });
        }
        let user_file = UserFile::read(locations, list)?;
        let workspace = read_workspace(locations, list)?;
        Ok(Self { user_file, stored, workspace })
    }

    pub(super) fn target(&self) -> Target {
        match &self.workspace {
            _ if self.user_file.defines => Target::UserFile,
            Some(file) => Target::Nowhere {
                entries: file.entries.clone(),
                place: file.place.clone(),
                directory: file.directory.clone(),
            },
            None => Target::Stored,
        }
    }

    /// Entries of layers that count which still grant what `text` granted.
    pub(super) fn granting(&self, user: &str, list: List, text: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut collect = |entries: &[String], place: &str| {
            let covering = entries.iter().filter(|entry| list.covers(entry, text));
            found.extend(covering.map(|entry| (entry.clone(), place.to_owned())));
        };
        collect(&self.user_file.entries, &self.user_file.label);
        if let Some(file) = &self.workspace {
            collect(&file.entries, &file.place);
        }
        if matches!(self.target(), Target::Stored) {
            collect(&self.stored, &stored_place(user));
        }
        found
    }
}

fn texts(input: &PermissionsInput, list: List) -> Option<Vec<String>> {
    let sourced: &Option<Vec<Sourced<String>>> = match list {
        List::Mcp => &input.mcp_allowlist,
        List::Terminal => &input.terminal_allowlist,
    };
    sourced.as_ref().map(|entries| entries.iter().map(|entry| entry.value.clone()).collect())
}

fn read_workspace(locations: &Locations, list: List) -> Result<Option<WorkspaceList>, EditError> {
    let Some(root) = locations.workspace_root() else { return Ok(None) };
    if root == files::real(&locations.home) {
        return Ok(None);
    }
    let records: TrustRecords = stored::read(locations)?;
    let file = WorkspaceFile::look(locations, &records, &root, ".cursor/permissions.json");
    let counts = matches!(file.state(), FileState::Unchanged | FileState::Changed);
    let Some(trusted) = file.trusted.as_ref().filter(|_| counts) else { return Ok(None) };
    let reading = permissions::read_bytes(&file.label, Layer::WorkspaceFile, trusted);
    // Broken, then or now, it defines every key and grants nothing.
    let broken_now = match &file.present {
        Some(Ok(present)) => permissions::read_bytes(&file.label, Layer::WorkspaceFile, present).broken,
        _ => true,
    };
    let entries = if reading.broken || broken_now { Some(Vec::new()) } else { texts(&reading.value, list) };
    let directory = files::shown(&file.root);
    Ok(entries.map(|entries| WorkspaceList { entries, place: file.label, directory }))
}

impl UserFile {
    fn none(locations: &Locations) -> Self {
        let path = locations.user_permissions();
        let label = files::shown(&path);
        Self { path, label, text: None, defines: false, entries: Vec::new() }
    }

    fn read(locations: &Locations, list: List) -> Result<Self, EditError> {
        let mut file = Self::none(locations);
        // A link is followed, and stays a link: its target is what is replaced.
        file.path = files::real(&file.path);
        let label = file.label.clone();
        let failed = |error| EditError::File { path: label.clone(), error };
        let Some(bytes) = files::read(&file.path, LARGEST_FILE).map_err(failed)? else { return Ok(file) };
        let reading = permissions::read_bytes(&file.label, Layer::UserFile, &bytes);
        if reading.broken {
            return Err(EditError::Broken { path: file.label, findings: reading.findings });
        }
        let entries = texts(&reading.value, list);
        file.defines = entries.is_some();
        file.entries = entries.unwrap_or_default();
        file.text = String::from_utf8(bytes).ok();
        Ok(file)
    }

    pub(super) fn append(&self, list: List, entry: &str, write: Write) -> Result<(), EditError> {
        let text = self.text.as_deref().unwrap_or_default();
        let text = splice::append(text, list.key(), entry).ok_or_else(|| self.unsafe_edit())?;
        self.write(&text, write)
    }

    pub(super) fn remove(&mut self, list: List, entry: &str, write: Write) -> Result<(), EditError> {
        let text = self.text.as_deref().unwrap_or_default();
        let text =
            splice::remove(text, list.key(), |found| list.same(found, entry)).ok_or_else(|| self.unsafe_edit())?;
        self.write(&text, write)?;
        self.entries.retain(|found| !list.same(found, entry));
        Ok(())
    }

    fn unsafe_edit(&self) -> EditError {
        EditError::Unsafe { path: self.label.clone() }
    }

    fn write(&self, text: &str, write: Write) -> Result<(), EditError> {
        let failed = |error| EditError::File { path: self.label.clone(), error };
        // Other programs edit this file too, and know nothing of our lock.
        let now = files::read(&self.path, LARGEST_FILE).map_err(failed)?;
        if now.as_deref() != self.text.as_deref().map(str::as_bytes) {
            return Err(EditError::ChangedMeanwhile { path: self.label.clone() });
        }
        if write == Write::No {
            return Ok(());
        }
        let mode = fs::metadata(&self.path).map_err(|error| failed(FileError::Read(error)))?.mode();
        files::replace(&self.path, text.as_bytes(), mode & 0o7777).map_err(failed)
    }
}
