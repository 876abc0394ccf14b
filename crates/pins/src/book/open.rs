//! A book is opened for servers, and for others while it is open: what starts each of them is compared with what was
//! accepted.
//!
//! In two steps, so that nothing counts before everything can: what is new is put on record first, and counts when
//! it is taken over. Shelves stay when their servers go, for somebody may still be writing there.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use toolwarden_core::json::Part;
use toolwarden_core::{Caller, Keyring};
use toolwarden_policy::input::ToolDefinition;
use toolwarden_sources::stored::StoredError;
use toolwarden_sources::{Locations, ServerDefinition};

use super::{Book, Shelf, record};
use crate::accepted::Accepted;
use crate::file::{self, OnDisk};
use crate::looks::Looks;
use crate::sighting::{Noted, Sighting};
use crate::{Changes, Kind, ServerPins, launch};

/// What a book will be open for.
#[derive(Debug, Default)]
pub struct Next(HashMap<Arc<str>, Opening>);

/// One server of it.
#[derive(Debug)]
struct Opening {
    shelf: Arc<Shelf>,
    changes: Changes,
    /// None where it is started as before.
    launch: Option<Launched>,
}

/// What starts a server, on record.
#[derive(Debug)]
struct Launched {
    sighting: Option<Sighting>,
    digest: Option<String>,
    /// None where nothing is kept beyond this process.
    on_disk: Option<OnDisk>,
    /// How often the pins were replaced before.
    swaps: u64,
    noted: Vec<Noted>,
}

impl Next {
    /// The tools of a server as the judge is to know them.
    #[must_use]
    pub fn definitions(&self, server: &str) -> Vec<ToolDefinition> {
        let Some(opening) = self.0.get(server) else { return Vec::new() };
        match opening.launch.as_ref().and_then(|launch| launch.on_disk.as_ref()) {
            Some(on_disk) => file::known_tools(&on_disk.pins),
            None => file::known_tools(&opening.shelf.state().pins),
        }
    }
}

impl Book {
    /// The pins of these servers, and what starts them compared with what was accepted.
    ///
    /// # Errors
    /// A record cannot be read or written.
    pub fn open(
        locations: Option<Locations>,
        definitions: &[ServerDefinition],
        keyring: &dyn Keyring,
        now: Timestamp,
    ) -> Result<Self, StoredError> {
        let mut book = Self {
            locations,
            shelves: ArcSwap::default(),
            irregular: ArcSwap::default(),
            moves: AtomicU64::new(0),
            marks: RandomState::new(),
            noted: Vec::new(),
        };
        let next = book.next(definitions, keyring, now)?;
        book.noted = book.take_over(next, now);
        Ok(book)
    }

    /// Puts on record what starts these servers, where it is not known. What it comes to counts when it is taken over.
    /// Blocks.
    ///
    /// # Errors
    /// As `open`.
    pub fn next(
        &self,
        definitions: &[ServerDefinition],
        keyring: &dyn Keyring,
        now: Timestamp,
    ) -> Result<Next, StoredError> {
        let known = self.shelves.load();
        let mut next = Next::default();
        for definition in definitions {
            let server: Arc<str> = definition.input.name.as_str().into();
            // The first definition of a name counts.
            if next.0.contains_key(&server) {
                continue;
            }
            let changes = if definition.follows_changes { Changes::Follow } else { Changes::Wait };
            let shelf = known.get(&server).cloned().unwrap_or_else(|| Arc::new(Shelf::new(&server)));
            let sighting = sighting(&server, definition, keyring);
            let digest = sighting.as_ref().and_then(digest_of);
            let is_as_before =
                shelf.is_open.load(Ordering::Acquire) && shelf.changes() == changes && shelf.state().launch == digest;
            let launch = match is_as_before {
                true => None,
                false => Some(self.put_on_record(&shelf, &server, (sighting, digest), changes, now)?),
            };
            next.0.insert(server, Opening { shelf, changes, launch });
        }
        Ok(next)
    }

    /// Servers whose changed definitions wait for a person now and would not any more.
    #[must_use]
    pub fn newly_followed(&self, definitions: &[ServerDefinition]) -> Vec<String> {
        let shelves = self.shelves.load();
        let waits = |server: &str| {
            let shelf = shelves.get(server);
            shelf.is_some_and(|shelf| shelf.is_open.load(Ordering::Acquire) && shelf.changes() == Changes::Wait)
        };
        let follows = definitions.iter().filter(|one| one.follows_changes && waits(&one.input.name));
        follows.map(|one| one.input.name.clone()).collect()
    }

