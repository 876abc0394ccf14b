//! SELF-1 for command lines, the slow way: lines that run Toolwarden with a changing verb or write to its files.

use std::path::Path;

use crate::naive::Case;
use crate::naive_reader::{Command, Line, Redirection, Word, read};
use crate::naive_shell::{Reached, Run, absolute, program, reached, reached_by};

/// Whether a text is certainly a command line, or may be prose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Line,
    Text,
}

/// Whether a command line changes us.
pub fn line_changes_us(text: &str, directory: &Path, case: &Case<'_>) -> bool {
    read(text).is_some_and(|line| changes_us(&line, text, directory, case, Given::Line))
}

/// Whether a text changes us if some tool takes it for a command line.
pub fn text_changes_us(text: &str, directory: &Path, case: &Case<'_>) -> bool {
    let by_line =
        read(text).is_some_and(|line| is_telling(&line, text) && changes_us(&line, text, directory, case, Given::Text));
    // Our name with a changing verb behind it counts anywhere, also in quotes and in programs.
    let plain: String = text.chars().filter(|next| !"'\"\\".contains(*next)).collect();
    by_line || names_us_with_a_verb(text) || names_us_with_a_verb(&plain)
}

fn names_us_with_a_verb(text: &str) -> bool {
    let parts = |next: char| next.is_whitespace() || "'\"`;|&(){}[]<>,=$".contains(next);
    let words: Vec<String> = text.split(parts).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    (0..words.len()).any(|at| words.get(at..).is_some_and(words_run_us))
}

/// Whether words are our program with a verb that is known to change something.
pub fn words_run_us(words: &[String]) -> bool {
    match words.split_first() {
        Some((first, rest)) => is_us(first) && verb_changes(rest, Given::Text),
        None => false,
    }
}

/// Our program, with or without a directory and a version.
pub fn is_us(name: &str) -> bool {
    let last = program(name).to_ascii_lowercase();
    last.trim_end_matches(|next: char| next.is_ascii_digit() || ".-".contains(next)) == "toolwarden"
}

/// A single line in which a variable may stand for a command.
fn is_one_line_with_variables(text: &str) -> bool {
    text.contains('$') && !text.contains('\n')
}

/// Whether words behind our program begin with a verb that is known to change something.
pub fn begins_with_changing_verb(words: &[String]) -> bool {
    verb_changes(words, Given::Text)
}

const READING: [&str; 13] = [
    "explain",
    "lint",
    "describe",
    "allowlist",
    "doctor",
    "help",
    "hook",
    "stdio",
    "run",
    "completions",
    "man",
    "servers list",
    "servers show",
];
const CHANGING: [&str; 8] = ["allow", "disallow", "trust", "approvals", "servers", "tokens", "settings", "serve"];

/// Every verb that does not only read changes something; in prose only our own verbs are verbs.
fn verb_changes(words: &[String], given: Given) -> bool {
    let Some(verb) = words.first() else { return false };
    let two = format!("{verb} {}", words.get(1).map_or("", String::as_str));
    let reads = READING.iter().any(|known| known == verb || *known == two.trim_end())
        || (verb == "servers" && words.len() == 1);
    let is_ours = CHANGING.contains(&verb.as_str()) || verb.starts_with('-');
    !reads && (given == Given::Line || is_ours)
}

/// Something tells the line from prose: it writes, or runs a program that changes files or runs others.
fn is_telling(line: &Line, text: &str) -> bool {
    let telling = ["toolwarden", "rm", "find", "cd", "sudo", "env", "nohup", "xargs", "bash", "sh", "eval", "npm"];
    let found = reached(line);
    line.all_redirections().any(|one| one.writes && one.target.text != "/dev/null")
        || !found.written.is_empty()
        || found.runs.iter().any(|run| match run {
            Run::Known(name, _) => telling.contains(&program(name)),
            Run::Unknown => is_one_line_with_variables(text),
        })
}

