//! A compiled list of `server:tool` entries: at most four lookups, however long the list.
//!
//! Matching ignores ASCII case, except for tools whose server lists a twin that differs only in
//! case: those need an exact match, or one tool's grant would reach the other (ALLOW-5).

use hashbrown::HashMap;
use toolwarden_core::name;
use toolwarden_core::weak::{self, Weakness};
use toolwarden_core::{Entry, Side, Sourced};

use crate::verdict::RuleRef;

/// Whether a tool has a twin whose name differs only in case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twin {
    None,
    Exists,
}

/// A compiled allowlist, ask list or block list.
#[derive(Debug, Clone, Default)]
pub struct Allowlist {
    any_server: Tools,
    by_server: HashMap<String, Tools>,
    entries: usize,
}

#[derive(Debug, Clone, Default)]
struct Tools {
    any: Option<RuleRef>,
    /// Folded name → entries, each with the name as written.
    named: HashMap<String, Vec<(String, RuleRef)>>,
}

impl Allowlist {
    /// Compiles a list. Invalid entries match nothing (ALLOW-3).
    #[must_use]
    pub fn compile<'a>(texts: impl IntoIterator<Item = &'a Sourced<String>>) -> Self {
        let mut list = Self::default();
        for text in texts {
            if let Ok(entry) = Entry::parse(&text.value) {
                list.add(entry, RuleRef::new(text.value.as_str(), &text.origin));
            }
        }
        list
    }

    fn add(&mut self, entry: Entry, rule: RuleRef) {
        self.entries += 1;
        let tools = match entry.server {
            Side::Any => &mut self.any_server,
            Side::Name(server) => self.by_server.entry(server.to_ascii_lowercase()).or_default(),
        };
        match entry.tool {
            Side::Any => tools.any = tools.any.take().or(Some(rule)),
            Side::Name(tool) => tools.named.entry(tool.to_ascii_lowercase()).or_default().push((tool, rule)),
        }
    }

    /// The entries that can match, in no particular order.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &RuleRef> {
        let tools = self.by_server.values().chain([&self.any_server]);
        tools.flat_map(|tools| tools.any.iter().chain(tools.named.values().flatten().map(|(_, rule)| rule)))
    }

    /// Whether any entry can match at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The widest entry that matches: `*:*`, `*:tool`, `server:*`, `server:tool`.
    pub(crate) fn find(&self, server: &str, tool: &str, twin: Twin) -> Option<&RuleRef> {
        let (folded_server, folded_tool) = (name::folded(server), name::folded(tool));
        let named = self.by_server.get(&*folded_server);
        self.any_server
            .any
            .as_ref()
            .or_else(|| self.any_server.named(tool, &folded_tool, twin))
            .or_else(|| named.and_then(|tools| tools.any.as_ref()))
            .or_else(|| named.and_then(|tools| tools.named(tool, &folded_tool, twin)))
            .or_else(|| self.shadowed(tool, &folded_tool))
    }

    /// An entry for a tool of this name on any server: of none, but where this guard is off.
    fn shadowed(&self, tool: &str, folded: &str) -> Option<&RuleRef> {
        let mut servers = self.by_server.values().filter(|_| weak::is(Weakness::Shadows));
        servers.find_map(|tools| tools.named(tool, folded, Twin::None))
    }

    /// The widest entry that matches every tool of a server: `*:*` or `server:*`.
    pub(crate) fn find_whole_server(&self, server: &str) -> Option<&RuleRef> {
        let named = || self.by_server.get(&*name::folded(server)).and_then(|tools| tools.any.as_ref());
        let part = || {
            let tools = self.by_server.get(&*name::folded(server)).filter(|_| weak::is(Weakness::Wholes));
            tools.and_then(|tools| tools.named.values().flatten().next()).map(|(_, rule)| rule)
        };
        self.any_server.any.as_ref().or_else(named).or_else(part)
    }
}

impl Tools {
    fn named(&self, tool: &str, folded: &str, twin: Twin) -> Option<&RuleRef> {
        let entries = self.named.get(folded)?;
        let fits =
            |(written, _): &&(String, RuleRef)| twin == Twin::None || written == tool || weak::is(Weakness::Twins);
        entries.iter().find(fits).map(|(_, rule)| rule)
    }
}

#[cfg(test)]
#[path = "allowlist_tests.rs"]
mod tests;
