//! Pins on disk: an owner-only record for each server, changed under the data directory's lock.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use toolwarden_core::Digest;
use toolwarden_core::json::{Document, Limits};
use toolwarden_guard::live::definition;
use toolwarden_policy::Definition;
use toolwarden_policy::input::{PolicyInput, ToolDefinition};
use toolwarden_sources::Locations;
use toolwarden_sources::stored::{self, StoredError};

use crate::choice::Waiting;
use crate::irregular::worse_of;
use crate::pins::LARGEST;
use crate::{Changes, Kind, NotAccepted, Pin, ServerPins, Standing, Version};

const DIRECTORY: &str = "pins";
const LONGEST_STEM: usize = 40;
/// What a person does about a record that cannot be read. They should know what the easy way gives away.
const NEXT: &str = "repair it from a backup, or move it away: then everything the server offers is accepted as found \
                    when it is next seen";

/// Where a server's pins are, below the data directory. A name may hold what a file's name may not.
#[must_use]
pub fn path(server: &str) -> PathBuf {
    let plain = |character: char| if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '-' };
    let stem: String = server.chars().take(LONGEST_STEM).map(plain).collect();
    let mark: String = Digest::of_bytes(server.as_bytes()).to_string().chars().take(16).collect();
    PathBuf::from(DIRECTORY).join(format!("{stem}-{mark}.json"))
}

/// The pins of a server; none where nothing was seen yet, or the record is another server's.
///
/// # Errors
/// The record cannot be read.
pub fn read(locations: &Locations, server: &str) -> Result<ServerPins, StoredError> {
    let blank = || ServerPins { server: server.to_owned(), ..ServerPins::default() };
    Ok(find(locations, server)?.unwrap_or_else(blank))
}

/// The pins of a server of which something was seen.
///
/// # Errors
/// The record cannot be read.
pub fn find(locations: &Locations, server: &str) -> Result<Option<ServerPins>, StoredError> {
    Ok(read_at(locations, &path(server))?.filter(|pins| pins.server == server))
}

fn read_at(locations: &Locations, place: &Path) -> Result<Option<ServerPins>, StoredError> {
    stored::read_at(locations, place).map_err(|error| error.with_next(NEXT))
}

/// What of a file changes with its content.
pub(super) type Stamp = Option<(u64, u64, i64, i64)>;

pub(super) fn stamp(locations: &Locations, server: &str) -> Stamp {
    let found = std::fs::metadata(locations.data_dir.join(path(server))).ok()?;
    Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
}

/// Pins as they are on disk.
#[derive(Debug)]
pub(super) struct OnDisk {
    pub(super) pins: ServerPins,
    /// Before it was changed, and after.
    pub(super) before: Stamp,
    pub(super) stamp: Stamp,
}

/// Changes the pins of a server; `edit` says whether anything is to be written.
pub(super) fn change<T>(
    locations: &Locations,
    server: &str,
    edit: impl FnOnce(&mut ServerPins) -> (T, bool),
) -> Result<(T, OnDisk), StoredError> {
    let held = stored::lock(locations)?;
    let before = stamp(locations, server);
    let mut pins = read(locations, server)?;
    let (outcome, is_changed) = edit(&mut pins);
    if is_changed {
        stored::replace_at(locations, &held, &path(server), &pins)?;
    }
    // Before anybody else may change it.
    let stamp = stamp(locations, server);
    Ok((outcome, OnDisk { pins, before, stamp }))
}

/// Accepts versions that wait: all of them, or none.
///
/// # Errors
/// The record cannot be read or written.
pub fn accept(
    locations: &Locations,
    server: &str,
    chosen: &[Waiting],
    (by, now): (&str, Timestamp),
) -> Result<Result<(), NotAccepted>, StoredError> {
    let accepting = |pins: &mut ServerPins| {
        for Waiting { kind, name, digest } in chosen {
            if let Err(why) = pins.section_mut(*kind).accept(name, digest, by, now) {
                return (Err(why), false);
            }
        }
        (Ok(()), true)
    };
    change(locations, server, accepting).map(|(outcome, _)| outcome)
}