fn changes_us(line: &Line, text: &str, directory: &Path, case: &Case<'_>, given: Given) -> bool {
    let Reached { runs, written } = reached(line);
    let ground = Ground::new(&runs, directory, case);
    let writes = line.all_redirections().filter(|one| one.writes).map(|one| &one.target).chain(&written);
    if writes.into_iter().any(|target| ground.touches(target, false)) {
        return true;
    }
    if writes_where_links_may_come(line, &ground) {
        return true;
    }
    let mentions =
        text.to_lowercase().contains("toolwarden") && (given == Given::Line || is_one_line_with_variables(text));
    runs.iter().any(|run| match run {
        Run::Unknown => mentions,
        Run::Known(name, arguments) => match program(name) {
            _ if is_us(name) => {
                let words: Vec<String> = arguments.iter().map(|word| word.text.clone()).collect();
                verb_changes(&words, given)
            }
            "cat" | "ls" | "grep" | "echo" | "cd" => false,
            // Without an action it only looks.
            "find" if !arguments.iter().any(|word| ["-exec", "-delete"].contains(&word.text.as_str())) => false,
            changer => {
                let takes_trees = matches!(changer, "rm" | "find");
                ground.is_entered() || arguments.iter().any(|word| ground.touches(word, takes_trees))
            }
        },
    })
}

/// SHELL-3 for writers: what the line writes stays below the workspace, seen from every directory it may be in. The only
/// writer among the generated lines is `rm`.
pub fn writers_stay_inside(line: &Line, directory: &Path, case: &Case<'_>) -> bool {
    let ground = Ground::new(&reached(line).runs, directory, case);
    let workspace = case.query.workspace().map(|path| format!("{}/", path.display()));
    let removers = line.commands.iter().filter(|command| command.name().is_some_and(|name| program(name) == "rm"));
    let mut words = removers.flat_map(|command| command.arguments()).filter(|word| !word.text.starts_with('-'));
    words.all(|word| {
        let is_inside = |path: &String| workspace.as_ref().is_some_and(|workspace| path.starts_with(workspace));
        word.is_literal && ground.meanings(&word.text).iter().all(is_inside)
    })
}

/// A command writes below a directory into which another command of the line may have brought links. What a command
/// writes to by itself is opened before it runs.
fn writes_where_links_may_come(line: &Line, ground: &Ground) -> bool {
    let is_doubtful = |one: &Redirection| {
        let names_a_file = one.writes && one.target.text != "/dev/null" && !one.target.text.contains('$');
        let paths = ground.meanings(&one.target.text);
        let is_below = |path: &String| ground.directories.iter().any(|here| path.starts_with(&format!("{here}/")));
        names_a_file && paths.iter().any(is_below)
    };
    let of_groups = line.redirections.iter().any(is_doubtful) && line.commands.iter().any(brings);
    let of_commands = line.commands.iter().enumerate().any(|(at, command)| {
        let others = || line.commands.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other);
        command.redirections.iter().any(is_doubtful) && others().any(brings)
    });
    of_groups || of_commands
}

/// A command brings files, among which links may be.
fn brings(command: &Command) -> bool {
    let runs = reached_by(command).runs;
    runs.iter()
        .any(|run| matches!(run, Run::Known(name, arguments) if program(name) == "git" && brings_files(arguments)))
}

/// SHELL-3 for readers: nothing is shown that another command of the line may have brought. The only such reader with
/// a path among the generated lines is `cat`.
pub fn readers_stay_known(line: &Line, directory: &Path, case: &Case<'_>) -> bool {
    let ground = Ground::new(&reached(line).runs, directory, case);
    let is_below = |word: &Word| {
        let is_in = |path: &String| ground.directories.iter().any(|here| path.starts_with(&format!("{here}/")));
        !word.text.contains('$') && ground.meanings(&word.text).iter().any(is_in)
    };
    let is_read = |one: &&Redirection| !one.writes && one.target.text != "/dev/null" && is_below(&one.target);
    let of_redirections = line.all_redirections().filter(is_read).count() > 0 && line.commands.iter().any(brings);
    let of_words = line.commands.iter().enumerate().any(|(at, command)| {
        let others = || line.commands.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other);
        let is_cat = command.name().is_some_and(|name| program(name) == "cat");
        is_cat && command.arguments().iter().any(is_below) && others().any(brings)
    });
    !of_redirections && !of_words
}

