//! Who may answer held calls of a tool, and how: `[control] approvers`, `second_person` and `[control.approve]`.
//!
//! Takes what is written; gives what an answer needs. What narrows adds up, whichever entry it stands at; who may answer
//! is said by the narrowest entry that says it. Refuses entries that are none: left out, they would narrow nothing.

use toolwarden_core::{ApprovalNeeds, Entry, Side, Sourced};

use crate::finding::Finding;
use crate::input::ApproversInput;

/// The rules, compiled.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Approvers {
    everywhere: Vec<String>,
    entries: Vec<(Entry, ApprovalNeeds)>,
}

impl Approvers {
    /// # Errors
    /// An entry is none.
    pub(crate) fn compile(input: &ApproversInput) -> Result<Self, Vec<Finding>> {
        let mut faults = Vec::new();
        let mut entries = Vec::new();
        let second = |entry: &Sourced<String>| {
            (entry.clone(), ApprovalNeeds { second_person: true, ..ApprovalNeeds::default() })
        };
        let written = input.second_person.iter().map(second).chain(input.rules.iter().cloned());
        for (entry, needs) in written {
            match Entry::parse_restricting(&entry.value) {
                Ok(parsed) => entries.push((parsed, needs)),
                Err(fault) => {
                    let message = format!("`{}` names no tools: {fault}", toolwarden_core::name::shown(&entry.value));
                    faults.push(Finding::error("invalid_entry", entry.origin, message));
                }
            }
        }
        // The narrowest last, so that it has the last word.
        entries.sort_by_key(|(entry, _)| (entry.server != Side::Any, entry.tool != Side::Any));
        let everywhere = input.everywhere.clone();
        if faults.is_empty() { Ok(Self { everywhere, entries }) } else { Err(faults) }
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(|(entry, _)| entry)
    }

    /// Whether something is said of how persons answer calls of this tool: then a machine does not.
    pub(crate) fn name(&self, server: &str, tool: &str) -> bool {
        let (server, tool) = (Side::Name(server.to_owned()), Side::Name(tool.to_owned()));
        self.entries.iter().any(|(entry, _)| entry.server.covers(&server) && entry.tool.covers(&tool))
    }

    /// What an answer to a call of this tool needs. In any spelling: this side narrows.
    pub(crate) fn needs(&self, server: &str, tool: &str) -> ApprovalNeeds {
        let mut needs = ApprovalNeeds { approvers: self.everywhere.clone(), ..ApprovalNeeds::default() };
        let (server, tool) = (Side::Name(server.to_owned()), Side::Name(tool.to_owned()));
        for (entry, own) in &self.entries {
            if !entry.server.covers(&server) || !entry.tool.covers(&tool) {
                continue;
            }
            needs.second_person |= own.second_person;
            needs.reason |= own.reason;
            if !own.approvers.is_empty() {
                needs.approvers.clone_from(&own.approvers);
            }
        }
        needs
    }
}

#[cfg(test)]
#[path = "approvers_tests.rs"]
mod tests;