/// How the definition of what is called stands, for whoever asks beside a gateway; `changes` as the server's
/// config says.
///
/// # Errors
/// The record cannot be read.
pub fn standing(
    locations: &Locations,
    server: &str,
    called: Option<(Kind, &str)>,
    changes: Changes,
) -> Result<Definition, StoredError> {
    Ok(read(locations, server)?.definition(called, changes))
}

impl ServerPins {
    /// Whether anything of that name was ever seen.
    #[must_use]
    pub fn has_seen(&self, kind: Kind, name: &str) -> bool {
        self.section(kind).entries.keys().any(|entry| entry.eq_ignore_ascii_case(name))
    }

    /// The same of pins that are at hand.
    #[must_use]
    pub fn definition(&self, called: Option<(Kind, &str)>, changes: Changes) -> Definition {
        let waits = |kind: Kind| self.section(kind).entries.values().any(|pin| !pin.waiting.is_empty());
        if waits(Kind::Launch) || waits(Kind::Instructions) {
            return Definition::ServerChanged;
        }
        let Some((kind, name)) = called else { return Definition::Accepted };
        let same = |(entry, _): &(&String, &Pin)| entry.eq_ignore_ascii_case(name);
        let section = self.section(kind);
        let found = section.entries.iter().filter(same).map(|(_, pin)| match pin.standing() {
            Standing::Accepted => Definition::Accepted,
            Standing::Changed => Definition::Changed,
            Standing::New => Definition::New,
        });
        let is_unseen = section.baseline.is_some() && !section.entries.iter().any(|entry| same(&entry));
        let unlisted = if is_unseen && changes == Changes::Wait { Definition::New } else { Definition::Accepted };
        found.fold(unlisted, worse_of)
    }
}

/// Tells the judge of the tools that are accepted, for servers whose tools nobody else told it.
///
/// # Errors
/// A record cannot be read.
pub fn fill(locations: &Locations, input: &mut PolicyInput) -> Result<(), StoredError> {
    for server in input.servers.iter_mut().filter(|server| server.catalog.is_none()) {
        let pins = read(locations, &server.name)?;
        if pins.tools.baseline.is_some() {
            let accepted = pins.tools.entries.values().filter_map(Pin::last_accepted);
            server.catalog = Some(definitions(accepted));
        }
    }
    Ok(())
}

/// The tools of a server as they are shown; those that wait to be shown as they were seen.
pub(super) fn known_tools(pins: &ServerPins) -> Vec<ToolDefinition> {
    definitions(pins.tools.entries.values().filter_map(|pin| pin.last_accepted().or(pin.waiting.last())))
}

fn definitions<'a>(versions: impl Iterator<Item = &'a Version>) -> Vec<ToolDefinition> {
    let read = |text: &str| {
        let document = Document::parse(text, Limits::again(LARGEST)).ok()?;
        definition(document.root())
    };
    versions.filter_map(|version| read(version.shown())).collect()
}

/// The pins of every server that was ever seen.
#[derive(Debug)]
pub struct All {
    /// By name.
    pub readable: Vec<ServerPins>,
    pub unreadable: Vec<StoredError>,
}

/// One record that cannot be read says nothing of the others.
#[must_use]
pub fn all(locations: &Locations) -> All {
    let directory = locations.data_dir.join(DIRECTORY);
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|file| file.path());
    let is_record = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let (mut readable, mut unreadable) = (Vec::new(), Vec::new());
    for file in files.filter(is_record) {
        let Some(name) = file.file_name() else { continue };
        match read_at(locations, &Path::new(DIRECTORY).join(name)) {
            Ok(found) => readable.extend(found),
            Err(error) => unreadable.push(error),
        }
    }
    readable.sort_by(|left, right| left.server.cmp(&right.server));
    All { readable, unreadable }
}

#[cfg(test)]
#[test]
fn every_server_has_a_file_of_its_own_whatever_its_name() {
    let names = ["a", "A", "a/b", "a-b", "../x", "é", "e\u{301}"];
    let paths: std::collections::BTreeSet<PathBuf> = names.iter().map(|name| path(name)).collect();
    assert_eq!(paths.len(), names.len());
    assert!(paths.iter().all(|path| path.components().count() == 2 && toolwarden_core::name::check(&path.to_string_lossy()).is_ok()));
}
