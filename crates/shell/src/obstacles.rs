//! Judges one simple command by its name and arguments: may an entry allow it at all?
//! Takes a finished command; gives the reason why it can never be auto-allowed. The knowledge is in the
//! tables of `wrappers`, `options` and `interpreters`; only git's own grammar is spelled out here.

use crate::interpreters;
use crate::line::{Obstacle, SimpleCommand, Word};
use crate::options;
use crate::paths::is_device;
use crate::wrappers::{self, Reach, listed, program};

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
        .or_else(|| match program.as_str() {
            "git" => git_doubt(&command.arguments),
            "npm" => npm_doubt(&command.arguments),
            "make" | "gmake" | "bmake" | "nmake" => make_doubt(&command.arguments),
            _ if wrappers::starts_programs(&program) => started_doubt(&command.arguments),
            _ => None,
        });
    executing.map(|option| Obstacle::Executes { command: name.clone(), option: option.to_owned() })
}

/// Programs, besides the interpreters, that carry out commands from standard input. (`m` is `m4`.)
const INPUT_OBEYERS: &str = "\
    sqlite psql mysql mariadb sqlplus duckdb redis-cli mongo mongosh ed red ex vi vim nvim view rvim gvim vimdiff \
    emacs ftp lftp sftp tftp telnet m gnuplot bc dc fdisk gdb lldb debugfs openssl maxima gp gap gs";

/// Judges a command whose standard input is a pipe, a file or a here-document.
pub(super) fn obeys_input(command: &SimpleCommand) -> Option<Obstacle> {
    let name = command.name.as_ref()?;
    let obeys = |word: &str| {
        let program = program(word);
        interpreters::is_interpreter(&program) || listed(INPUT_OBEYERS, &program)
    };
    let starts_one =
        wrappers::starts_programs(&program(name)) && command.arguments.iter().any(|word| obeys(&word.text));
    (obeys(name) || starts_one)
        .then(|| Obstacle::Executes { command: name.clone(), option: "standard input".to_owned() })
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

/// Subcommands of git that may be allowed. Another word may be an alias or a program `git-word`.
const GIT_VERBS: &str = "\
    status log diff show branch tag add commit push pull fetch clone checkout switch restore reset stash merge \
    rebase cherry-pick revert rm mv clean init remote config blame grep ls-files ls-tree ls-remote rev-parse \
    rev-list describe shortlog reflog worktree notes bisect archive format-patch apply cat-file for-each-ref \
    show-ref symbolic-ref merge-base name-rev count-objects gc fsck prune submodule sparse-checkout version help \
    var whatchanged range-diff cherry diff-tree diff-index diff-files update-index hash-object write-tree \
    read-tree commit-tree pack-refs";

/// Subcommands of subcommands; any other is refused.
const GIT_SECOND_VERBS: &[(&str, &str)] =
    &[("bisect", "start good bad new old skip reset log"), ("submodule", "status update init sync")];

/// Subcommands of npm that run or write what makes it run something else, in their abbreviations too.
fn npm_doubt(arguments: &[Word]) -> Option<&str> {
    let running = ["exec", "explore", "create", "innit", "edit", "set-script"];
    options::possible_verb_tails(arguments).find_map(|tail| {
        let mut words = tail.iter().map(|word| word.text.as_str());
        let verb = words.next()?;
        let is_running = verb.len() > 1 && running.iter().any(|known| known.starts_with(verb) && verb != "in");
        let writes_config = (verb == "c" || verb.starts_with("conf"))
            && !matches!(words.find(|word| !word.starts_with('-')), Some("get" | "list" | "ls"));
        (is_running || writes_config || matches!(verb, "x" | "set" | "init" | "ini" | "se")).then_some(verb)
    })
}

/// `uv run pytest -p evil`: an option that executes, of a program started by this one.
fn started_doubt(arguments: &[Word]) -> Option<&str> {
    arguments.iter().enumerate().take(MOST_STARTED).find_map(|(position, word)| {
        let rest = arguments.get(position.saturating_add(1)..)?;
        options::executing(&program(&word.text), rest)
    })
}

/// How many words may be the name of a started program.
const MOST_STARTED: usize = 32;

/// Reads its makefile from a descriptor: `-f -`, `-f-`, `--file=/dev/stdin`.
fn make_doubt(arguments: &[Word]) -> Option<&str> {
    arguments.iter().map(|word| word.text.as_str()).find(|text| {
        let is_glued = text.starts_with('-') && !text.starts_with("--") && text.ends_with('-');
        is_glued || text.ends_with("=-") || is_device(text)
    })
}

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
    if !listed(GIT_VERBS, verb) {
        return Some(verb);
    }
    if let Some((_, known)) = GIT_SECOND_VERBS.iter().find(|(first, _)| *first == verb) {
        return words.find(|word| !word.starts_with('-')).filter(|second| !listed(known, second));
    }
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
