//! Finds lines that delete files.
//! Takes a read line; gives the command that deletes, looked for by base name, through wrappers and inside
//! text given to shells. Where that cannot be known it says so. Overwriting is not deleting.

use std::ops::ControlFlow;

use crate::git;
use crate::line::ShellLine;
use crate::options::possible_verb_tails;
use crate::reach::{Invocation, Reached, visit};
use crate::wrappers::program;

/// The simple command in which a deletion was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    Certain {
        command: String,
    },
    /// The line runs something that cannot be known.
    Unknown {
        command: String,
    },
}

/// Programs that do nothing but delete.
const DELETERS: &[&str] = &[
    "rm",
    "rmdir",
    "unlink",
    "shred",
    "srm",
    "wipe",
    "grm",
    "grmdir",
    "gunlink",
    "gshred",
    "trash",
    "trash-put",
    "trash-rm",
    "trash-empty",
    "rmtrash",
    "gtrash",
    "trashy",
    "rip",
    "del",
    "erase",
    "rd",
    "ri",
    "remove-item",
    "rimraf",
    "del-cli",
    "sfill",
];

/// Subcommands and options that delete.
const DELETING_ARGUMENTS: &[(&str, &[&str])] = &[
    ("git", &["rm", "clean", "worktree remove"]),
    ("svn", &["rm", "delete", "del", "remove"]),
    ("hg", &["rm", "remove", "purge"]),
    ("find", &["-delete"]),
    ("gfind", &["-delete"]),
    ("tar", &["--rem"]),
    ("gtar", &["--rem"]),
    ("bsdtar", &["--rem"]),
    ("zip", &["-m", "--move"]),
    ("gio", &["remove", "trash"]),
    ("rsync", &["--del", "--remove-source-files"]),
    ("rclone", &["delete", "deletefile", "purge", "rmdir", "rmdirs", "sync", "move"]),
];

pub fn deletes(line: &ShellLine) -> Option<Deletion> {
    let mut found = None;
    visit(line, &mut |reached| match reached {
        Reached::Unknown { text } => {
            found.get_or_insert_with(|| Deletion::Unknown { command: text.to_owned() });
            ControlFlow::Continue(())
        }
        Reached::Invocation(invocation) if is_deletion(invocation) => {
            found = Some(Deletion::Certain { command: invocation.text.to_owned() });
            ControlFlow::Break(())
        }
        Reached::Invocation(_) | Reached::Redirection(_) => ControlFlow::Continue(()),
    });
    found
}

fn is_deletion(invocation: Invocation<'_>) -> bool {
    let program = program(invocation.name);
    if program == "git" && git::only_shows_cleaning(invocation.arguments) {
        return false;
    }
    if DELETERS.contains(&program.as_str()) {
        return true;
    }
    DELETING_ARGUMENTS
        .iter()
        .filter(|(name, _)| *name == program)
        .flat_map(|(_, patterns)| patterns.iter())
        .any(|pattern| has_argument(invocation, pattern))
}

/// An option by its beginning (`--delete-after`), a subcommand as the first words that are no options.
fn has_argument(invocation: Invocation<'_>, pattern: &str) -> bool {
    if pattern.starts_with('-') {
        return invocation.arguments.iter().any(|word| word.text.starts_with(pattern));
    }
    possible_verb_tails(invocation.arguments).any(|tail| {
        let mut plain = tail.iter().map(|word| word.text.as_str()).filter(|text| !text.starts_with('-'));
        pattern.split(' ').all(|wanted| plain.next() == Some(wanted))
    })
}
