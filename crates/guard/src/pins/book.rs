//! The pins of all servers while the gateway runs: what was seen is compared, recorded and judged here.
//!
//! A call asks how its definition stands without a lock: nearly always nothing is irregular. What a list
//! brings is compared under the server's own lock; only news is written, under the data directory's.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use toolwarden_core::json::{Kind as JsonKind, Part, Value};
use toolwarden_core::{Caller, Keyring, name, weak};
use toolwarden_policy::Definition;
use toolwarden_policy::input::ToolDefinition;
use toolwarden_sources::stored::StoredError;
use toolwarden_sources::{Locations, ServerDefinition};

use super::file::{self, Stamp};
use super::{Changes, Given, How, Kind, ServerPins, Standing, launch};

/// So many callers who saw an accepted version are remembered for each definition that waits.
const MOST_CALLERS: usize = 10_000;

/// Why definitions cannot be pinned. Nothing of the server is shown then.
pub type PinsError = StoredError;

/// One look at definitions of a server.
#[derive(Debug, Clone)]
pub struct Sighting {
    pub server: Arc<str>,
    pub kind: Kind,
    pub caller: Arc<Caller>,
    /// Results as the server gave them: pages of a list, or what it said of itself.
    pub pages: Vec<Part>,
    /// Whether this is everything it has of that kind.
    pub is_whole: bool,
}

impl Sighting {
    fn given(&self) -> Vec<Option<Given<'_>>> {
        self.pages.iter().flat_map(|page| entries(self.kind, page.value())).collect()
    }
}

/// The definitions in a result; none for an entry that cannot be one.
fn entries(kind: Kind, result: Value<'_>) -> Vec<Option<Given<'_>>> {
    let list = |key: &str| result.get(key).into_iter().flat_map(Value::items).map(named).collect();
    let words = || result.get("instructions").filter(|words| words.kind() == JsonKind::String);
    match kind {
        Kind::Tool => list("tools"),
        Kind::Prompt => list("prompts"),
        Kind::Instructions => words().map(|words| Some(Given::new(String::new(), words))).into_iter().collect(),
        Kind::Launch => vec![Some(Given::new(String::new(), result))],
    }
}

fn named(entry: Value<'_>) -> Option<Given<'_>> {
    Some(Given::new(entry.get("name")?.as_str()?.into_owned(), entry))
}

/// What clients are shown of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    AsGiven,
    Instead(Arc<str>),
    Hidden,
}

/// What a look comes to, entry by entry.
#[derive(Debug, Default)]
pub struct Sighted {
    pub shown: Vec<Shown>,
    pub noted: Vec<Noted>,
}

/// Something that was put on record just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    pub kind: Kind,
    pub name: String,
    pub how: How,
    /// No version of it was ever accepted.
    pub is_new: bool,
    pub digest: String,
}

/// The pins of all servers.
#[derive(Debug)]
pub struct Book {
    /// None where nothing is kept beyond this process.
    locations: Option<Locations>,
    shelves: HashMap<Arc<str>, Shelf>,
    irregular: ArcSwap<HashMap<Arc<str>, Irregular>>,
    /// How often that changed.
    moves: AtomicU64,
    marks: RandomState,
    noted: Vec<(Arc<str>, Noted)>,
}

#[derive(Debug)]
struct Shelf {
    changes: Changes,
    state: Mutex<State>,
    /// Who saw all tools, and all prompts, since the server was last heard to change.
    looked: [ArcSwap<HashSet<u64>>; 2],
}

#[derive(Debug, Default)]
struct State {
    pins: ServerPins,
    stamp: Stamp,
    /// What would start the server in this process.
    launch: Option<String>,
    /// Of definitions that wait: who has seen an accepted version since.
    regular: HashMap<(Kind, String), HashSet<u64>>,
}

