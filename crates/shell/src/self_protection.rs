//! Finds lines that would change Toolwarden itself.
//! Takes a read line and the protected paths (config, data, trusted workspace files, client hooks); gives
//! why the line must be held: a changing `toolwarden` command, or a path that lands on, under or above a
//! protected one in anything but a pure reader. Unknown verbs count as changing.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::line::{Direction, Redirection, ShellLine, Word};
use crate::obstacles::changes_directory;
use crate::paths::{normalise, resolve};
use crate::reach::{Invocation, Reached, visit};
use crate::wrappers::{self, program};

/// Programs that read their arguments and never change them.
const READERS: &[&str] = &[
    "cat",
    "ls",
    "head",
    "tail",
    "less",
    "more",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "stat",
    "wc",
    "diff",
    "file",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "cmp",
    "cd",
    "pwd",
    "echo",
    "test",
    "[",
    "true",
    "false",
    "realpath",
    "dirname",
    "basename",
    "du",
    "tree",
];

/// Programs that change everything below a directory they are given.
const TREE_CHANGERS: &[&str] = &[
    "rm",
    "rmdir",
    "mv",
    "cp",
    "rsync",
    "chmod",
    "chown",
    "chgrp",
    "chattr",
    "setfacl",
    "ln",
    "tar",
    "unzip",
    "find",
    "shred",
    "srm",
    "trash",
    "trash-put",
    "install",
    "rd",
    "del",
    "erase",
    "remove-item",
    "ri",
    "mount",
    "umount",
    "rimraf",
    "unlink",
];
const MOST_BASES: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trees {
    Changed,
    Used,
}

/// Global options without a value that may stand before or behind a verb.
const FLAGS: &[&str] = &["--json", "--quiet", "-q", "--verbose", "-v", "--no-color", "--help", "-h", "--version", "-V"];
const VALUED: &[&str] = &["--config", "--data-dir"];

/// Verbs that only read. `None`: the verb alone reads; otherwise the second words that read.
const READING: &[(&str, Option<&[&str]>)] = &[
    ("explain", None),
    ("lint", None),
    ("describe", None),
    ("allowlist", None),
    ("doctor", None),
    ("help", None),
    ("hook", None),
    ("stdio", None),
    ("run", None),
    ("servers", Some(&["list", "show"])),
    ("tools", Some(&["list", "diff", "show"])),
    ("modes", Some(&["list", "show", "validate", "suggest", "template"])),
    ("sessions", Some(&["list"])),
    ("roles", Some(&["list", "show"])),
    ("rules", Some(&["list", "check", "show"])),
    ("settings", Some(&["get", "list", "show"])),
    ("admin", Some(&["show"])),
    ("policy", Some(&["history", "diff", "replay"])),
    ("grants", Some(&["list"])),
    ("approvals", Some(&["list", "show", "watch"])),
    ("audit", Some(&["tail", "query", "verify", "stats"])),
    ("vault", Some(&["status"])),
];

