//! The pins of all servers while the gateway runs: what was seen is compared, recorded and judged here.
//!
//! A call asks how its definition stands without a lock: nearly always nothing is irregular. What a list
//! brings is compared under the server's own lock, which is held for moments; only news is written, by one
//! writer of the server at a time, under the data directory's lock.

mod open;
mod refresh;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use toolwarden_core::{Caller, Weakness, weak};
use toolwarden_policy::Definition;
use toolwarden_policy::input::ToolDefinition;
use toolwarden_sources::Locations;
use toolwarden_sources::stored::StoredError;

use crate::accepted::Accepted;
use crate::file::{self, Stamp};
use crate::irregular::{Irregular, Regular};
use crate::looks::Looks;
use crate::sighting::{Noted, Shown, Sighted, Sighting};
use crate::{Changes, Given, Kind, ServerPins, Standing};

pub use self::open::Next;

/// So many callers who saw an accepted version are remembered for each definition that waits.
const MOST_CALLERS: usize = 10_000;

/// The pins of all servers.
#[derive(Debug)]
pub struct Book {
    /// None where nothing is kept beyond this process.
    locations: Option<Locations>,
    shelves: ArcSwap<HashMap<Arc<str>, Arc<Shelf>>>,
    irregular: ArcSwap<HashMap<Arc<str>, Irregular>>,
    /// How often that changed.
    moves: AtomicU64,
    marks: RandomState,
    noted: Vec<(Arc<str>, Noted)>,
}

#[derive(Debug)]
struct Shelf {
    /// Whether changes need nobody's consent.
    follows: AtomicBool,
    /// Whether its server is one of those there are.
    is_open: AtomicBool,
    accepted: ArcSwap<Accepted>,
    /// Held by whoever writes, for as long as a disk takes: nobody waits for it who only asks.
    writing: Mutex<()>,
    state: Mutex<State>,
    looks: Looks,
}

#[derive(Debug, Default)]
struct State {
    pins: ServerPins,
    /// How often they were replaced.
    swaps: u64,
    stamp: Stamp,
    /// Others changed what is known here already, and nobody was told.
    is_untold: bool,
    has_unwritten_offers: bool,
    /// What was last said to be wrong with the record.
    trouble: Option<String>,
    /// What would start the server in this process.
    launch: Option<String>,
    regular: Regular,
}

impl Book {
    fn shelf(&self, server: &str) -> Option<Arc<Shelf>> {
        self.shelves.load().get(server).cloned()
    }

    /// What was put on record when it was opened; gives it once.
    pub fn take_noted(&mut self) -> Vec<(Arc<str>, Noted)> {
        std::mem::take(&mut self.noted)
    }

    fn mark(&self, caller: &Caller) -> u64 {
        let Caller { kind, user, role, token, mode, context, .. } = caller;
        self.marks.hash_one((kind, user, role, &token.id, mode, &context.task, &context.job))
    }

    /// What a look comes to, if there is nothing new in it.
    #[must_use]
    pub fn sight(&self, sighting: &Sighting) -> Option<Sighted> {
        let Some(shelf) = self.shelf(&sighting.server) else { return Some(Sighted::default()) };
        let (given, changes) = (sighting.given(), shelf.changes());
        let state = shelf.state();
        let section = state.pins.section(sighting.kind);
        let is_news = |given: &Given<'_>| section.is_news(given, changes);
        let is_behind = sighting.is_whole && changes == Changes::Follow && section.has_left_over(&given);
        if section.baseline.is_none() || is_behind || given.iter().flatten().any(is_news) {
            return None;
        }
        Some(self.seen(&shelf, state, sighting, &given, Vec::new()))
    }

    /// The same where something is to be written first. Blocks.
    ///
    /// # Errors
    /// It cannot be written: then nothing was seen.
    pub fn record(&self, sighting: &Sighting, now: Timestamp) -> Result<Sighted, StoredError> {
        let Some(shelf) = self.shelf(&sighting.server) else { return Ok(Sighted::default()) };
        let given = sighting.given();
        let edit = |pins: &mut ServerPins| record(pins, sighting, &given, shelf.changes(), now);
        let _writing = shelf.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (noted, state) = match &self.locations {
            Some(locations) => {
                let (noted, on_disk) = file::change(locations, &sighting.server, edit)?;
                let mut state = shelf.state();
                if state.stamp.is_some() && on_disk.before.is_none() {
                    refresh::tell_gone(locations, &sighting.server);
                }
                // What others changed before is still to be taken over, and told, when it is looked for.
                if state.stamp == on_disk.before {
                    state.stamp = on_disk.stamp;
                } else {
                    state.is_untold = true;
                }
                state.swap_in(on_disk.pins);
                (noted, state)
            }
            None => {
                let mut state = shelf.state();
                (edit(&mut state.pins).0, state)
            }
        };
        // What is on disk may be news although none of it was put there just now: others write it, too.
        self.take_in(&sighting.server, &shelf, &state);
        Ok(self.seen(&shelf, state, sighting, &given, noted))
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
        state.has_unwritten_offers |= state.pins.section_mut(kind).note_offers(given, sighting.is_whole);
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
        let mut moved = false;
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
        if sighting.is_whole {
            shelf.looks.note(kind, mark, sighting.after);
        }
        Sighted { shown, noted }
    }