/// What is not as accepted at one server.
#[derive(Debug, Default, Clone)]
struct Irregular {
    /// What starts it changed: nothing of it may run.
    launch: bool,
    instructions: Option<HashSet<u64>>,
    /// By folded name: a call may spell it otherwise.
    tools: HashMap<String, (Definition, HashSet<u64>)>,
    prompts: HashMap<String, (Definition, HashSet<u64>)>,
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
    ) -> Result<Self, PinsError> {
        let mut book = Self {
            locations,
            shelves: HashMap::new(),
            irregular: ArcSwap::default(),
            moves: AtomicU64::new(0),
            marks: RandomState::new(),
            noted: Vec::new(),
        };
        for definition in definitions {
            let changes = if definition.follows_changes { Changes::Follow } else { Changes::Wait };
            let shelf = Shelf { changes, state: Mutex::default(), looked: Default::default() };
            let server: Arc<str> = definition.input.name.as_str().into();
            shelf.state().pins.server = server.to_string();
            // The first definition of a name counts.
            book.shelves.entry(server).or_insert(shelf);
        }
        for definition in definitions {
            let Ok(text) = Part::composed(launch::text(definition, keyring)) else { continue };
            let server: Arc<str> = definition.input.name.as_str().into();
            let caller = Arc::new(Caller::local_person(String::new()));
            let sighting =
                Sighting { server: server.clone(), kind: Kind::Launch, caller, pages: vec![text], is_whole: true };
            let seen = book.record(&sighting, now)?;
            book.noted.extend(seen.noted.into_iter().map(|one| (server.clone(), one)));
        }
        Ok(book)
    }

    /// What was put on record when it was opened.
    #[must_use]
    pub fn noted_at_start(&self) -> &[(Arc<str>, Noted)] {
        &self.noted
    }

    fn mark(&self, caller: &Caller) -> u64 {
        let Caller { kind, user, role, token, mode, context, .. } = caller;
        self.marks.hash_one((kind, user, role, &token.id, mode, &context.task, &context.job))
    }

    /// What a look comes to, if there is nothing new in it.
    #[must_use]
    pub fn sight(&self, sighting: &Sighting) -> Option<Sighted> {
        let Some(shelf) = self.shelves.get(&sighting.server) else { return Some(Sighted::default()) };
        let given = sighting.given();
        let state = shelf.state();
        let section = state.pins.section(sighting.kind);
        let is_news = |given: &Option<Given<'_>>| given.as_ref().is_some_and(|given| section.is_news(given));
        if section.baseline.is_none() || given.iter().any(is_news) {
            return None;
        }
        Some(self.seen(shelf, state, sighting, &given, Vec::new()))
    }

    /// The same where something is to be written first. Blocks.
    ///
    /// # Errors
    /// It cannot be written: then nothing was seen.
    pub fn record(&self, sighting: &Sighting, now: Timestamp) -> Result<Sighted, PinsError> {
        let Some(shelf) = self.shelves.get(&sighting.server) else { return Ok(Sighted::default()) };
        let given = sighting.given();
        let mut state = shelf.state();
        let edit = |pins: &mut ServerPins| record(pins, sighting, &given, shelf.changes, now);
        let noted = match &self.locations {
            Some(locations) => {
                let (noted, on_disk) = file::change(locations, &sighting.server, edit)?;
                (state.pins, state.stamp) = (on_disk.pins, on_disk.stamp);
                noted
            }
            None => edit(&mut state.pins).0,
        };
        if sighting.kind == Kind::Launch {
            state.launch = given.iter().flatten().map(|given| given.digest.clone()).next();
        }
        Ok(self.seen(shelf, state, sighting, &given, noted))
    }

    fn seen(
        &self,
        shelf: &Shelf,
        mut state: MutexGuard<'_, State>,
        sighting: &Sighting,
        given: &[Option<Given<'_>>],
        noted: Vec<Noted>,
    ) -> Sighted {
        let (kind, mark) = (sighting.kind, self.mark(&sighting.caller));
        let mut shown = Vec::with_capacity(given.len());
        let (mut accepted, mut others) = (Vec::new(), Vec::new());
        let section = state.pins.section(kind);
        for given in given {
            let Some(given) = given else {
                shown.push(Shown::Hidden);
                continue;
            };
            let (standing, text) = section.view(given);
            shown.push(match (standing, text) {
                (Standing::Accepted, Some(text)) if text == given.value.raw() => Shown::AsGiven,
                (_, Some(text)) => Shown::Instead(text.into()),
                (_, None) => Shown::Hidden,
            });
            let waits = section.entries.get(&given.name).is_some_and(|pin| !pin.waiting.is_empty());
            match standing {
                Standing::Accepted if waits => accepted.push(given.name.clone()),
                Standing::Accepted => {}
                Standing::Changed | Standing::New => others.push(given.name.clone()),
            }
        }
        // Nobody hides a changed definition behind an accepted one of the same name.
        accepted.retain(|name| !others.contains(name));
        let mut moved = !noted.is_empty();
        for name in accepted {
            let callers = state.regular.entry((kind, name)).or_default();
            if callers.len() >= MOST_CALLERS {
                callers.clear();
            }
            moved |= callers.insert(mark);
        }
        for name in others {
            moved |= state.regular.get_mut(&(kind, name)).is_some_and(|callers| callers.remove(&mark));
        }
        if moved {
            self.note_irregular(&sighting.server, &state);
        }
        drop(state);
        if let (true, Some(looked)) = (sighting.is_whole, shelf.looked(kind))
            && !looked.load().contains(&mark)
        {
            looked.rcu(|known| {
                let mut known: HashSet<u64> =
                    if known.len() < MOST_CALLERS { (**known).clone() } else { HashSet::new() };
                known.insert(mark);
                known
            });
        }
        Sighted { shown, noted }
    }

    fn note_irregular(&self, server: &Arc<str>, state: &State) {
        let found = irregular(state);
        self.moves.fetch_add(1, Ordering::Release);
        self.irregular.rcu(|all| {
            let mut all = (**all).clone();
            match &found {
                Some(found) => all.insert(server.clone(), found.clone()),
                None => all.remove(server),
            };
            all
        });
    }

    /// How the definition of what is called stands for a caller. Without a kind: the server's alone.
    #[must_use]
    pub fn standing(&self, server: &str, called: Option<(Kind, &str)>, caller: &Caller) -> Definition {
        let irregular = self.irregular.load();
        if irregular.is_empty() {
            return Definition::Accepted;
        }
        let Some(found) = irregular.get(server) else { return Definition::Accepted };
        let is_regular = |callers: &HashSet<u64>| callers.contains(&self.mark(caller));
        if found.launch || found.instructions.as_ref().is_some_and(|callers| !is_regular(callers)) {
            return Definition::ServerChanged;
        }
        let entry = match called {
            Some((Kind::Tool, tool)) => found.tools.get(&*name::folded(tool)),
            Some((Kind::Prompt, prompt)) => found.prompts.get(&*name::folded(prompt)),
            Some((Kind::Launch | Kind::Instructions, _)) | None => None,
        };
        match entry {
            Some((definition, callers)) if !is_regular(callers) => *definition,
            _ => Definition::Accepted,
        }
    }

    /// Counts up whenever a definition stands otherwise than before, for anybody.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves.load(Ordering::Acquire)
    }

    /// Whether a server may be started or reached: what starts it is as accepted.
    #[must_use]
    pub fn may_start(&self, server: &str) -> bool {
        !self.irregular.load().get(server).is_some_and(|found| found.launch)
    }

    /// Whether a caller saw everything of this kind since the server was last heard to change.
    #[must_use]
    pub fn has_looked(&self, server: &str, kind: Kind, caller: &Caller) -> bool {
        let looked = self.shelves.get(server).and_then(|shelf| shelf.looked(kind));
        looked.is_none_or(|looked| looked.load().contains(&self.mark(caller)))
    }

    /// Whether there is something to compare with.
    #[must_use]
    pub fn has_baseline(&self, server: &str, kind: Kind) -> bool {
        self.shelves.get(server).is_none_or(|shelf| shelf.state().pins.section(kind).baseline.is_some())
    }

    /// The server may have changed: everybody looks again before the next call.
    pub fn forget_looks(&self, server: &str) {
        let looked = self.shelves.get(server).into_iter().flat_map(|shelf| &shelf.looked);
        looked.for_each(|looked| looked.store(Arc::default()));
    }

    /// How many definitions of a server wait for a person.
    #[must_use]
    pub fn waiting(&self, server: &str) -> usize {
        self.shelves.get(server).map(|shelf| shelf.state().pins.waiting()).unwrap_or_default()
    }

    /// The tools of a server as the judge is to know them.
    #[must_use]
    pub fn definitions(&self, server: &str) -> Vec<ToolDefinition> {
        self.shelves.get(server).map(|shelf| file::known_tools(&shelf.state().pins)).unwrap_or_default()
    }

    /// Takes over what others changed on disk; gives the servers it was changed for. Blocks.
    pub fn refresh(&self) -> Vec<Arc<str>> {
        let Some(locations) = &self.locations else { return Vec::new() };
        let mut changed = Vec::new();
        for (server, shelf) in &self.shelves {
            let stamp = file::stamp(locations, server);
            if shelf.state().stamp == stamp {
                continue;
            }
            match file::read(locations, server) {
                Ok(pins) => {
                    let mut state = shelf.state();
                    (state.pins, state.stamp) = (pins, stamp);
                    state.regular.clear();
                    self.note_irregular(server, &state);
                    drop(state);
                    self.forget_looks(server);
                    changed.push(server.clone());
                }
                // What is in force stays; nothing was accepted that could be read.
                Err(error) => tracing::error!(%server, "what was accepted of it cannot be read: {error}"),
            }
        }
        changed
    }
}