/// Why the line would change Toolwarden; `None` when nothing of the kind was found. `protected` holds
/// absolute paths; `home` is what `~` and `$HOME` stand for.
pub fn changes_toolwarden(line: &ShellLine, protected: &[PathBuf], cwd: &Path, home: Option<&Path>) -> Option<String> {
    let mut ground =
        Ground { protected: protected.iter().map(|path| normalise(path)).collect(), bases: vec![normalise(cwd)], home };
    ground.follow_directories(line);
    if let Some(why) = line.all_redirections().find_map(|redirection| ground.redirection(redirection)) {
        return Some(why);
    }
    let mentions = line.source.to_ascii_lowercase().contains("toolwarden");
    let mut why = None;
    visit(line, &mut |reached| {
        why = match reached {
            Reached::Unknown { text } if mentions => Some(format!("cannot tell what `{text}` does with toolwarden")),
            Reached::Unknown { .. } => None,
            Reached::Invocation(invocation) => ground.invocation(invocation),
        };
        if why.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    why
}

struct Ground<'a> {
    protected: Vec<PathBuf>,
    /// Directories that relative paths may start from: the working directory and each target of a `cd`.
    bases: Vec<PathBuf>,
    home: Option<&'a Path>,
}

impl Ground<'_> {
    /// Adds the target of each `cd`, seen from every directory before it.
    fn follow_directories(&mut self, line: &ShellLine) {
        for command in line.commands.iter().filter(|command| changes_directory(command)) {
            let targets: Vec<String> = match command.arguments.iter().find(|word| !word.text.starts_with('-')) {
                Some(word) => vec![self.expand_home(word.text.trim_matches(['"', '\'']))],
                None => vec![self.expand_home("~")],
            };
            let reached: Vec<PathBuf> = self
                .bases
                .iter()
                .flat_map(|base| targets.iter().filter_map(move |target| resolve(target, base)))
                .collect();
            self.bases.extend(reached);
            self.bases.sort();
            self.bases.dedup();
            self.bases.truncate(MOST_BASES);
        }
    }

    fn redirection(&self, redirection: &Redirection) -> Option<String> {
        if redirection.direction != Direction::Writes {
            return None;
        }
        let path = self.touched(&redirection.target, Trees::Used)?;
        Some(format!("writes to {}, which belongs to toolwarden", path.display()))
    }

    fn invocation(&self, invocation: Invocation<'_>) -> Option<String> {
        let program = program(invocation.name);
        if program == "toolwarden" {
            return changing_verb(invocation.arguments).map(|verb| format!("runs `toolwarden {verb}`"));
        }
        if READERS.contains(&program.as_str()) {
            return None;
        }
        // A wrapper's words are also shown one by one, each as a command of its own.
        if wrappers::reach(&program).is_some_and(|reach| reach == wrappers::Reach::Words) {
            return None;
        }
        let path = match self.entered() {
            Some(entered) => entered,
            None => {
                let trees = if TREE_CHANGERS.contains(&program.as_str()) { Trees::Changed } else { Trees::Used };
                invocation.arguments.iter().find_map(|word| self.touched(word, trees))?
            }
        };
        Some(format!("`{program}` touches {}, which belongs to toolwarden", path.display()))
    }

    /// The protected directory that a `cd` goes into: every command there is suspect.
    fn entered(&self) -> Option<&Path> {
        let targets = self.bases.get(1..).unwrap_or(&[]);
        self.protected
            .iter()
            .find(|protected| targets.iter().any(|base| base.starts_with(protected)))
            .map(PathBuf::as_path)
    }

    /// The protected path a word lands on, under or above; looks behind `=` and glued short options too.
    fn touched(&self, word: &Word, trees: Trees) -> Option<&Path> {
        let text = word.text.trim_matches(['"', '\'']);
        let behind_equals = text.split_once('=').map(|(_, value)| value);
        let glued = text.strip_prefix('-').and_then(|option| option.get(1..));
        [Some(text), behind_equals, glued].into_iter().flatten().find_map(|text| self.landing(text, trees))
    }

    fn landing(&self, text: &str, trees: Trees) -> Option<&Path> {
        if text.is_empty() || text.starts_with('-') {
            return None;
        }
        let expanded = self.expand_home(text);
        let literal = cut_at_expansion(&expanded);
        let is_pattern = literal.len() != expanded.len();
        let paths: Vec<PathBuf> = self.bases.iter().filter_map(|base| resolve(literal, base)).collect();
        self.protected.iter().map(PathBuf::as_path).find(|protected| {
            paths.iter().any(|path| {
                let may_become = is_pattern && starts_like(protected, path);
                path.starts_with(protected) || may_become || self.takes_tree(path, protected, trees)
            })
        })
    }

    /// `rm -rf ~/.config` takes what is below it. Other commands are often given the directory they run in
    /// (`eslint .`), which says nothing about the files in it.
    fn takes_tree(&self, path: &Path, protected: &Path, trees: Trees) -> bool {
        let is_here = self.bases.iter().any(|base| base.starts_with(path));
        protected.starts_with(path) && (trees == Trees::Changed || !is_here)
    }

    fn expand_home(&self, text: &str) -> String {
        let Some(home) = self.home else { return text.to_owned() };
        for prefix in ["~", "$HOME", "${HOME}"] {
            if let Some(rest) = text.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('/')) {
                return format!("{}{rest}", home.display());
            }
        }
        text.to_owned()
    }
}

/// What stands before the first character that a shell would expand.
fn cut_at_expansion(text: &str) -> &str {
    text.split(['*', '?', '[', '{', '$', '`']).next().unwrap_or(text)
}

/// Whether `protected` could be an expansion of a pattern that begins with `path`.
fn starts_like(protected: &Path, path: &Path) -> bool {
    protected.to_string_lossy().starts_with(path.to_string_lossy().as_ref())
}

/// The verb when it changes something or is not known.
fn changing_verb(arguments: &[Word]) -> Option<String> {
    let mut words = arguments.iter().map(|word| word.text.as_str());
    let verb = match next_verb(&mut words) {
        Next::Verb(verb) => verb,
        Next::Nothing => return None,
        Next::Odd(option) => return Some(option.to_owned()),
    };
    let Some((_, second_words)) = READING.iter().find(|(known, _)| *known == verb) else {
        return Some(verb.to_owned());
    };
    let Some(reading) = second_words else { return None };
    match next_verb(&mut words) {
        Next::Verb(second) if reading.contains(&second) => None,
        Next::Nothing => None,
        Next::Verb(second) | Next::Odd(second) => Some(format!("{verb} {second}")),
    }
}

enum Next<'a> {
    Verb(&'a str),
    Nothing,
    /// An option that is not known, so that the word behind it may be its value or a verb.
    Odd(&'a str),
}

fn next_verb<'a>(words: &mut impl Iterator<Item = &'a str>) -> Next<'a> {
    while let Some(word) = words.next() {
        if matches!(word, "--help" | "-h" | "--version" | "-V") {
            return Next::Nothing;
        }
        if !word.starts_with('-') {
            return Next::Verb(word);
        }
        let name = word.split('=').next().unwrap_or(word);
        if VALUED.contains(&name) {
            if !word.contains('=') {
                words.next();
            }
        } else if !FLAGS.contains(&word) {
            return Next::Odd(word);
        }
    }
    Next::Nothing
}
