//! Adding and removing allowlist entries where they take effect (ALLOW-4).
//!
//! Takes an entry as a person typed it; changes the user's permissions.json in place, comments and
//! all, where that file defines the list, else the stored list. Where only a workspace file defines it, nothing
//! changes: a new list in the user's file would take every stored grant away. Invalid entries change nothing.
//! Every edit can be tried first, which says what it would do and writes nothing, so that only what is about to happen
//! is put on record as that.

mod splice;
mod target;

use toolwarden_core::name;

use crate::entries::List;
use crate::files::FileError;
use crate::finding::Finding;
use crate::locations::Locations;
use crate::records::{StoredUser, label, lists_of};
use crate::stored::{self, StoredError};
use target::{Situation, Target};

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("`{entry}` cannot be added: {fault}")]
    Invalid { entry: String, fault: String },
    #[error("{path} is broken, so it is not edited; repair it first:\n{}", .findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Broken { path: String, findings: Vec<Finding> },
    #[error("{path} {error}")]
    File { path: String, error: FileError },
    #[error("{path} could not be edited without changing more than the entry; edit it by hand")]
    Unsafe { path: String },
    #[error("{path} was changed by another program just now; try again")]
    ChangedMeanwhile { path: String },
    #[error(
        "{place} defines this list, so an entry of your own would not count in this workspace; nothing was changed. \
         Either add `{entry}` to that file and run `toolwarden trust {directory}`, or define the list in {user_file} \
         yourself, which then replaces your stored entries everywhere, or add it for other workspaces with `--workspace DIR`"
    )]
    OnlyWorkspace { place: String, entry: String, directory: String, user_file: String },
    #[error(transparent)]
    Stored(#[from] StoredError),
}

/// Whether an edit is only tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    No,
    Yes,
}

/// What adding did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// Written to this place, which is a file or the store.
    Added {
        place: String,
        in_file: bool,
    },
    AlreadyThere {
        entry: String,
        place: String,
    },
    CoveredBy {
        entry: String,
        place: String,
    },
}

/// What removing did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    /// Places it was removed from; empty = it was nowhere.
    pub places: Vec<String>,
    /// Whether a file is among them.
    pub in_file: bool,
    /// What still grants the same, as entry and place.
    pub still_granted_by: Vec<(String, String)>,
}

/// Adds an entry to the list where it takes effect for this user: to their file, or to what is stored for them, which
/// the caller keeps.
///
/// # Errors
/// The entry is invalid, the file is broken, or something cannot be read or written.
pub fn add_entry(
    locations: &Locations,
    (user, stored): (&str, &mut StoredUser),
    (list, text): (List, &str),
    write: Write,
) -> Result<Added, EditError> {
    if let Some(fault) = list.fault(text) {
        return Err(EditError::Invalid { entry: name::shown(text).into_owned(), fault });
    }
    let _held = stored::lock(locations)?;
    let situation = Situation::look(locations, (user, stored), list)?;
    match situation.target() {
        Target::Stored => Ok(add_stored((user, stored), list, text)),
        Target::Nowhere { entries, place, directory } => match already(list, &entries, text, &place) {
            Some(found) => Ok(found),
            None => Err(EditError::OnlyWorkspace {
                place,
                entry: name::shown(text).into_owned(),
                directory,
                user_file: situation.user_file.label,
            }),
        },
        Target::UserFile => {
            let file = situation.user_file;
            if let Some(found) = already(list, &file.entries, text, &file.label) {
                return Ok(found);
            }
            file.append(list, text, write)?;
            Ok(Added::Added { place: file.label, in_file: true })
        }
    }
}

/// Why an entry that a user adds would change nothing, seen without writing anything; none where it would count, or be
/// there already.
#[must_use]
pub fn obstacle(locations: &Locations, user: &str, (list, text): (List, &str)) -> Option<EditError> {
    let situation = match Situation::look(locations, (user, &mut StoredUser::default()), list) {
        Ok(situation) => situation,
        Err(error) => return Some(error),
    };
    match situation.target() {
        Target::Nowhere { entries, place, directory } if already(list, &entries, text, &place).is_none() => {
            Some(EditError::OnlyWorkspace {
                place,
                entry: name::shown(text).into_owned(),
                directory,
                user_file: situation.user_file.label,
            })
        }
        _ => None,
    }
}

/// Removes an entry wherever the user may edit it; what is stored for them is kept by the caller.
///
/// # Errors
/// The file is broken, or something cannot be read or written.
pub fn remove_entry(
    locations: &Locations,
    (user, stored): (&str, &mut StoredUser),
    (list, text): (List, &str),
    write: Write,
) -> Result<Removed, EditError> {
    let _held = stored::lock(locations)?;
    let mut situation = Situation::look(locations, (user, stored), list)?;
    let mut places = Vec::new();
    let in_file = situation.user_file.entries.iter().any(|entry| list.same(entry, text));
    if in_file {
        situation.user_file.remove(list, text, write)?;
        places.push(situation.user_file.label.clone());
    }
    if situation.stored.iter().any(|entry| list.same(entry, text)) {
        entries_of(stored, list).retain(|entry| !list.same(entry, text));
        situation.stored.retain(|entry| !list.same(entry, text));
        places.push(stored_place(user));
    }
    let still_granted_by = situation.granting(user, list, text);
    Ok(Removed { places, in_file, still_granted_by })
}

fn add_stored((user, stored): (&str, &mut StoredUser), list: List, text: &str) -> Added {
    let place = stored_place(user);
    let entries = entries_of(stored, list);
    if let Some(found) = already(list, entries, text, &place) {
        return found;
    }
    entries.push(text.to_owned());
    Added::Added { place, in_file: false }
}

/// The same entry first, then a wider one.
fn already(list: List, entries: &[String], text: &str, place: &str) -> Option<Added> {
    let place = place.to_owned();
    if let Some(entry) = entries.iter().find(|entry| list.same(entry, text)) {
        return Some(Added::AlreadyThere { entry: entry.clone(), place });
    }
    let wider = entries.iter().find(|entry| list.covers(entry, text))?;
    Some(Added::CoveredBy { entry: wider.clone(), place })
}

fn entries_of(user: &mut StoredUser, list: List) -> &mut Vec<String> {
    match list {
        List::Mcp => &mut user.mcp_allowlist,
        List::Terminal => &mut user.terminal_allowlist,
    }
}

fn stored_place(user: &str) -> String {
    label(&lists_of(user))
}
