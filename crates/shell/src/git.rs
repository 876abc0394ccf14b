//! Judges a command line of git: git's own state is executable, so only known forms may be allowed.
//! Takes the arguments of git; gives the first word that may execute something, change git's state or
//! configuration, or change where git looks for them; else the words that are paths and where git would run.

use std::path::PathBuf;

use crate::executed::reached_by_word;
use crate::facts::Gathered;
use crate::git_forms::{Form, Operands, forms};
use crate::line::Word;
use crate::options::possible_verb_tails;
use crate::wrappers::{listed, program};

/// Options before the subcommand that change nothing but what is printed or how paths are read.
const GLOBALS: &str = "\
    -P -v -h --version --help --no-pager --no-replace-objects --literal-pathspecs --glob-pathspecs \
    --noglob-pathspecs --icase-pathspecs --no-optional-locks --no-advice --no-lazy-fetch";

/// What is known of a line of git whose form is in the table.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Known<'a> {
    /// Targets of `-C`, each seen from the one before.
    pub(super) directories: Vec<&'a str>,
    /// Words that may be paths or revisions, and values of options that are no plain text.
    pub(super) paths: Vec<&'a str>,
    /// The word that names another repository, where there is one.
    pub(super) repository: Option<&'a str>,
}

/// Reads the arguments of git. Fails with the first word that is in no known form.
pub(super) fn read(arguments: &[Word]) -> Result<Known<'_>, &str> {
    let mut known = Known::default();
    let mut words = arguments.iter().map(|word| word.text.as_str());
    let verb = loop {
        match words.next() {
            None => return Ok(known),
            Some("-C") => match words.next() {
                Some(directory) if !directory.is_empty() && !directory.starts_with('-') => {
                    known.directories.push(directory);
                    known.paths.push(directory);
                }
                _ => return Err("-C"),
            },
            Some(word) if listed(GLOBALS, word) => {}
            Some(word) if word.starts_with('-') => return Err(word),
            Some(word) => break word,
        }
    };
    let rest: Vec<&str> = words.collect();
    if verb == "config" {
        return if only_reads_config(&rest) { Ok(known) } else { Err("config") };
    }
    let rows = forms(verb);
    if rows.is_empty() {
        return Err(verb);
    }
    let parsed = Parsed::of(&rows, &rest)?;
    check_operands(verb, &rows, &parsed, &mut known)?;
    check_shape(verb, &rest, &parsed)?;
    known.paths.extend(parsed.operands.iter().chain(&parsed.values).copied());
    Ok(known)
}

/// Subcommands that leave the work tree as it is.
const STILL_VERBS: &str = "\
    status log diff show branch tag add commit push fetch remote blame grep ls-files ls-tree ls-remote rev-parse rev-list \
    describe shortlog reflog for-each-ref show-ref symbolic-ref cat-file archive hash-object update-index merge-base \
    name-rev fsck cherry count-objects check-ignore check-attr notes worktree submodule var help version config whatchanged \
    range-diff diff-tree diff-index diff-files";

/// Whether git may bring other files into the work tree.
pub(super) fn changes_tree(arguments: &[Word]) -> bool {
    let leaves = |tail: &&[Word]| {
        let words: Vec<&str> = tail.iter().map(|word| word.text.as_str()).collect();
        let is_new_branch = matches!(words.as_slice(), ["checkout", "-b", _] | ["switch", "-c", _]);
        is_new_branch || words.first().is_some_and(|verb| listed(STILL_VERBS, verb))
    };
    !subcommands(arguments).iter().all(leaves)
}

/// What git may take for its subcommand, with the words behind it: the one word behind known options, or else any word
/// behind an option, because an unknown option may take the next word or not.
fn subcommands(arguments: &[Word]) -> Vec<&[Word]> {
    let mut rest = arguments;
    while let Some((word, behind)) = rest.split_first() {
        rest = match word.text.as_str() {
            option if listed(VALUED_GLOBALS, option) => behind.get(1..).unwrap_or_default(),
            option if listed(GLOBALS, option) || listed(OTHER_GLOBALS, option) => behind,
            option if option.starts_with("--") && option.contains('=') => behind,
            option if option.starts_with('-') => return possible_verb_tails(arguments).collect(),
            _ => return vec![rest],
        };
    }
    Vec::new()
}

/// Options before the subcommand whose value is the next word.
const VALUED_GLOBALS: &str = "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source";
/// Others, which `read` refuses.
const OTHER_GLOBALS: &str = "-p --paginate --bare --exec-path --html-path --man-path --info-path";

/// The subcommand with one of these names that git may be given, with the words behind it.
fn subcommand<'a>(arguments: &'a [Word], names: &str) -> Option<&'a [Word]> {
    subcommands(arguments).into_iter().find(|tail| tail.first().is_some_and(|verb| listed(names, &verb.text)))
}

