//! A compiled terminal blocklist: the same entries as an allowlist, matched as widely as possible.
//! Takes entries; gives the first that a line might run: by base name, quoted or not, through wrappers,
//! inside text given to shells. Where that cannot be known it says so, and the caller holds the line.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::effects::is_writer;
use crate::entry::ShellEntry;
use crate::interpreters;
use crate::line::{Obstacle, ShellLine, SimpleCommand};
use crate::options::{self, possible_verb_tails};
use crate::reach::{Invocation, Reached, visit};
use crate::readers::is_reader;
use crate::wrappers::{self, basename, program};

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
        let mut found = line.commands.iter().find_map(|command| self.in_text(command));
        if found.is_some() {
            return found;
        }
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

    /// An entry whose name stands anywhere in a command that may run what its words say: inline code, options that
    /// execute, variables that name programs, and programs that nobody listed.
    fn in_text(&self, command: &SimpleCommand) -> Option<BlockedMatch> {
        let name = command.name.as_deref().map(program);
        // What these run was found by `visit`.
        let is_looked_through = name.as_deref().is_some_and(wrappers::is_looked_through);
        let word = command.command_word.as_ref().map(|word| word.text.as_str()).unwrap_or_default();
        let text = match &command.obstacle {
            // What stands before the command word.
            Some(Obstacle::Assignment) => command.text.rfind(word).and_then(|end| command.text.get(..end))?,
            Some(Obstacle::Executes { .. }) if !is_looked_through => &command.text,
            _ if name.is_some_and(|name| !is_known(&name)) => &command.text,
            _ => return None,
        };
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "._-+".contains(letter);
        let own = basename(word);
        let mut words = text.split(|letter: char| !is_part(letter)).filter(|word| *word != own);
        let (index, _) = words.find_map(|word| self.by_command.get(word)?.first())?;
        Some(BlockedMatch::Entry { index: *index, command: command.text.clone() })
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

/// Whether it is known what a program does with its words: then only `visit` says what it runs.
fn is_known(program: &str) -> bool {
    program == "git"
        || is_reader(program)
        || is_writer(program)
        || options::knows(program)
        || interpreters::knows(program)
        || wrappers::is_looked_through(program)
        || wrappers::changes_shell(program)
        || wrappers::changes_directory(program)
}

/// Options before a subcommand do not hide it: `git -C x push` is `git push`.
fn is_match(entry: &ShellEntry, invocation: Invocation<'_>) -> bool {
    entry.matches_arguments(invocation.arguments)
        || possible_verb_tails(invocation.arguments).any(|tail| entry.matches_arguments(tail))
}
