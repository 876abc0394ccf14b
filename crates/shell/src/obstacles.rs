//! Judges one simple command by its name and arguments: may an entry allow it at all?
//! Takes a finished command; gives the reason why it can never be auto-allowed. The knowledge is in the
//! tables of `wrappers`, `options`, `interpreters`, `git`, `executed` and `unpacking`.

use crate::executed::reached_by_word;
use crate::git;
use crate::interpreters;
use crate::line::{Obstacle, SimpleCommand, Word};
use crate::options;
use crate::paths::is_device;
use crate::readers::{is_reader, is_unknowable, path_words};
use crate::unpacking;
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
    let is_listed = program == "git" || options::knows(&program) || interpreters::knows(&program);
    if is_listed && command.arguments.iter().any(|word| !word.literal) {
        return Some(Obstacle::ArgumentNotLiteral(name.clone()));
    }
    let executing = options::executing(&program, &command.arguments)
        .or_else(|| interpreters::inline_code(&program, &command.arguments))
        .or_else(|| match program.as_str() {
            "git" => git::read(&command.arguments).err(),
            "npm" => npm_doubt(&command.arguments),
            "make" | "gmake" | "bmake" | "nmake" => make_doubt(&command.arguments),
            _ if wrappers::starts_programs(&program) => started_doubt(&command.arguments),
            _ => None,
        });
    if let Some(option) = executing {
        return Some(Obstacle::Executes { command: name.clone(), option: option.to_owned() });
    }
    if let Some(place) = executed_place(&program, &command.arguments) {
        return Some(Obstacle::ExecutedPlace { command: name.clone(), place });
    }
    if unpacking::unpacks(&program, &command.arguments).is_some() {
        return Some(Obstacle::Unpacks(name.clone()));
    }
    is_unresolved(&program, &command.arguments).then(|| Obstacle::TargetNotKnown(name.clone()))
}

/// The place whose files are executed that an argument reaches.
fn executed_place(program: &str, arguments: &[Word]) -> Option<String> {
    if program == "git" {
        let known = git::read(arguments).ok()?;
        return known.paths.into_iter().find_map(reached_by_word);
    }
    path_words(program, arguments).into_iter().find_map(|word| reached_by_word(&word.text))
}

/// Whether a program that may write is given a word that cannot be known, or the directory changes to one.
fn is_unresolved(program: &str, arguments: &[Word]) -> bool {
    if wrappers::changes_directory(program) {
        let goes_back = !matches!(program, "cd" | "chdir") || arguments.iter().any(|word| word.text == "-");
        return goes_back || arguments.iter().any(is_unknowable);
    }
    !is_reader(program) && arguments.iter().any(is_unknowable)
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
        match program(&word.text).as_str() {
            "git" => git::read(rest).err(),
            program => options::executing(program, rest),
        }
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
