//! Finds lines that would change Toolwarden itself.
//! Takes a read line and the protected paths (config, data, trusted workspace files, client hooks); gives
//! why the line must be held: a changing `toolwarden` command, or a path that lands on, under or above a
//! protected one in anything but a pure reader. Unknown verbs count as changing.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::line::{Direction, Redirection, ShellLine, Word};
use crate::paths::{normalise, resolve};
use crate::reach::{Invocation, Reached, visit};
use crate::wrappers::{self, program};

/// Programs that read their arguments and never change them.
const READERS: &[&str] = &[
    "cat",
    "ls",
    "head",
    "tail",
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
const MOST_ALTERNATIVES: usize = 100;

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
    ("approvals", Some(&["list", "show"])),
    ("audit", Some(&["tail", "query", "verify", "stats", "export"])),
    ("completions", None),
    ("man", None),
    ("vault", Some(&["status"])),
];

/// Verbs that are known to change something: their words are no prose. Whatever is not among those that read counts as changing.
const CHANGING: &[&str] =
    &["allow", "disallow", "unblock", "trust", "init", "import", "connect", "serve", "edge", "tokens", "leases"];

/// Why the line would change Toolwarden; `None` when nothing of the kind was found. `protected` holds
/// absolute paths; `home` is what `~` and `$HOME` stand for.
pub fn changes_toolwarden(line: &ShellLine, protected: &[PathBuf], cwd: &Path, home: Option<&Path>) -> Option<String> {
    look(line, protected, cwd, home, Given::AsLine)
}

/// Whether a text is certainly a command line, or any text that can be read as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    AsLine,
    /// It may be prose: what is not known says nothing, and neither do words that are no verb of ours.
    AsText,
}

