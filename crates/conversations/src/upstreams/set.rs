//! The servers there are at one moment, and how another set takes their place.
//!
//! A server that is defined otherwise is another one, with a number of its own: what was opened with the former
//! says nothing any more from the moment its tenure ends, which is before anything is judged by what comes after.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, Weak};

use arc_swap::{ArcSwap, Guard};
use toolwarden_core::{Caller, Weakness, weak};
use toolwarden_sources::ServerDefinition;

use super::{StdioLink, Upstream};
use crate::alias::Alias;
use crate::audience::Audience;
use crate::bounds::Bounds;
use crate::failure::Failure;
use crate::questions::Scribe;

/// How long a definition of a server counts. Whatever was opened with it looks here before it says anything.
#[derive(Debug, Clone, Default)]
pub struct Tenure(Arc<AtomicBool>);

impl Tenure {
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Nothing is said where it is over.
    pub fn check(&self) -> Result<(), Failure> {
        if self.is_over() { Err(Failure::Replaced) } else { Ok(()) }
    }
}

/// All servers, which change with the config.
#[derive(Debug)]
pub struct Upstreams {
    set: ArcSwap<Set>,
    scribe: Scribe,
    audience: Arc<dyn Audience>,
    numbers: AtomicU64,
}

/// The servers of one moment.
#[derive(Debug, Default)]
pub struct Set {
    by_name: HashMap<Arc<str>, Arc<Upstream>>,
    order: Vec<Arc<Upstream>>,
}

/// The servers as they will be.
#[derive(Debug)]
pub struct Next {
    set: Arc<Set>,
    gone: Vec<Arc<Upstream>>,
}

impl Set {
    pub fn get(&self, server: &str) -> Option<&Arc<Upstream>> {
        self.by_name.get(server)
    }

    /// In the order they are configured.
    pub fn all(&self) -> &[Arc<Upstream>] {
        &self.order
    }
}

impl Next {
    pub fn set(&self) -> &Set {
        &self.set
    }

    /// Whether a server of this name is there and is reached otherwise, or stops being there.
    pub fn ends(&self, server: &str) -> bool {
        self.gone.iter().any(|gone| *gone.name == *server)
    }

    /// Those that are new, or are reached otherwise.
    pub fn made<'a>(&'a self, upstreams: &Upstreams) -> Vec<&'a Arc<Upstream>> {
        let now = upstreams.now();
        let is_there = |one: &Arc<Upstream>| now.get(&one.name).is_some_and(|known| Arc::ptr_eq(known, one));
        self.set.order.iter().filter(|one| !is_there(one)).collect()
    }

    /// From here on nothing is said any more to those that go.
    pub fn retire(&self) {
        self.gone.iter().for_each(|gone| gone.tenure.0.store(true, Ordering::Release));
    }
}

impl Upstreams {
    pub fn new(
        definitions: &[ServerDefinition],
        bounds: &Bounds<'_>,
        scribe: &Scribe,
        audience: &Arc<dyn Audience>,
    ) -> Self {
        let upstreams = Self {
            set: ArcSwap::default(),
            scribe: scribe.clone(),
            audience: audience.clone(),
            numbers: AtomicU64::new(1),
        };
        let first = upstreams.next(definitions, bounds);
        upstreams.set.store(first.set);
        upstreams
    }

    pub fn now(&self) -> Guard<Arc<Set>> {
        self.set.load()
    }

    pub fn snapshot(&self) -> Arc<Set> {
        self.set.load_full()
    }

    pub fn get(&self, server: &str) -> Option<Arc<Upstream>> {
        self.now().get(server).cloned()
    }

    /// The set of these definitions. One that is reached as before stays as it is.
    pub fn next(&self, definitions: &[ServerDefinition], bounds: &Bounds<'_>) -> Next {
        self.next_where(definitions.iter(), bounds, |known, definition| {
            known.definition.is_reached_like(definition) || weak::is(Weakness::Trust)
        })
    }

    /// The same servers, one of them anew; none where there is no such server.
    pub fn next_without(&self, server: &str, bounds: &Bounds<'_>) -> Option<Next> {
        let now = self.snapshot();
        now.get(server)?;
        let definitions = now.order.iter().map(|one| &one.definition);
        Some(self.next_where(definitions, bounds, |known, _| *known.name != *server))
    }

