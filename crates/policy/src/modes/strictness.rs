//! Whether one mode restricts at least as much as another, part by part.

use std::sync::Arc;

use hashbrown::HashMap;
use toolwarden_core::Origin;

use super::{Mode, Restrictions};

type Tools = HashMap<String, HashMap<String, Origin>>;

/// Whether the second says in this part at least what the first says.
type Keeps = fn(&Restrictions, &Restrictions) -> bool;

/// The parts of a mode. A chain is a conjunction, so each part of each mode of the old chain must be kept by some
/// mode of the new one; which one does not matter.
const PARTS: [(&str, Keeps); 7] = [
    ("its groups are wider", |old, new| {
        let kept = |group: &str| new.lacks_named(group) || !old.lacks_named(group);
        kept("mcp") && kept("command")
    }),
    ("its allowed servers are wider", |old, new| {
        let Some(old) = &old.allowed_servers else { return true };
        new.allowed_servers.as_ref().is_some_and(|new| new.keys().all(|name| old.contains_key(name)))
    }),
    ("a server is no longer disallowed", |old, new| {
        old.disallowed_servers.keys().all(|name| new.disallowed_servers.contains_key(name))
    }),
    ("its allowed tools are wider", |old, new| {
        let Some(old) = &old.allowed_tools else { return true };
        new.allowed_tools.as_ref().is_some_and(|new| are_within(new, old))
    }),
    ("a tool is no longer disallowed", |old, new| are_within(&old.disallowed_tools, &new.disallowed_tools)),
    ("its hours are wider", |old, new| {
        let Some(old) = &old.window else { return true };
        new.window.as_ref().is_some_and(|new| new.is_within(old))
    }),
    ("its conditions are wider", |old, new| {
        old.conditions.iter().all(|(key, texts)| {
            new.conditions.get(key).is_some_and(|kept| kept.iter().all(|text| texts.contains(text)))
        })
    }),
];

impl Mode {
    /// What the other mode no longer restricts as this one does.
    #[must_use]
    pub fn no_longer_restricted_by(&self, new: &Self) -> Vec<&'static str> {
        let is_kept = |old: &Arc<Restrictions>, keeps: Keeps| new.chain.iter().any(|new| keeps(old, new));
        let lost = PARTS.iter().filter(|(_, keeps)| !self.chain.iter().all(|old| is_kept(old, *keeps)));
        lost.map(|(what, _)| *what).collect()
    }

    /// Whether the root of the chain names a server, which makes one available that is off by default.
    #[must_use]
    pub fn opts_in(&self, server: &str) -> bool {
        let root = self.chain.last().and_then(|root| root.allowed_servers.as_ref());
        root.is_some_and(|servers| servers.contains_key(server))
    }
}

impl Restrictions {
    fn lacks_named(&self, group: &str) -> bool {
        self.groups.as_ref().is_some_and(|groups| !groups.contains(group))
    }
}

fn are_within(inner: &Tools, outer: &Tools) -> bool {
    inner
        .iter()
        .all(|(server, tools)| tools.keys().all(|tool| outer.get(server).is_some_and(|known| known.contains_key(tool))))
}