pub(super) fn look(
    line: &ShellLine,
    protected: &[PathBuf],
    cwd: &Path,
    home: Option<&Path>,
    given: Given,
) -> Option<String> {
    let protected: Vec<PathBuf> = protected.iter().map(|path| normalise(path)).collect();
    let here = normalise(cwd);
    let mut ground = Ground { protected, bases: vec![here.clone()], here, is_lost: false, home, given };
    if ground.follow_directories(line) == Followed::TooMany {
        return Some("changes the directory too often to tell what it does with toolwarden".to_owned());
    }
    if let Some(why) = line.all_redirections().find_map(|redirection| ground.redirection(redirection)) {
        return Some(why);
    }
    let is_doubtful = given == Given::AsLine || is_single_with_variables(&line.source);
    let mentions = line.source.to_ascii_lowercase().contains("toolwarden") || ground.is_named_in(&line.source);
    let mentions = mentions && is_doubtful;
    // The body of a here-document is no argument of any command.
    let in_document = line.source.contains("<<") && ground.spelled(&line.source).is_some();
    let mut why = None;
    visit(line, &mut |reached| {
        why = match reached {
            Reached::Unknown { text } if mentions => Some(format!("cannot tell what `{text}` does with toolwarden")),
            Reached::Unknown { .. } => None,
            Reached::Redirection(redirection) => ground.redirection(redirection),
            Reached::Invocation(invocation) if in_document && !is_reader(&program(invocation.name)) => {
                Some(format!("`{}` is given text that names files of toolwarden", invocation.name))
            }
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
    /// The working directory itself, the first of the bases.
    here: PathBuf,
    /// A `cd` goes to a place that cannot be known.
    is_lost: bool,
    home: Option<&'a Path>,
    given: Given,
}

impl Ground<'_> {
    /// Adds the target of each `cd`, also inside text given to shells, seen from every directory before it.
    fn follow_directories(&mut self, line: &ShellLine) -> Followed {
        let mut targets: Vec<Word> = Vec::new();
        visit(line, &mut |reached| {
            if let Reached::Invocation(invocation) = reached
                && wrappers::changes_directory(&program(invocation.name))
            {
                let target = invocation.arguments.iter().find(|word| word.text == "-" || !word.text.starts_with('-'));
                let is_cd = matches!(invocation.name, "cd" | "chdir");
                // `popd`, `pushd` and `z` go where the shell remembers.
                let otherwise = Word::raw(if is_cd { "~" } else { "-" });
                targets.push(target.filter(|_| program(invocation.name) != "z").cloned().unwrap_or(otherwise));
            }
            ControlFlow::Continue(())
        });
        for target in targets {
            let text = self.expand_home(&unquoted(&target));
            if text == "-" || text.starts_with('~') || cut_at_expansion(&text).len() != text.len() {
                self.is_lost = true;
            }
            let reached: Vec<PathBuf> = self.bases.iter().filter_map(|base| resolve(&text, base)).collect();
            self.bases.extend(reached);
            self.bases.sort();
            self.bases.dedup();
            if self.bases.len() > MOST_BASES {
                return Followed::TooMany;
            }
        }
        Followed::All
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
            let verb = changing_verb(invocation.arguments).filter(|verb| self.given == Given::AsLine || is_ours(verb));
            return verb.map(|verb| format!("runs `toolwarden {verb}`"));
        }
        if is_reader(&program) {
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
        let is_entered =
            |protected: &PathBuf| self.bases.iter().any(|base| *base != self.here && base.starts_with(protected));
        self.protected.iter().find(|protected| is_entered(protected)).map(PathBuf::as_path)
    }

    /// The protected path a word lands on, under or above; looks behind `=`, into glued options and braces too.
    fn touched(&self, word: &Word, trees: Trees) -> Option<&Path> {
        let text = unquoted(word);
        if let Some(path) = self.spelled(&text) {
            return Some(path);
        }
        let behind_equals = text.split_once('=').map(|(_, value)| value);
        let glued = text.strip_prefix('-').and_then(|option| option.get(1..));
        let rooted = text.find(['/', '~', '$']).filter(|_| text.starts_with('-')).and_then(|start| text.get(start..));
        // `-v here:there`, `type=bind,src=here`
        let pieces = text.split(['=', ':', ',']).filter(|_| text.contains([':', ',']));
        [Some(text.as_str()), behind_equals, glued, rooted].into_iter().flatten().chain(pieces).find_map(|text| {
            let found = self.landing(text, trees).or_else(|| self.guessed(text, trees));
            found.or_else(|| alternatives(text).iter().find_map(|text| self.landing(text, trees)))
        })
    }

    /// A protected path that is spelled out anywhere in a text.
    fn spelled(&self, text: &str) -> Option<&Path> {
        let is_code = text.contains([' ', '(', '"', '\'', '\n']);
        let text = text.replace(['"', '\'', '\\'], "");
        let is_spelled = |protected: &Path| {
            // In code a relative path counts by its last two names.
            let last_names = protected.parent().and_then(Path::parent).and_then(|top| protected.strip_prefix(top).ok());
            if is_code && last_names.is_some_and(|names| text.contains(&*names.to_string_lossy())) {
                return true;
            }
            let below_home = self.home.and_then(|home| protected.strip_prefix(home).ok());
            let home_forms = below_home
                .into_iter()
                .flat_map(|rest| ["~/", "$HOME/", "${HOME}/"].map(|home| format!("{home}{}", rest.display())));
            protected.parent().is_some()
                && std::iter::once(protected.display().to_string()).chain(home_forms).any(|form| text.contains(&form))
        };
        self.protected.iter().map(PathBuf::as_path).find(|protected| is_spelled(protected))
    }

    /// Whether the name of a protected file or directory occurs in a text.
    fn is_named_in(&self, text: &str) -> bool {
        self.protected.iter().filter_map(|path| path.file_name()).any(|name| text.contains(&*name.to_string_lossy()))
    }

    /// A word whose beginning cannot be known is compared by the names in it: `$X/.cursor/permissions.json`.
    fn guessed(&self, text: &str, trees: Trees) -> Option<&Path> {
        let expanded = self.expand_home(text);
        let is_unknown = expanded.contains(['$', '`']) || expanded.starts_with(['~', '{', '*', '?', '[']);
        // `a*/../../x`: a pattern may go up from anywhere.
        let climbs = expanded.contains("..") && cut_at_expansion(&expanded).len() != expanded.len();
        let is_adrift = self.is_lost && !expanded.starts_with('/');
        if !(is_unknown || climbs || is_adrift) {
            return None;
        }
        let fits = |name: &str| {
            expanded.split(['/', '{', '}', ',', '(', ')', ' ', '=']).any(|part| {
                let start = cut_at_expansion(part);
                let is_pattern = start.len() != part.len() && !start.is_empty() && name.starts_with(start);
                // `${x}ssions.json`
                let is_tail = part.len() > ".json".len() && name.ends_with(part);
                part.eq_ignore_ascii_case(name) || is_pattern || is_tail
            })
        };
        self.protected.iter().map(PathBuf::as_path).find(|protected| {
            let above = protected.parent().filter(|_| trees == Trees::Changed);
            let names = [Some(*protected), above].into_iter().flatten().filter_map(Path::file_name);
            names.map(|name| name.to_string_lossy()).any(|name| fits(&name))
        })
    }

    fn landing(&self, text: &str, trees: Trees) -> Option<&Path> {
        if text.is_empty() || text.starts_with('-') {
            return None;
        }
        let expanded = self.expand_home(text);
        // Without a known working directory a relative text may mean anything.
        if !Path::new(&expanded).is_absolute() && self.bases.iter().any(|base| !base.is_absolute()) {
            return self.protected.first().map(PathBuf::as_path);
        }
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

    /// Replaces what stands for the home or the working directory at the beginning.
    fn expand_home(&self, text: &str) -> String {
        let home = self.home.map(|home| home.display().to_string());
        let here = Some(".".to_owned());
        let forms = [("~+", &here), ("~", &home), ("$HOME", &home), ("${HOME}", &home), ("$PWD", &here)];
        let braced = [("${HOME:-", &home), ("${HOME-", &home), ("${PWD}", &here), ("${PWD:-", &here)];
        for (prefix, value) in forms.into_iter().chain(braced) {
            let Some(rest) = text.strip_prefix(prefix) else { continue };
            let rest = if prefix.ends_with('-') { rest.split_once('}').map_or(rest, |(_, rest)| rest) } else { rest };
            if let Some(value) = value.as_ref().filter(|_| rest.is_empty() || rest.starts_with('/')) {
                return format!("{value}{rest}");
            }
        }
        text.to_owned()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Followed {
    All,
    TooMany,
}

/// One line in which variables may stand for commands: `t=toolwarden; $t allow x`.
pub(super) fn is_single_with_variables(text: &str) -> bool {
    text.contains('$') && !text.contains('\n')
}

/// Programs whose presence makes a text a command line rather than prose: they change trees or directories, or run others.
pub(super) fn is_telling(program: &str) -> bool {
    program == "toolwarden"
        || TREE_CHANGERS.contains(&program)
        || wrappers::changes_directory(program)
        || wrappers::reach(program).is_some()
        || wrappers::starts_programs(program)
}

/// Whether a verb is one of ours, or cannot be known.
pub(super) fn is_ours(verb: &str) -> bool {
    let first = verb.split(' ').next().unwrap_or(verb);
    CHANGING.contains(&first)
        || READING.iter().any(|(known, _)| *known == first)
        || first.starts_with('-')
        || first.contains(['$', '`'])
}

fn is_reader(program: &str) -> bool {
    READERS.contains(&program)
}

/// The text without quotes; a literal word has lost them already.
fn unquoted(word: &Word) -> String {
    if word.literal { word.text.clone() } else { word.text.replace(['"', '\'', '\\'], "") }
}

/// What braces may become, innermost first; bounded, and then `guessed` still compares the names.
fn alternatives(text: &str) -> Vec<String> {
    let mut finished = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        let braces = text.rsplit_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
        match braces {
            Some((before, (inner, after))) if finished.len().saturating_add(open.len()) < MOST_ALTERNATIVES => {
                open.extend(inner.split(',').map(|part| format!("{before}{part}{after}")));
            }
            _ => finished.push(text),
        }
    }
    finished
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
pub(super) fn changing_verb(arguments: &[Word]) -> Option<String> {
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