    fn next_where<'a>(
        &self,
        definitions: impl Iterator<Item = &'a ServerDefinition> + Clone,
        bounds: &Bounds<'_>,
        stays: impl Fn(&Upstream, &ServerDefinition) -> bool,
    ) -> Next {
        let now = self.snapshot();
        // A user's servers change no name that others see.
        let own = |one: &&ServerDefinition| one.input.owner.is_some();
        let of_house = definitions.clone().filter(|one| !own(one));
        // Clients know servers by these names: one that was there keeps it, whoever comes before it now.
        let known = of_house.clone().filter_map(|one| now.get(&one.input.name));
        let mut taken: Vec<Alias> = known.map(|one| one.alias.clone()).collect();
        let is_fresh = |one: &&ServerDefinition| now.get(&one.input.name).is_none();
        let kept = |one: &&ServerDefinition| now.get(&one.input.name).map(|known| known.alias.clone());
        let mut aliases: HashMap<&str, Alias> = HashMap::new();
        for definition in of_house.filter(is_fresh).chain(definitions.clone().filter(own)) {
            let name = definition.input.name.as_str();
            let is_taken = |alias: &Alias| taken.iter().any(|one| one.as_str().eq_ignore_ascii_case(alias.as_str()));
            let former = kept(&definition).filter(|former| !is_taken(former));
            let alias = aliases.entry(name).or_insert_with(|| former.unwrap_or_else(|| Alias::among(name, &taken)));
            taken.push(alias.clone());
        }
        let mut set = Set::default();
        for definition in definitions {
            // The first definition of a name counts; the judge refuses names with rivals.
            let Entry::Vacant(place) = set.by_name.entry(definition.input.name.as_str().into()) else { continue };
            let known = now.get(&definition.input.name);
            let alias = aliases.remove(definition.input.name.as_str());
            let alias = alias.or_else(|| known.map(|known| known.alias.clone()));
            let alias = alias.unwrap_or_else(|| Alias::among(&definition.input.name, &taken));
            let upstream = match known.filter(|known| known.alias == alias && stays(known, definition)) {
                Some(known) => known.clone(),
                None => {
                    let called = (self.numbers.fetch_add(1, Ordering::Relaxed), alias);
                    Arc::new(Upstream::new(definition, bounds, called, (&self.scribe, &self.audience)))
                }
            };
            set.order.push(place.insert(upstream).clone());
        }
        let is_kept = |one: &Arc<Upstream>| set.get(&one.name).is_some_and(|kept| Arc::ptr_eq(kept, one));
        let gone = now.order.iter().filter(|one| !is_kept(one)).cloned().collect();
        Next { set: Arc::new(set), gone }
    }

    /// Lets others be reached from now on; gives those that go, to be ended.
    pub fn install(&self, next: Next) -> Vec<Arc<Upstream>> {
        next.retire();
        self.set.store(next.set);
        next.gone
    }
}

impl Upstream {
    /// Whether it is there for a caller: one user's servers are unknown to everybody else (GATE-8).
    pub fn is_for(&self, caller: &Caller) -> bool {
        self.definition.input.owner.as_ref().is_none_or(|owner| caller.user.as_ref() == Some(owner))
    }

    /// Whether it was taken away, or is defined otherwise since.
    pub fn is_over(&self) -> bool {
        self.tenure.is_over()
    }

    pub fn tenure(&self) -> &Tenure {
        &self.tenure
    }

    /// Keeps a line in mind, to be ended with the server's definition.
    pub(super) fn register(&self, line: &Arc<StdioLink>) -> Result<(), Failure> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Looked at under the lock: whoever ends them all has set it before.
        if let Err(over) = self.tenure.check() {
            line.retire();
            return Err(over);
        }
        open.retain(|line| line.strong_count() > 0);
        open.push(Arc::downgrade(line));
        Ok(())
    }

    /// Ends everything that is open with a server that was retired, whoever has it.
    pub async fn end_all(&self) {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        open.iter().filter_map(Weak::upgrade).for_each(|line| line.retire());
        self.end().await;
    }
}