/// The operands of `git diff`, which shows any two paths where one of them is outside of the work tree; none for other
/// subcommands.
pub(super) fn compared(arguments: &[Word]) -> Vec<&Word> {
    let tail = subcommand(arguments, "diff").unwrap_or_default();
    tail.iter().skip(1).filter(|word| !word.text.starts_with('-')).collect()
}

/// The directories that git is told to run in by `-C`, whatever else is given; none for other programs.
pub(super) fn directories<'a>(name: &str, arguments: &'a [Word]) -> Vec<&'a str> {
    if program(name) != "git" {
        return Vec::new();
    }
    let is_told = |pair: &&[Word]| matches!(pair, [option, _] if option.text == "-C");
    arguments.windows(2).filter(is_told).filter_map(|pair| pair.last()).map(|word| word.text.as_str()).collect()
}

/// The directories that `git clone` may make: the last name of the address, and every word behind it, any of which may
/// be the directory rather than the value of an option.
pub(super) fn cloned(arguments: &[Word]) -> Vec<Word> {
    let tail = subcommand(arguments, "clone").unwrap_or_default();
    let mut words = tail.iter().skip_while(|word| !is_address(&word.text));
    let made = words.next().map(|address| Word::raw(made_from(&address.text)));
    made.into_iter().chain(words.filter(|word| !word.text.starts_with('-')).cloned()).collect()
}

/// The operands of `git mv`, which are written; none for other subcommands.
pub(super) fn moved(arguments: &[Word]) -> Option<Vec<&Word>> {
    let tail = subcommand(arguments, "mv")?;
    Some(tail.iter().skip(1).filter(|word| !word.text.starts_with('-')).collect())
}

/// Whether `git clean` only says what it would delete: each word behind it is a known option without a value, up to the
/// first path, and one of them says so. An option before the subcommand could be followed by another one.
pub(super) fn only_shows_cleaning(arguments: &[Word]) -> bool {
    let Some((verb, rest)) = arguments.split_first() else { return false };
    let mut is_shown = false;
    let are_known = rest.iter().all(|word| match (word.text.strip_prefix("--"), word.text.strip_prefix('-')) {
        (Some(""), _) => true,
        (Some(long), _) => {
            is_shown |= long == "dry-run";
            listed("dry-run quiet force", long)
        }
        (None, Some(letters)) => {
            is_shown |= letters.contains('n');
            !letters.is_empty() && letters.chars().all(|letter| "nqfdxX".contains(letter))
        }
        (None, None) => word.literal,
    });
    let before = rest.iter().take_while(|word| word.text != "--");
    verb.text == "clean" && are_known && is_shown && before.clone().count() > 0 && shows_first(before)
}

/// Whether the option that only shows stands before every path and before `--`.
fn shows_first<'a>(words: impl Iterator<Item = &'a Word>) -> bool {
    let mut options = words.map(|word| word.text.as_str()).take_while(|text| text.starts_with('-'));
    options.any(|text| text == "--dry-run" || (!text.starts_with("--") && text.contains('n')))
}

/// What `git add` takes into the index. Pathspecs with patterns or magic count as everything.
pub(super) fn gathered(arguments: &[Word]) -> Option<Gathered> {
    let tail = subcommand(arguments, "add stage")?;
    let operands: Vec<&Word> = tail.iter().skip(1).filter(|word| !word.text.starts_with('-')).collect();
    let is_plain =
        |word: &&Word| word.literal && !word.text.starts_with(':') && !word.text.contains(['*', '?', '[', '\\']);
    if operands.is_empty() || !operands.iter().all(is_plain) {
        return Some(Gathered::All);
    }
    Some(Gathered::Paths(operands.iter().map(|word| PathBuf::from(&word.text)).collect()))
}

/// The words behind a subcommand, sorted.
#[derive(Debug, Default)]
struct Parsed<'a> {
    /// Long options by name with the value behind `=`, short ones by letter.
    options: Vec<(String, &'a str)>,
    operands: Vec<&'a str>,
    /// Values behind `=` of options that are no texts.
    values: Vec<&'a str>,
}

