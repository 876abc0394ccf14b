//! Command lines, the slow way: entries, what a line may run, what it deletes and where it writes (SHELL-1 to SHELL-4).
//! The tables hold what the generated lines use, and are written from the requirements.

use std::path::Path;

use crate::naive_reader::{Command, Line, Word, is_assignment, read};

/// Whether an entry is one at all.
pub fn is_entry(entry: &str) -> bool {
    let base = entry.split_once(':').map_or(entry, |(base, _)| base);
    !base.trim().is_empty() && !base.contains('*')
}

/// Whether an entry covers a command that nothing keeps from being covered.
pub fn entry_matches(entry: &str, command: &Command, line: &Line) -> bool {
    match command.name() {
        Some(name) if !is_never_covered(command, line) => matches_words(entry, name, command.arguments()),
        _ => false,
    }
}

/// Compares an entry with a command word and its arguments.
fn matches_words(entry: &str, name: &str, arguments: &[Word]) -> bool {
    if !is_entry(entry) {
        return false;
    }
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let text = if texts.is_empty() { name.to_owned() } else { format!("{name} {}", texts.join(" ")) };
    match entry.split_once(':') {
        None => text == entry || text.starts_with(&format!("{entry} ")),
        Some((base, glob)) if base == text => glob_matches(glob, ""),
        Some((base, glob)) => text.strip_prefix(&format!("{base} ")).is_some_and(|rest| glob_matches(glob, rest)),
    }
}

/// `*` spans anything; both ends are anchored.
fn glob_matches(glob: &str, text: &str) -> bool {
    match glob.split_once('*') {
        None => glob == text,
        Some((before, after)) => match text.strip_prefix(before) {
            None => false,
            Some(rest) => {
                let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
                ends.filter_map(|at| rest.get(at..)).any(|tail| glob_matches(after, tail))
            }
        },
    }
}

/// Every command is covered by itself.
pub fn covers(entries: &[&str], line: &Line) -> bool {
    line.commands.iter().all(|command| entries.iter().any(|entry| entry_matches(entry, command, line)))
}

/// Programs that run what they are given.
const WRAPPERS: [&str; 8] = ["sudo", "env", "nohup", "xargs", "bash", "sh", "eval", "time"];
/// Programs with options that execute: none of their arguments may be expanded into one.
const WITH_EXECUTING_OPTIONS: [&str; 5] = ["git", "find", "npm", "cargo", "grep"];

/// SHELL-3: what no entry allows.
fn is_never_covered(command: &Command, line: &Line) -> bool {
    let Some(name) = command.name() else { return true };
    let program = program(name);
    let has = |option: &str| command.arguments().iter().any(|word| word.text == option);
    let executes = match program {
        "git" => has("-c"),
        "find" => has("-exec") || has("-delete"),
        _ => false,
    };
    let is_expanded = WITH_EXECUTING_OPTIONS.contains(&program) && command.arguments().iter().any(|w| !w.is_literal);
    let opens_its_words = program != "echo";
    let reaches_git =
        opens_its_words && command.arguments().iter().any(|word| word.text.split('/').any(|n| n == ".git"));
    let moves = line.commands.iter().any(|command| command.words.first().is_some_and(|word| word.text == "cd"));
    let is_relative = name.contains('/') && !name.starts_with('/');
    line.assigns
        || line.has_comment
        || WRAPPERS.contains(&program)
        || executes
        || is_expanded
        || reaches_git
        || (moves && is_relative)
}

