//! A compiled terminal blocklist: the same entries as an allowlist, matched as widely as possible.
//! Takes entries; gives the first that a line might run: by base name, quoted or not, through wrappers,
//! inside text given to shells. Where that cannot be known it says so, and the caller holds the line.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::entry::ShellEntry;
use crate::line::ShellLine;
use crate::options::possible_verb_tails;
use crate::reach::{Invocation, Reached, visit};
use crate::wrappers::basename;

#[derive(Debug, Clone, Default)]
pub struct Blocklist {
    by_command: HashMap<String, Vec<(usize, ShellEntry)>>,
}

/// What a blocklist found, with the simple command it was found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockedMatch {
    Entry {
        index: usize,
        command: String,
    },
    /// The line runs something that cannot be known; treated as blocked.
    Unknown {
        command: String,
    },
}

impl Blocklist {
    /// Compiles entries, each with the caller's index for it.
    pub fn compile(entries: &[(usize, ShellEntry)]) -> Self {
        let mut by_command: HashMap<String, Vec<(usize, ShellEntry)>> = HashMap::new();
        for (index, entry) in entries {
            by_command.entry(entry.command().to_owned()).or_default().push((*index, entry.clone()));
        }
        Self { by_command }
    }

    /// The first entry that the line might run. A certain match is preferred to an unknown one; an empty
    /// list matches nothing.
    pub fn first_match(&self, line: &ShellLine) -> Option<BlockedMatch> {
        if self.by_command.is_empty() {
            return None;
        }
        let mut found = None;
        visit(line, &mut |reached| match reached {
            Reached::Unknown { text } => {
                found.get_or_insert_with(|| BlockedMatch::Unknown { command: text.to_owned() });
                ControlFlow::Continue(())
            }
            Reached::Redirection(_) => ControlFlow::Continue(()),
            Reached::Invocation(invocation) => match self.find(invocation) {
                Some(index) => {
                    found = Some(BlockedMatch::Entry { index, command: invocation.text.to_owned() });
                    ControlFlow::Break(())
                }
                None => ControlFlow::Continue(()),
            },
        });
        found
    }

    fn find(&self, invocation: Invocation<'_>) -> Option<usize> {
        let written = self.by_command.get(invocation.name);
        let base = self.by_command.get(basename(invocation.name));
        [written, base]
            .into_iter()
            .flatten()
            .flatten()
            .find(|(_, entry)| is_match(entry, invocation))
            .map(|(index, _)| *index)
    }
}

/// Options before a subcommand do not hide it: `git -C x push` is `git push`.
fn is_match(entry: &ShellEntry, invocation: Invocation<'_>) -> bool {
    entry.matches_arguments(invocation.arguments)
        || possible_verb_tails(invocation.arguments).any(|tail| entry.matches_arguments(tail))
}