impl<'a> Parsed<'a> {
    fn of(rows: &[&'static Form], words: &[&'a str]) -> Result<Self, &'a str> {
        let mut parsed = Self::default();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if word == "--" {
                // Git takes `--` for the value of an option that wants one, and options behind it for options.
                let rest: Vec<&str> = words.collect();
                if let Some(option) = rest.iter().find(|word| word.starts_with('-')) {
                    return Err(option);
                }
                parsed.operands.extend(rest);
                break;
            }
            let value_follows = match word.strip_prefix("--") {
                Some(option) => parsed.long(rows, option).ok_or(word)?,
                None => match word.strip_prefix('-').filter(|bundle| !bundle.is_empty()) {
                    Some(bundle) => parsed.bundle(rows, bundle).ok_or(word)?,
                    None => {
                        parsed.operands.push(word);
                        false
                    }
                },
            };
            // A value that looks like an option may be one after all.
            if value_follows {
                let value = words.next().filter(|value| !value.starts_with('-')).ok_or(word)?;
                if let Some((_, known)) = parsed.options.last_mut() {
                    *known = value;
                }
            }
        }
        Ok(parsed)
    }

    /// Reads a long option; gives whether its value is the next word. `None` for one that is not in the table.
    fn long(&mut self, rows: &[&'static Form], option: &'a str) -> Option<bool> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        self.options.push((name.to_owned(), value.unwrap_or_default()));
        if rows.iter().any(|row| row.has_text(name)) {
            return Some(value.is_none());
        }
        self.values.extend(value);
        rows.iter().any(|row| row.has_flag(name)).then_some(false)
    }

    /// Reads short options: `-am`, `-n5`, `-U3`, `-10`.
    fn bundle(&mut self, rows: &[&'static Form], bundle: &'a str) -> Option<bool> {
        for (at, letter) in bundle.char_indices() {
            self.options.push((letter.to_string(), ""));
            if rows.iter().any(|row| row.has_valued(letter)) {
                return Some(bundle.len() == at.saturating_add(letter.len_utf8()));
            }
            let is_number = letter.is_ascii_digit() || letter == '%';
            if !is_number && !rows.iter().any(|row| row.has_letter(letter)) {
                return None;
            }
        }
        Some(false)
    }

    /// Whether one of these options is there and is not taken back by its opposite.
    fn has(&self, names: &str) -> bool {
        let is_given = |wanted: &str| self.options.iter().any(|(name, _)| name == wanted);
        let is_taken_back = |name: &str| match name.strip_prefix("no-") {
            Some(positive) => is_given(positive),
            None => is_given(&format!("no-{name}")),
        };
        self.options.iter().any(|(name, _)| listed(names, name) && !is_taken_back(name))
    }
}

fn check_operands<'a>(
    verb: &'a str,
    rows: &[&'static Form],
    parsed: &Parsed<'a>,
    known: &mut Known<'a>,
) -> Result<(), &'a str> {
    let first = parsed.operands.first().copied();
    // `git remote show x` takes a directory for the remote, where there is one.
    if verb == "remote" && first.is_some_and(|verb| listed("show update prune", verb)) {
        known.repository = parsed.operands.get(1).copied();
    }
    for row in rows {
        match (row.operands, first) {
            (Operands::Any, _) | (Operands::Verb(_) | Operands::Repository, None) => {}
            (Operands::AtMost(most), _) if parsed.operands.len() <= most => {}
            (Operands::AtMost(_), _) => return Err(verb),
            (Operands::Verb(known), Some(word)) if listed(known, word) => {}
            (Operands::Verb(_), Some(word)) => return Err(word),
            (Operands::Repository, Some(word)) if verb == "clone" && clones_to_executed_place(word) => {
                return Err(word);
            }
            (Operands::Repository, Some(word)) if is_address(word) => {}
            (Operands::Repository, Some(word)) if verb != "clone" && is_remote_name(word) => {
                known.repository = Some(word);
            }
            (Operands::Repository, Some(word)) => return Err(word),
        }
    }
    // `git clone` is given more than one address only as the directory it makes.
    let is_repository = |row: &&'static Form| row.operands == Operands::Repository;
    let odd = parsed.operands.iter().find(|word| word.contains("::"));
    match odd {
        Some(word) if rows.iter().any(is_repository) => Err(word),
        _ => Ok(()),
    }
}

