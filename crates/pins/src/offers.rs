//! What a server offered when somebody last looked, of what is on record: for people to see which version is
//! meant by now, and what is gone. Nobody's call is decided by it, so it is written later than it was seen.

use std::collections::{HashMap, HashSet};

use crate::{Given, Kind, Section, ServerPins};

impl Section {
    /// Whether the last whole list lacks a definition that is on record.
    #[must_use]
    pub fn is_gone(&self, name: &str) -> bool {
        self.looked_over && self.entries.get(name).is_some_and(|pin| pin.offered.is_none())
    }

    /// Notes what is offered; says whether that was otherwise before.
    pub(super) fn note_offers(&mut self, given: &[Option<Given<'_>>], is_whole: bool) -> bool {
        let offers: HashMap<&str, &str> =
            given.iter().flatten().map(|given| (given.name.as_str(), given.digest.as_str())).collect();
        let mut is_changed = is_whole && !self.looked_over;
        self.looked_over |= is_whole;
        for (name, pin) in &mut self.entries {
            let offered = offers.get(name.as_str()).copied();
            // What one page lacks another may have.
            if pin.offered.as_deref() != offered && (is_whole || offered.is_some()) {
                pin.offered = offered.map(str::to_owned);
                is_changed = true;
            }
        }
        is_changed
    }

    /// Whether something waits that a whole list lacks.
    pub(super) fn has_left_over(&self, given: &[Option<Given<'_>>]) -> bool {
        let mut waiting = self.entries.iter().filter(|(_, pin)| !pin.waiting.is_empty()).peekable();
        if waiting.peek().is_none() {
            return false;
        }
        let names = names(given);
        waiting.any(|(name, _)| !names.contains(name.as_str()))
    }

    /// Forgets what waits and is not offered any more.
    pub(super) fn drop_left_over(&mut self, given: &[Option<Given<'_>>]) -> bool {
        let is_behind = self.has_left_over(given);
        let names = names(given);
        self.entries.retain(|name, pin| {
            if !names.contains(name.as_str()) {
                pin.waiting.clear();
            }
            !pin.accepted.is_empty() || !pin.waiting.is_empty()
        });
        is_behind
    }
}

fn names<'a>(given: &'a [Option<Given<'_>>]) -> HashSet<&'a str> {
    given.iter().flatten().map(|given| given.name.as_str()).collect()
}

impl ServerPins {
    /// Takes over what others noted of the same definitions; says whether that was otherwise before.
    pub(super) fn take_offers(&mut self, noted: &Self) -> bool {
        let mut is_changed = false;
        for kind in Kind::ALL {
            let (own, noted) = (self.section_mut(kind), noted.section(kind));
            is_changed |= noted.looked_over && !own.looked_over;
            own.looked_over |= noted.looked_over;
            for (name, pin) in &mut own.entries {
                if let Some(other) = noted.entries.get(name).filter(|other| other.offered != pin.offered) {
                    pin.offered.clone_from(&other.offered);
                    is_changed = true;
                }
            }
        }
        is_changed
    }

    /// Whether nothing but offers tells them apart.
    pub(super) fn is_same_but_offers(&self, other: &Self) -> bool {
        Kind::ALL.into_iter().all(|kind| {
            let (one, two) = (self.section(kind), other.section(kind));
            let pairs = || one.entries.iter().zip(&two.entries);
            one.baseline == two.baseline
                && one.entries.len() == two.entries.len()
                && pairs().all(|((one, _), (two, _))| one == two)
                && pairs().all(|((_, one), (_, two))| (&one.accepted, &one.waiting) == (&two.accepted, &two.waiting))
        })
    }
}