/// The last name of a command word.
pub fn program(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Something a line may run, looked for through wrappers and text that is given to a shell.
#[derive(Debug)]
pub enum Run {
    Known(String, Vec<Word>),
    /// It cannot be told what it is.
    Unknown,
}

/// Everything a line may run, and the targets that text given to a shell writes to.
#[derive(Debug, Default)]
pub struct Reached {
    pub runs: Vec<Run>,
    pub written: Vec<Word>,
}

pub fn reached(line: &Line) -> Reached {
    let mut found = Reached::default();
    for command in &line.commands {
        run(&command.words, &mut found);
    }
    found
}

pub fn reached_by(command: &Command) -> Reached {
    let mut found = Reached::default();
    run(&command.words, &mut found);
    found
}

fn run(words: &[Word], found: &mut Reached) {
    let Some((first, arguments)) = words.split_first() else { return };
    if !first.is_literal {
        found.runs.push(Run::Unknown);
        return;
    }
    found.runs.push(Run::Known(first.text.clone(), arguments.to_vec()));
    match program(&first.text) {
        "sudo" | "env" | "nohup" | "xargs" | "time" => {
            let is_before = |word: &&Word| word.is_literal && (word.text.starts_with('-') || is_assignment(&word.text));
            let start = arguments.iter().take_while(is_before).count();
            run(arguments.get(start..).unwrap_or(&[]), found);
        }
        // Its words are put together to text: each may turn out to be a command.
        "eval" => {
            for at in 0..arguments.len() {
                let tail = arguments.get(at..).unwrap_or(&[]);
                if tail.first().is_some_and(|word| !word.text.starts_with('-')) {
                    run(tail, found);
                }
            }
            arguments.iter().for_each(|word| text(word, found));
        }
        "bash" | "sh" => match arguments {
            [option, script] if option.text == "-c" => text(script, found),
            _ => found.runs.push(Run::Unknown),
        },
        "find" => {
            if let Some(at) = arguments.iter().position(|word| word.text == "-exec") {
                run(arguments.get(at + 1..).unwrap_or(&[]), found);
            }
        }
        _ => {}
    }
}

/// A word that a shell reads as a line.
fn text(word: &Word, found: &mut Reached) {
    let inner = word.is_literal.then(|| read(&word.text)).flatten();
    match inner {
        Some(line) => {
            found.written.extend(line.all_redirections().filter(|one| one.writes).map(|one| one.target.clone()));
            let inner = reached(&line);
            found.runs.extend(inner.runs);
            found.written.extend(inner.written);
        }
        None if word.is_literal
            && word.text.chars().all(|next| next.is_ascii_alphanumeric() || "-_./:=".contains(next)) => {}
        None => found.runs.push(Run::Unknown),
    }
}

/// SHELL-1: the line deletes, or may.
pub fn deletes(line: &Line) -> bool {
    reached(line).runs.iter().any(|run| match run {
        Run::Unknown => true,
        Run::Known(name, arguments) => {
            let has = |wanted: &str| arguments.iter().any(|word| word.text == wanted);
            match program(name) {
                "rm" => true,
                "git" => has("clean"),
                "find" => has("-delete"),
                _ => false,
            }
        }
    })
}

/// SHELL-4: an entry matches something the line may run, also by the last name; what cannot be told may be blocked.
pub fn is_blocked(blocked: &[&str], line: &Line) -> bool {
    let entries: Vec<&&str> = blocked.iter().filter(|entry| is_entry(entry)).collect();
    let matches = |name: &str, arguments: &[Word]| {
        // Options before a verb do not hide it: `git -c x=y status` is `git status`.
        let starts = (0..arguments.len().max(1)).filter(|at| *at == 0 || is_behind_options(arguments, *at));
        let tails: Vec<&[Word]> = starts.filter_map(|at| arguments.get(at..)).collect();
        entries.iter().any(|entry| {
            tails.iter().any(|tail| matches_words(entry, name, tail) || matches_words(entry, program(name), tail))
        })
    };
    !entries.is_empty()
        && reached(line).runs.iter().any(|run| match run {
            Run::Unknown => true,
            Run::Known(name, arguments) => matches(name, arguments),
        })
}

/// Whether everything before this place may be options and their values.
fn is_behind_options(arguments: &[Word], at: usize) -> bool {
    let before = arguments.get(..at).unwrap_or(&[]);
    let is_option = |word: &Word| word.text.starts_with('-');
    before.first().is_some_and(is_option)
        && before.windows(2).all(|pair| match pair {
            [one, two] => is_option(one) || is_option(two),
            _ => true,
        })
}

/// SHELL-3: redirections other than to /dev/null go to literal paths inside the workspace, no directory is changed, and
/// git's own files are not among them.
pub fn stays_inside(line: &Line, workspace: Option<&Path>, directory: &Path) -> bool {
    let moves = line.commands.iter().any(|command| command.words.first().is_some_and(|word| word.text == "cd"));
    line.all_redirections().filter(|one| one.target.text != "/dev/null").all(|one| {
        let target = absolute(&one.target.text, directory);
        let workspace = workspace.map(|path| path.to_string_lossy().into_owned());
        let inside = workspace.is_some_and(|workspace| target.starts_with(&format!("{workspace}/")));
        one.target.is_literal && inside && !moves && !target.split('/').any(|name| name == ".git")
    })
}

/// A path from the root on, without `.` and `..`.
pub fn absolute(text: &str, directory: &Path) -> String {
    let written = if text.starts_with('/') { text.to_owned() } else { format!("{}/{text}", directory.display()) };
    let mut names: Vec<&str> = Vec::new();
    for name in written.split('/').filter(|name| !name.is_empty() && *name != ".") {
        if name == ".." {
            names.pop();
        } else {
            names.push(name);
        }
    }
    names.iter().map(|name| format!("/{name}")).collect()
}

/// The narrowest entry for a command; none where a word is expanded or no entry could cover it.
pub fn candidate(command: &Command, line: &Line) -> Option<String> {
    let arguments = command.arguments();
    if is_never_covered(command, line) || arguments.iter().any(|word| !word.is_literal || word.text.contains('*')) {
        return None;
    }
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let entry = format!("{}:{}", command.name()?, texts.join(" "));
    entry_matches(&entry, command, line).then_some(entry)
}