/// What only the whole line shows: an editor, a signing program or a writer behind listed options.
fn check_shape<'a>(verb: &'a str, words: &[&str], parsed: &Parsed<'a>) -> Result<(), &'a str> {
    let first = parsed.operands.first().copied().unwrap_or_default();
    // An option that is given twice counts in both forms: for some of them the last one wins.
    let values_of =
        |name: &'static str| parsed.options.iter().filter(move |(own, _)| own == name).map(|(_, value)| *value);
    // Placeholders that run the program for signatures.
    let runs_signing = |(name, value): &&(String, &str)| {
        let shows_signature = ["%G", "%+G", "%-G", "% G"].iter().any(|sign| value.contains(sign));
        listed("format pretty sort group", name) && (shows_signature || value.contains("signature"))
    };
    let is_odd = match verb {
        "commit" => {
            let is_plain = |value: &str| !value.is_empty() && !value.contains(':');
            let fixup = parsed.has("fixup") && values_of("fixup").all(is_plain);
            let has_message = parsed.has("m F C message file reuse-message no-edit dry-run") || fixup;
            !has_message
        }
        "tag" => parsed.has("a annotate") && !parsed.has("m F message file"),
        // Going on after a conflict opens the editor for the message.
        "rebase" | "merge" => parsed.has("continue"),
        "cherry-pick" => parsed.has("continue") && !parsed.has("no-edit"),
        "revert" => {
            let leaves_message = parsed.has("n no-commit") && !parsed.options.iter().any(|(name, _)| name == "commit");
            !(leaves_message || parsed.has("no-edit abort quit"))
        }
        "stash" => parsed.has("p patch") && !matches!(first, "show" | "list"),
        "pull" => values_of("rebase").any(|value| !matches!(value, "" | "true" | "false" | "merges")),
        // Otherwise they write files whose names come from patches and commits.
        "apply" => !(leads(words, "check stat numstat summary") && parsed.has("check stat numstat summary")),
        "format-patch" => !(leads(words, "stdout") && parsed.has("stdout")),
        // Other formats may be programs of the configuration.
        "archive" => values_of("format").any(|format| !matches!(format, "tar" | "zip")),
        "mv" => moves_to_executed_place(&parsed.operands),
        "reflog" => listed("expire delete drop write migrate", first),
        // Words behind the subcommand that are no names of remotes are taken for addresses.
        "remote" => parsed.operands.iter().skip(1).any(|word| !is_remote_name(word)),
        "fetch" => parsed.has("multiple") && parsed.operands.iter().any(|word| !is_remote_name(word)),
        _ => false,
    };
    let is_odd = is_odd || parsed.options.iter().find(runs_signing).is_some();
    if is_odd { Err(verb) } else { Ok(()) }
}

/// Whether the first option is one of these. Behind another option it may be that one's value, as in `apply -p --check`.
fn leads(words: &[&str], names: &str) -> bool {
    let is_count =
        |word: &str| word.strip_prefix('-').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    let first = words.iter().find(|word| word.starts_with('-') && !is_count(word));
    first.and_then(|word| word.strip_prefix("--")).is_some_and(|name| listed(names, name))
}

/// `git mv tools/.bin node_modules`: a place that is put together from two words.
fn moves_to_executed_place(operands: &[&str]) -> bool {
    let Some((target, sources)) = operands.split_last() else { return false };
    // That is found by itself.
    if reached_by_word(target).is_some() {
        return false;
    }
    let name = |source: &&str| source.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    sources.iter().map(name).any(|name| reached_by_word(&format!("{}/{name}", target.trim_end_matches('/'))).is_some())
}

/// Whether `git clone` would make a directory whose files are executed from this address.
fn clones_to_executed_place(address: &str) -> bool {
    reached_by_word(made_from(address)).is_some()
}

/// The name of the directory that `git clone` makes from an address.
fn made_from(address: &str) -> &str {
    let path = address.trim_end_matches('/');
    let path = path.strip_suffix("/.git").unwrap_or(path).trim_end_matches('/');
    let name = path.rsplit(['/', ':']).next().unwrap_or_default();
    name.strip_suffix(".git").unwrap_or(name)
}

/// An address of another machine, in a form that no helper program and no local path can have.
fn is_address(word: &str) -> bool {
    let has_host = |rest: &str| rest.starts_with(|first: char| first.is_ascii_alphanumeric());
    let by_scheme = ["https://", "http://", "ssh://", "git://"].iter().find_map(|scheme| word.strip_prefix(scheme));
    if let Some(rest) = by_scheme {
        return has_host(rest) && !word.contains("::");
    }
    // `user@host:path`
    let Some((host, path)) = word.split_once(':') else { return false };
    let (user, name) = host.split_once('@').unwrap_or_default();
    let is_plain = |text: &str| {
        has_host(text) && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-._".contains(letter))
    };
    is_plain(user) && is_plain(name) && !path.starts_with(['-', ':'])
}

/// A word that can be the name of a remote. Whether it is a directory instead is for the file system to say.
fn is_remote_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphanumeric())
        && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-._".contains(letter))
        && !word.contains("..")
}

/// Reading needs one of the reading forms, or exactly one key.
fn only_reads_config(arguments: &[&str]) -> bool {
    let mut reads = false;
    let mut positional = 0_usize;
    for word in arguments {
        match *word {
            "--get" | "--get-all" | "--get-regexp" | "--get-urlmatch" | "--list" | "-l" => reads = true,
            "get" | "list" if positional == 0 && !reads => reads = true,
            "--show-origin" | "--show-scope" | "--global" | "--local" | "--system" | "--worktree" | "--name-only"
            | "-z" | "--null" | "--includes" | "--all" | "--bool" | "--int" | "--path" => {}
            word if word.starts_with('-') => return false,
            // `edit`, `set` and the like are no keys.
            word if positional == 0 && !word.contains('.') => return false,
            _ => positional = positional.saturating_add(1),
        }
    }
    reads || positional == 1
}