    /// Lets calls meet what is pinned now.
    fn take_in(&self, server: &Arc<str>, shelf: &Shelf, state: &State) {
        shelf.accepted.store(Arc::new(Accepted::of(&state.pins)));
        if shelf.is_open.load(Ordering::Acquire) {
            self.note_irregular(server, state);
        }
    }

    /// Nothing is known of a server any more that nobody reaches.
    fn note_regular(&self, server: &str) {
        self.moves.fetch_add(1, Ordering::Release);
        self.irregular.rcu(|all| {
            let mut all = (**all).clone();
            all.remove(server);
            all
        });
    }

    fn note_irregular(&self, server: &Arc<str>, state: &State) {
        let found = Irregular::of(&state.pins, state.launch.as_deref(), &state.regular);
        let found = found.filter(|_| !weak::is(Weakness::Pins));
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
        let found = irregular.get(server).map(|found| found.standing(called, || self.mark(caller)));
        match found.unwrap_or_default() {
            Definition::Accepted if called.is_some_and(|called| self.is_unseen(server, called)) => Definition::New,
            standing => standing,
        }
    }

    /// Whether nobody ever accepted anything of that name. Where changes are followed nobody has to.
    fn is_unseen(&self, server: &str, (kind, name): (Kind, &str)) -> bool {
        let shelves = self.shelves.load();
        let shelf = shelves.get(server).filter(|shelf| shelf.changes() == Changes::Wait);
        shelf.is_some_and(|shelf| shelf.accepted.load().lacks(kind, name)) && !weak::is(Weakness::Pins)
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
        self.shelves.load().get(server).is_none_or(|shelf| shelf.looks.has(kind, self.mark(caller)))
    }

    /// How many changes of a server were heard of so far: to be read before it is asked what it lists.
    #[must_use]
    pub fn changes_heard(&self, server: &str) -> u64 {
        self.shelves.load().get(server).map(|shelf| shelf.looks.changes()).unwrap_or_default()
    }

    /// Whether there is something to compare with.
    #[must_use]
    pub fn has_baseline(&self, server: &str, kind: Kind) -> bool {
        self.shelves.load().get(server).is_none_or(|shelf| shelf.state().pins.section(kind).baseline.is_some())
    }

    /// The server may have changed: everybody looks again before the next call.
    pub fn forget_looks(&self, server: &str) {
        if let Some(shelf) = self.shelf(server) {
            shelf.looks.forget();
        }
    }

    /// How many definitions of a server wait for a person.
    #[must_use]
    pub fn waiting(&self, server: &str) -> usize {
        self.shelves.load().get(server).map(|shelf| shelf.state().pins.waiting()).unwrap_or_default()
    }

    /// The tools of a server as the judge is to know them. Of one that is not there it says what is on record, for
    /// which it looks at the disk.
    #[must_use]
    pub fn definitions(&self, server: &str) -> Vec<ToolDefinition> {
        let shelf =
            self.shelf(server).filter(|shelf| shelf.is_open.load(Ordering::Acquire) || self.locations.is_none());
        match (shelf, &self.locations) {
            (Some(shelf), _) => file::known_tools(&shelf.state().pins),
            (None, Some(locations)) => {
                file::read(locations, server).map(|pins| file::known_tools(&pins)).unwrap_or_default()
            }
            (None, None) => Vec::new(),
        }
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
    // A server is started in one way at a time: others that waited are none of its definitions any more. Where
    // changes are followed, neither is what waited before they were.
    let follows = changes == Changes::Follow;
    let forgets = sighting.kind == Kind::Launch || follows;
    let back = given.iter().flatten().filter(|given| forgets && section.take_back(given)).count();
    let is_behind = follows && sighting.is_whole && section.drop_left_over(given);
    let is_offered_anew = section.note_offers(given, sighting.is_whole);
    let is_changed = is_first || back > 0 || is_behind || is_offered_anew || !noted.is_empty();
    (noted, is_changed)
}

impl State {
    fn swap_in(&mut self, mut pins: ServerPins) {
        if self.has_unwritten_offers {
            pins.take_offers(&self.pins);
        }
        self.pins = pins;
        self.swaps += 1;
    }
}

impl Shelf {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