fn record(
    pins: &mut ServerPins,
    sighting: &Sighting,
    given: &[Option<Given<'_>>],
    changes: Changes,
    now: Timestamp,
) -> (Vec<Noted>, bool) {
    let section = pins.section_mut(sighting.kind);
    let note = |given: &Given<'_>| {
        let how = section.record(given, changes, now)?;
        let is_new = section.entries.get(&given.name).is_some_and(|pin| pin.accepted.is_empty());
        Some(Noted { kind: sighting.kind, name: given.name.clone(), how, is_new, digest: given.digest.clone() })
    };
    let noted: Vec<Noted> = given.iter().flatten().filter_map(note).collect();
    let is_first = section.baseline.is_none() && sighting.is_whole;
    if is_first {
        section.baseline = Some(now);
    }
    // A server is started in one way at a time: others that waited are none of its definitions any more.
    let is_back = sighting.kind == Kind::Launch && given.iter().flatten().any(|given| section.take_back(given));
    let is_changed = is_first || is_back || !noted.is_empty();
    (noted, is_changed)
}

fn irregular(state: &State) -> Option<Irregular> {
    let mut found = Irregular::default();
    let launch = state.pins.launch.entries.get("");
    found.launch = state.launch.as_ref().zip(launch).is_some_and(|(digest, pin)| pin.accepts(digest).is_none());
    let mut any = found.launch;
    for kind in [Kind::Instructions, Kind::Tool, Kind::Prompt] {
        let waiting = state.pins.section(kind).entries.iter().filter(|(_, pin)| !pin.waiting.is_empty());
        for (entry, pin) in waiting {
            any = true;
            let callers = state.regular.get(&(kind, entry.clone())).cloned().unwrap_or_default();
            let definition = if pin.standing() == Standing::New { Definition::New } else { Definition::Changed };
            let folded = entry.to_ascii_lowercase();
            match kind {
                Kind::Launch => {}
                Kind::Instructions => found.instructions = Some(callers),
                Kind::Tool => drop(found.tools.insert(folded, (definition, callers))),
                Kind::Prompt => drop(found.prompts.insert(folded, (definition, callers))),
            }
        }
    }
    (any && !weak::is(toolwarden_core::Weakness::Pins)).then_some(found)
}

impl Shelf {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn looked(&self, kind: Kind) -> Option<&ArcSwap<HashSet<u64>>> {
        let [tools, prompts] = &self.looked;
        match kind {
            Kind::Tool => Some(tools),
            Kind::Prompt => Some(prompts),
            Kind::Launch | Kind::Instructions => None,
        }
    }
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
