//! Judges one simple command by its name and arguments: may an entry allow it at all?
//! Takes a finished command; gives the reason why it can never be auto-allowed. The knowledge is in the
//! tables of `wrappers`, `options`, `interpreters`, `git`, `executed` and `unpacking`.

use crate::effects::effects;
use crate::executed::{reached_by_word, read_by_word, written_by_word};
use crate::followers;
use crate::git;
use crate::interpreters;
use crate::line::{Obstacle, SimpleCommand, Word};
use crate::options;
use crate::paths::is_device;
use crate::readers::{
    is_loop_variable, is_reader, is_recursive, is_substituted, is_unknowable, opens_files, path_words,
};
use crate::sed_scripts::is_plain_script;
use crate::transfers;
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
    let mut positions = 0..command.arguments.len();
    if is_listed && positions.any(|position| may_mean_more(&program, &command.arguments, position)) {
        return Some(Obstacle::ArgumentNotLiteral(name.clone()));
    }
    let executing = options::executing(&program, &command.arguments)
        .or_else(|| interpreters::inline_code(&program, &command.arguments))
        .or_else(|| match program.as_str() {
            "git" => git::read(&command.arguments).err(),
            "npm" => npm_doubt(&command.arguments),
            "make" | "gmake" | "bmake" | "nmake" => make_doubt(&command.arguments),
            "ps" => shows_environments(&command.arguments),
            "curl" | "wget" => transfers::doubt(&program, &command.arguments),
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
    if let Some(option) = followers::takes_names(&program, &command.arguments) {
        return Some(Obstacle::NamesFromFile { command: name.clone(), option: option.to_owned() });
    }
    if let Err(option) = effects(&program, &command.arguments) {
        return Some(Obstacle::UnknownOption { command: name.clone(), option: option.to_owned() });
    }
    is_unresolved(&program, &command.arguments).then(|| Obstacle::TargetNotKnown(name.clone()))
}

/// `ps e` and `ps auxe` show the environments of processes, `ps -e` does not.
fn shows_environments(arguments: &[Word]) -> Option<&str> {
    let is_bundle = |text: &&str| !text.starts_with('-') && text.contains(['e', 'E']);
    arguments.iter().map(|word| word.text.as_str()).find(is_bundle)
}

/// Subcommands of git whose operands are paths or revisions, whatever they are called.
const GIT_TAKES_PATHS: &str = "add stage rm ls-files diff log show blame status restore";

/// Whether an argument that is expanded could mean more than the name of a file. A pattern that starts with an ordinary
/// character does not become an option; but files may have the name of a subcommand or hold a script in their name.
fn may_mean_more(program: &str, arguments: &[Word], position: usize) -> bool {
    let (Some(word), Some(before)) = (arguments.get(position), arguments.get(..position)) else { return true };
    let is_literal = |test: &dyn Fn(&str) -> bool| before.iter().any(|word| word.literal && test(&word.text));
    let is_file = match program {
        "sort" | "gsort" | "find" | "gfind" => true,
        "tar" => position > 0,
        // Behind the script, which must be known.
        "sed" | "gsed" => is_literal(&|text| !text.starts_with('-') && is_plain_script(text)),
        "git" => before.iter().all(|word| word.literal) && is_literal(&|text| listed(GIT_TAKES_PATHS, text)),
        _ => false,
    };
    let starts_plainly = word.text.starts_with(|first: char| first.is_ascii_alphanumeric() || "./_".contains(first));
    let is_pattern = word.text.chars().all(|letter| letter.is_ascii_alphanumeric() || "./_-+*?[]".contains(letter));
    let is_certain = word.literal || (is_file && starts_plainly && is_pattern);
    !is_certain
}

/// The place whose files are executed that an argument reaches, also put together from two words.
fn executed_place(program: &str, arguments: &[Word]) -> Option<String> {
    if program == "git" {
        let known = git::read(arguments).ok()?;
        let reaches = if git::changes_tree(arguments) { reached_by_word } else { read_by_word };
        return known.paths.into_iter().find_map(reaches);
    }
    let reaches = if is_reader(program) { read_by_word } else { reached_by_word };
    let named = path_words(program, arguments).into_iter().find_map(|word| reaches(&word.text));
    named.or_else(|| {
        let effects = effects(program, arguments).ok()?;
        effects.written.iter().chain(&effects.joined()).find_map(|word| written_by_word(&word.text))
    })
}

/// Whether a program that opens files is given a word that cannot be known, or the directory changes to one. What it reads
/// may be keys of ours.
fn is_unresolved(program: &str, arguments: &[Word]) -> bool {
    if wrappers::changes_directory(program) {
        let goes_back = !matches!(program, "cd" | "chdir") || arguments.iter().any(|word| word.text == "-");
        return goes_back || arguments.iter().any(is_unknowable);
    }
    if is_reader(program) {
        let is_known = |word: &Word| is_loop_variable(word) && !is_recursive(program, arguments);
        // What stands in `<(..)` is a command, and judged as one.
        let is_printed = |word: &Word| word.text.starts_with("<(");
        let is_unknown = |word: &&Word| is_unknowable(word) && !is_known(word) && !is_printed(word);
        let names_unknown = || path_words(program, arguments).iter().any(is_unknown);
        return opens_files(program) && (arguments.iter().any(is_substituted) || names_unknown());
    }
    arguments.iter().any(is_unknowable)
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