/// Whether git may bring other files into the work tree. A few verbs are known not to, and without a verb it does nothing.
fn brings_files(arguments: &[Word]) -> bool {
    let mut words = arguments.iter().map(|word| word.text.as_str());
    let verb = loop {
        match words.next() {
            Some("-c") => words.next(),
            verb => break verb,
        };
    };
    verb.is_some_and(|verb| !["status", "push", "log"].contains(&verb))
}

/// Where the line may be, and what is ours.
struct Ground {
    directories: Vec<String>,
    home: String,
    places: Vec<String>,
}

impl Ground {
    /// The working directory, and whatever each `cd` makes of the ones before it.
    fn new(runs: &[Run], directory: &Path, case: &Case<'_>) -> Self {
        let base = &case.input.base;
        let home = base.home.as_ref().map(|home| home.to_string_lossy().into_owned()).unwrap_or_default();
        let places = base.protected_paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let mut ground = Self { directories: vec![absolute("", directory)], home, places };
        for run in runs {
            let Run::Known(name, arguments) = run else { continue };
            if program(name) == "cd" {
                let target = arguments.first().map_or("~", |word| word.text.as_str());
                let more = ground.meanings(target);
                ground.directories.extend(more);
            }
        }
        ground
    }

    /// The paths a text may mean.
    fn meanings(&self, text: &str) -> Vec<String> {
        let text = match text.strip_prefix('~').or_else(|| text.strip_prefix("$HOME")) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{}{rest}", self.home),
            _ => text.to_owned(),
        };
        self.directories.iter().map(|directory| absolute(&text, Path::new(directory))).collect()
    }

    /// A `cd` goes into a place of ours.
    fn is_entered(&self) -> bool {
        let entered = self.directories.get(1..).unwrap_or(&[]);
        self.places.iter().any(|place| entered.iter().any(|path| format!("{path}/").starts_with(&format!("{place}/"))))
    }

    /// The word is a place of ours, lies in one, or holds one: a tree that is changed as a whole, or a directory that is
    /// not the one the line works in. Text that spells a place out counts, too.
    fn touches(&self, word: &Word, takes_trees: bool) -> bool {
        let text = word.text.replace(['"', '\''], "");
        self.places.iter().any(|place| {
            let below_home = place.strip_prefix(&self.home).unwrap_or(place);
            let spelled = [place.clone(), format!("~{below_home}"), format!("$HOME{below_home}")];
            let last_two: Vec<&str> = place.rsplitn(3, '/').take(2).collect();
            let is_code = word.text.contains([' ', '(', '"', '\'', '\n']);
            let in_code = is_code && text.contains(&last_two.into_iter().rev().collect::<Vec<_>>().join("/"));
            if in_code || spelled.iter().any(|spelling| text.contains(spelling)) {
                return true;
            }
            if text.is_empty() || text.starts_with('-') || text.contains('$') {
                return false;
            }
            // The only pattern among the generated lines stands for every name without a dot in front.
            let stands_for = |path: &String| {
                let below = path.strip_suffix('*').and_then(|above| place.strip_prefix(above));
                let names: Vec<&str> = below.into_iter().flat_map(|below| below.split('/')).collect();
                let first = names.first().filter(|first| !first.starts_with('.'));
                first.is_some() && (names.len() == 1 || takes_trees)
            };
            if self.meanings(&text).iter().any(stands_for) {
                return true;
            }
            self.meanings(&text).iter().any(|path| {
                let works_here =
                    self.directories.iter().any(|here| format!("{here}/").starts_with(&format!("{path}/")));
                let holds = format!("{place}/").starts_with(&format!("{path}/"));
                format!("{path}/").starts_with(&format!("{place}/")) || (holds && (takes_trees || !works_here))
            })
        })
    }
}
