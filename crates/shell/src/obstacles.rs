//! Judges one simple command by its name and arguments: may an entry allow it at all?
//! Takes a finished command; gives the reason why it can never be auto-allowed. The knowledge is in the
//! tables of `wrappers`, `options` and `interpreters`; only git's own grammar is spelled out here.

use crate::interpreters;
use crate::line::{Obstacle, SimpleCommand, Word};
use crate::options;
use crate::wrappers::{self, Reach, program};

pub(super) fn obstacle(command: &SimpleCommand) -> Option<Obstacle> {
    let Some(name) = &command.name else { return Some(Obstacle::NameNotPlain) };
    let program = program(name);
    if wrappers::changes_shell(&program) {
        return Some(Obstacle::ShellState(name.clone()));
    }
    if wrappers::reach(&program).is_some_and(|reach| reach != Reach::AfterOption) {
        return Some(Obstacle::Wrapper(name.clone()));
    }
    let is_listed = options::knows(&program) || interpreters::knows(&program);
    if is_listed && command.arguments.iter().any(|word| !word.literal) {
        return Some(Obstacle::ArgumentNotLiteral(name.clone()));
    }
    let executing = options::executing(&program, &command.arguments)
        .or_else(|| interpreters::inline_code(&program, &command.arguments))
        .or_else(|| if program == "git" { git_doubt(&command.arguments) } else { None });
    executing.map(|option| Obstacle::Executes { command: name.clone(), option: option.to_owned() })
}

pub(super) fn changes_directory(command: &SimpleCommand) -> bool {
    command.command_word.as_ref().is_some_and(|word| wrappers::changes_directory(&program(&word.text)))
}

/// A command found by a relative path: another file after `cd`.
pub(super) fn is_relative(command: &SimpleCommand) -> bool {
    command.name.as_ref().is_some_and(|name| name.contains('/') && !name.starts_with('/'))
}

/// Options before git's subcommand that are known to be harmless; any other is refused.
const GIT_GLOBALS: [&str; 17] = [
    "-p",
    "-P",
    "-v",
    "-h",
    "--version",
    "--help",
    "--paginate",
    "--no-pager",
    "--no-replace-objects",
    "--bare",
    "--literal-pathspecs",
    "--glob-pathspecs",
    "--noglob-pathspecs",
    "--icase-pathspecs",
    "--no-optional-locks",
    "--no-advice",
    "--no-lazy-fetch",
];

fn git_doubt(arguments: &[Word]) -> Option<&str> {
    let mut words = arguments.iter().map(|word| word.text.as_str());
    let verb = loop {
        let word = words.next()?;
        match word {
            "-C" => {
                words.next()?;
            }
            _ if GIT_GLOBALS.contains(&word) => {}
            _ if word.starts_with('-') => return Some(word),
            _ => break word,
        }
    };
    if verb == "config" && !only_reads_config(words) { Some("config") } else { None }
}

/// Reading needs one of the reading forms, or exactly one key.
fn only_reads_config<'a>(arguments: impl Iterator<Item = &'a str>) -> bool {
    let mut reads = false;
    let mut positional = 0_usize;
    for word in arguments {
        match word {
            "--get" | "--get-all" | "--get-regexp" | "--get-urlmatch" | "--list" | "-l" => reads = true,
            "get" | "list" if positional == 0 => reads = true,
            "--show-origin" | "--show-scope" | "--global" | "--local" | "--system" | "--worktree" | "--name-only"
            | "-z" | "--null" | "--includes" | "--all" | "--bool" | "--int" | "--path" => {}
            _ if word.starts_with('-') => return false,
            _ => positional = positional.saturating_add(1),
        }
    }
    reads || positional == 1
}