    /// What would start these servers, as digests: values nobody may read count, and cannot be read from them.
    #[must_use]
    pub fn launches(definitions: &[ServerDefinition], keyring: &dyn Keyring) -> Vec<(String, Option<String>)> {
        let launched = |definition: &ServerDefinition| {
            let server: Arc<str> = definition.input.name.as_str().into();
            (server.to_string(), sighting(&server, definition, keyring).as_ref().and_then(digest_of))
        };
        definitions.iter().map(launched).collect()
    }

    fn put_on_record(
        &self,
        shelf: &Shelf,
        server: &Arc<str>,
        (sighting, digest): (Option<Sighting>, Option<String>),
        changes: Changes,
        now: Timestamp,
    ) -> Result<Launched, StoredError> {
        let mut launched = Launched { sighting, digest, on_disk: None, swaps: 0, noted: Vec::new() };
        let Some(locations) = &self.locations else { return Ok(launched) };
        let _writing = shelf.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (noted, on_disk) = file::change(locations, server, |pins| launched.edit(pins, changes, now))?;
        launched.swaps = shelf.state().swaps;
        (launched.on_disk, launched.noted) = (Some(on_disk), noted);
        Ok(launched)
    }

    /// Lets what was put on record count; gives what it was. Whatever is not among it is closed.
    pub fn take_over(&self, next: Next, now: Timestamp) -> Vec<(Arc<str>, Noted)> {
        let mut shelves = (**self.shelves.load()).clone();
        for (server, shelf) in shelves.iter().filter(|(server, _)| !next.0.contains_key(*server)) {
            shelf.close();
            self.note_regular(server);
        }
        let mut all_noted = Vec::new();
        for (server, opening) in next.0 {
            let Opening { shelf, changes, launch } = opening;
            let follows = changes == Changes::Follow;
            let is_other = launch.is_some();
            if let Some(launched) = launch {
                let noted = launched.take_over(&shelf, changes, now);
                all_noted.extend(noted.into_iter().map(|noted| (server.clone(), noted)));
            }
            if shelf.follows.swap(follows, Ordering::AcqRel) != follows || is_other {
                // Whoever calls compares first what there is to call.
                shelf.looks.forget();
            }
            shelf.is_open.store(true, Ordering::Release);
            shelves.entry(server.clone()).or_insert_with(|| shelf.clone());
            if is_other {
                self.take_in(&server, &shelf, &shelf.state());
            }
        }
        self.shelves.store(Arc::new(shelves));
        all_noted
    }
}

impl Launched {
    fn edit(&self, pins: &mut ServerPins, changes: Changes, now: Timestamp) -> (Vec<Noted>, bool) {
        let Some(sighting) = &self.sighting else { return (Vec::new(), false) };
        record(pins, sighting, &sighting.given(), changes, now)
    }

    fn take_over(mut self, shelf: &Shelf, changes: Changes, now: Timestamp) -> Vec<Noted> {
        let mut state = shelf.state();
        match self.on_disk.take() {
            // Whoever replaced them since read what was put on record here.
            Some(_) if state.swaps != self.swaps => {}
            Some(on_disk) => {
                state.swap_in(on_disk.pins);
                state.stamp = on_disk.stamp;
            }
            None => self.noted = self.edit(&mut state.pins, changes, now).0,
        }
        state.regular.clear();
        state.launch = self.digest;
        self.noted
    }
}

fn sighting(server: &Arc<str>, definition: &ServerDefinition, keyring: &dyn Keyring) -> Option<Sighting> {
    let text = Part::composed(launch::text(definition, keyring)).ok()?;
    let caller = Arc::new(Caller::local_person(String::new()));
    let pages = vec![text];
    Some(Sighting { server: server.clone(), kind: Kind::Launch, caller, pages, is_whole: true, after: 0 })
}

fn digest_of(sighting: &Sighting) -> Option<String> {
    sighting.given().into_iter().flatten().map(|given| given.digest).next()
}

impl Shelf {
    fn new(server: &str) -> Self {
        let shelf = Self {
            follows: AtomicBool::new(false),
            is_open: AtomicBool::new(false),
            accepted: ArcSwap::from_pointee(Accepted::default()),
            writing: Mutex::default(),
            state: Mutex::default(),
            looks: Looks::default(),
        };
        server.clone_into(&mut shelf.state().pins.server);
        shelf
    }

    /// Its server is not there any more.
    fn close(&self) {
        self.is_open.store(false, Ordering::Release);
        self.looks.forget();
    }

    pub(super) fn changes(&self) -> Changes {
        if self.follows.load(Ordering::Acquire) { Changes::Follow } else { Changes::Wait }
    }
}
