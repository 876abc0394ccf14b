//! Paths among the arguments of a tool, looked up so that links to what is ours are found (SELF-1).
//!
//! Takes a call; gives facts of every text, keys included, that may be a path, of the words of texts that may be command lines, of their
//! decoded forms, and of directories joined with the other texts (`{"dir": "a", "name": "b"}`). Bounded: a call
//! with more is not looked up, and therefore held. Texts of more than 64 KiB are contents, and are not looked at.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use toolwarden_core::json::{Kind, Value, unescape};
use toolwarden_policy::Query;
use toolwarden_policy::shell::{self, FileFacts, Places, Position, Real};

use crate::lookup::{LookedUp, look_up};

mod ordinary;

/// Most paths of one call that are followed, and most that are looked for at all.
const MOST_PATHS: usize = 20_000;
const MOST_LOOKS: usize = 40_000;
/// Longest text whose words are looked at: no longer text is read as a command line.
const LONGEST_TEXT: usize = 64 * 1024;
/// Longest text that is a path itself or is read for its directories.
const LONGEST_PATH: usize = 4_096;
/// Most bytes of one call that are read as command lines.
const MOST_LINES: usize = 64 * 1024;
/// How often a text is decoded.
const MOST_DECODINGS: usize = 3;
/// Commands that change the directory.
const ENTERS: [&str; 3] = ["cd", "pushd", "chdir"];
const QUOTES: [char; 3] = ['"', '\'', '\\'];
/// Most directories that are joined with the other texts.
const MOST_DIRECTORIES: usize = 32;

/// Facts of the paths of a call.
pub(crate) fn facts(places: &Places, query: &Query) -> FileFacts {
    let Some(arguments) = &query.call.arguments else { return FileFacts::default() };
    // Without a workspace only paths from the root or the home can be followed.
    if query.workspace().is_none() && !arguments.raw().contains(['/', '~', '%', '\\']) {
        return FileFacts::default();
    }
    let mut found = Found::new(places, query.workspace());
    if !found.values(arguments.value()) {
        return FileFacts::too_many();
    }
    let LookedUp { mut paths, present, is_cut } = look_up(places, std::mem::take(&mut found.paths));
    if is_cut {
        return FileFacts::too_many();
    }
    if paths.values().any(|real| *real == Real::Unresolved) {
        let texts = found.wholes.iter().map(String::as_str).chain(found.ordinary.iter().map(AsRef::as_ref));
        let said: BTreeSet<PathBuf> = texts.flat_map(|text| found.meant(text)).collect();
        // A word of a text that begins where nobody may look is prose far more often than a path.
        paths.retain(|path, real| *real != Real::Unresolved || said.contains(path) || !is_closed(path));
    }
    FileFacts::looked_up(paths, HashMap::new(), present)
}

/// Whether a path ends before a directory that may not be entered, and no link led there.
fn is_closed(path: &Path) -> bool {
    if path.components().any(|part| part == Component::ParentDir) {
        return false;
    }
    let mut names: Vec<&Path> = path.ancestors().collect();
    names.reverse();
    let found = names.into_iter().map(std::fs::symlink_metadata).find(|found| match found {
        Ok(found) => found.is_symlink(),
        Err(_) => true,
    });
    found.is_some_and(|found| found.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied))
}

struct Found<'a> {
    places: &'a Places,
    workspace: Option<&'a Path>,
    paths: BTreeSet<PathBuf>,
    /// Texts that were looked at by the short way. Most calls need no more of them.
    ordinary: Vec<Cow<'a, str>>,
    /// Every other value and key, in every form.
    wholes: BTreeSet<String>,
    /// Those of them that may be directories.
    may_be_directories: BTreeSet<String>,
    /// Words that may be names in a directory.
    pieces: BTreeSet<String>,
    /// Words behind `cd` and the like in texts that are not read as command lines.
    entered: BTreeSet<String>,
    /// Bytes that may still be read as command lines; none where there were too many, or a line names too much.
    lines_left: Option<usize>,
    looks_left: usize,
    /// Names that were looked for in the workspace, and whether they are there.
    in_workspace: HashMap<String, bool>,
    /// The same elsewhere.
    elsewhere: HashMap<PathBuf, bool>,
}

impl<'a> Found<'a> {
    fn new(places: &'a Places, workspace: Option<&'a Path>) -> Self {
        Self {
            places,
            workspace,
            paths: BTreeSet::new(),
            ordinary: Vec::new(),
            wholes: BTreeSet::new(),
            may_be_directories: BTreeSet::new(),
            pieces: BTreeSet::new(),
            entered: BTreeSet::new(),
            lines_left: Some(MOST_LINES),
            looks_left: MOST_LOOKS,
            in_workspace: HashMap::new(),
            elsewhere: HashMap::new(),
        }
    }

    /// Takes every text of the arguments; false where there are too many.
    fn values(&mut self, arguments: Value<'a>) -> bool {
        let mut waiting = vec![arguments];
        // Keys of a table are the same in every row.
        let mut keys: BTreeSet<&str> = BTreeSet::new();
        while let Some(value) = waiting.pop() {
            match value.kind() {
                Kind::Object => {
                    for (key, inner) in value.entries() {
                        waiting.push(inner);
                        if keys.insert(key) && !self.is_full() {
                            self.whole(unescape(key));
                        }
                    }
                }
                Kind::Array => waiting.extend(value.items()),
                Kind::String => {
                    if let Some(text) = value.as_str() {
                        self.whole(text);
                    }
                }
                Kind::Null | Kind::True | Kind::False | Kind::Number => {}
            }
            if self.is_full() {
                return false;
            }
        }
        self.join()
    }

    fn is_full(&self) -> bool {
        self.paths.len() > MOST_PATHS
            || self.pieces.len() > MOST_PATHS
            || self.in_workspace.len() > MOST_PATHS
            || self.lines_left.is_none()
            || self.looks_left == 0
    }

    /// Whether a text seen from a directory may lead through a link: its first name is there. Most words of a text are no
    /// files, and are not followed.
    fn may_lead(&mut self, directory: &Path, text: &str) -> bool {
        let first = text.split('/').find(|name| !name.is_empty() && *name != ".").unwrap_or(".");
        if text.starts_with('/') || first == ".." {
            return true;
        }
        if Some(directory) == self.workspace {
            return self.is_in_workspace(directory, first);
        }
        let path = directory.join(first);
        if let Some(known) = self.elsewhere.get(&path) {
            return *known;
        }
        let is_there = self.look(&path);
        self.elsewhere.insert(path, is_there);
        is_there
    }

    fn is_in_workspace(&mut self, workspace: &Path, name: &str) -> bool {
        if let Some(known) = self.in_workspace.get(name) {
            return *known;
        }
        let is_there = self.look(&workspace.join(name));
        self.in_workspace.insert(name.to_owned(), is_there);
        is_there
    }

    fn look(&mut self, path: &Path) -> bool {
        self.looks_left = self.looks_left.saturating_sub(1);
        std::fs::symlink_metadata(path).is_ok()
    }

    /// The paths a word may mean, as far as they may lead through links.
    fn word(&mut self, text: &str) {
        for reading in readings(text) {
            let Some(path) = self.path(&reading) else { continue };
            let leads = match self.workspace.filter(|_| !reading.starts_with(['/', '~'])) {
                Some(workspace) => self.may_lead(workspace, &reading),
                None => true,
            };
            self.paths.extend(Some(path).filter(|_| leads));
        }
    }

    /// Every path a text may mean.
    fn meant(&self, text: &str) -> Vec<PathBuf> {
        readings(text).iter().filter_map(|reading| self.path(reading)).collect()
    }

    /// Those of them that are directories.
    fn directories(&mut self, text: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for reading in readings(text) {
            let Some(path) = self.path(&reading) else { continue };
            // Most words are no files, which is known already.
            let seen_from = self.workspace.filter(|_| !reading.starts_with(['/', '~']));
            let may_be = seen_from.is_none_or(|workspace| self.may_lead(workspace, &reading));
            found.extend(Some(path).filter(|path| may_be && path.is_dir()));
        }
        found
    }

    /// A value or a key, in every form it may be decoded to.
    fn whole(&mut self, text: Cow<'a, str>) {
        if ordinary::is_ordinary(&text) { self.ordinary(text) } else { self.in_every_form(&text) }
    }

    fn in_every_form(&mut self, text: &str) {
        for form in decoded(text) {
            self.text(&form);
            if form.len() <= LONGEST_PATH {
                self.may_be_directories.insert(form.clone());
                self.wholes.insert(form);
            }
        }
    }

    fn text(&mut self, text: &str) {
        if text.len() > LONGEST_TEXT {
            return;
        }
        if text.len() <= LONGEST_PATH {
            self.word(text);
        }
        self.addresses(text);
        self.diff(text);
        if self.workspace.is_some() && !self.line(text) {
            self.enter(text);
        }
        // Quotes and backslashes inside a name mean nothing to a shell: `su''b/k`.
        let unquoted = if text.contains(QUOTES) { text.replace(QUOTES, "") } else { String::new() };
        let has_variables = text.contains(['$', '%']);
        let pieces = text.split(is_delimiter).chain(unquoted.split(is_delimiter));
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            if self.is_full() {
                return;
            }
            // A word that was met before says nothing new, and neither does the whole text.
            if self.pieces.contains(piece) {
                continue;
            }
            if piece != text || text.len() > LONGEST_PATH {
                self.word(piece);
            }
            // `${PWD}/x`, `$(pwd)/x`, `%CD%/x`
            if has_variables && piece.starts_with('/') {
                self.word(&format!("${piece}"));
            }
            if piece.len() <= LONGEST_PATH && !piece.starts_with(['/', '~']) {
                self.pieces.insert(piece.to_owned());
            }
        }
    }

    /// Addresses of files in a longer text, whose colon and host part them otherwise.
    fn addresses(&mut self, text: &str) {
        let words = text.split(|letter: char| letter != ':' && is_delimiter(letter));
        for word in words.filter(|word| shell::is_file_address(word)) {
            self.word(word);
        }
    }

    /// The files of a diff, whose first names are taken off: `--- a/lk/k`.
    fn diff(&mut self, text: &str) {
        const STARTS: [&str; 6] = ["--- ", "+++ ", "*** ", "diff ", "rename ", "copy "];
        let lines = text.lines().map(|line| line.trim_start_matches([' ', '\t', '"', '\'']));
        for line in lines.filter(|line| STARTS.iter().any(|start| line.starts_with(start))) {
            for word in line.split(is_delimiter).filter(|word| word.contains('/')) {
                let tails =
                    word.match_indices('/').take(MOST_STRIPPED).filter_map(|(at, _)| word.get(at.saturating_add(1)..));
                tails.filter(|tail| !tail.is_empty()).for_each(|tail| self.word(tail));
            }
        }
    }

    /// A text that can be read as a command line names paths like one: seen from each directory it changes to, and by
    /// patterns and braces. False where it is too long or cannot be read; its words are looked at all the same.
    fn line(&mut self, text: &str) -> bool {
        let has_parts = text.contains([' ', '\t', '\n', ';']);
        let says_more = text.contains(['*', '?', '[', '{', '\\']) || ENTERS.iter().any(|name| text.contains(name));
        let Some(workspace) = self.workspace.filter(|_| has_parts && says_more) else { return true };
        if text.len() > LONGEST_PATH {
            return false;
        }
        self.lines_left = self.lines_left.and_then(|left| left.checked_sub(text.len()));
        if self.lines_left.is_none() {
            return true;
        }
        let Ok(line) = shell::read(text) else { return false };
        let position = Position { cwd: workspace, workspace: Some(workspace), home: self.places.home() };
        match shell::questions(&line, position) {
            Some(asked) => self.paths.extend(asked.paths),
            // It changes to too many directories, or names too many paths.
            None => self.lines_left = None,
        }
        true
    }

    /// The directories that a text may change to, as far as single words show it.
    fn enter(&mut self, text: &str) {
        let unquoted = if text.contains(QUOTES) { text.replace(QUOTES, "") } else { String::new() };
        for form in [text, &unquoted] {
            let mut is_behind = false;
            for word in form.split(is_delimiter).filter(|word| !word.is_empty()) {
                if is_behind && !word.starts_with('-') {
                    self.entered.insert(word.to_owned());
                }
                is_behind = ENTERS.contains(&word) || (is_behind && word.starts_with('-'));
            }
        }
    }

    /// The path that one reading of a text is.
    fn path(&self, text: &str) -> Option<PathBuf> {
        // Patterns of a tool are its own.
        let is_odd = text.contains(char::is_control) || text.contains(['*', '?', '[']);
        if text.is_empty() || text.len() > LONGEST_PATH || is_odd {
            return None;
        }
        if let Some(rest) = text.strip_prefix("~/") {
            return self.places.home().map(|home| home.join(rest));
        }
        if text.starts_with('/') {
            return Some(PathBuf::from(text));
        }
        self.workspace
            .filter(|_| text.contains('/') || !text.contains(char::is_whitespace))
            .map(|workspace| workspace.join(text))
    }

    /// Joins every text that is a directory with the others; false where that is too much.
    fn join(&mut self) -> bool {
        let entered = std::mem::take(&mut self.entered);
        let texts: Vec<String> = self.may_be_directories.union(&entered).cloned().collect();
        let mut directories: Vec<PathBuf> = texts.iter().flat_map(|text| self.directories(text)).collect();
        let mut at = 0_usize;
        while let Some(directory) = directories.get(at).cloned() {
            at = at.saturating_add(1);
            // Directories above the workspace are where tools are told to work; the texts were seen from there already.
            if self.workspace.is_some_and(|workspace| workspace.starts_with(&directory)) {
                continue;
            }
            if at > MOST_DIRECTORIES {
                return false;
            }
            self.take_ordinary();
            for piece in std::mem::take(&mut self.pieces) {
                if self.may_lead(&directory, &piece) {
                    let joined = directory.join(&piece);
                    // `{"root": "a", "dir": "b", "name": "c"}`
                    if (self.wholes.contains(&piece) || entered.contains(&piece))
                        && joined.is_dir()
                        && !directories.contains(&joined)
                    {
                        directories.push(joined.clone());
                    }
                    self.paths.insert(joined);
                }
                self.pieces.insert(piece);
            }
            if self.is_full() {
                return false;
            }
        }
        true
    }
}

/// Most names that are taken off the beginning of a path in a diff.
const MOST_STRIPPED: usize = 8;

/// What a text may be as a path: itself, the path of a `file:` address, what stands behind `@`, and what stands behind a
/// variable, which may be the home or the directory a tool works in.
fn readings(text: &str) -> Vec<String> {
    if shell::is_file_address(text) {
        return shell::file_paths(text).map(str::to_owned).collect();
    }
    let mut readings = vec![text.to_owned()];
    let bare = text.trim_start_matches('@');
    if bare.len() != text.len() {
        readings.extend(readings_behind_variable(bare).into_iter().chain([bare.to_owned()]));
        readings.extend(shell::file_paths(bare).map(str::to_owned));
    }
    readings.extend(readings_behind_variable(text));
    readings
}

fn readings_behind_variable(text: &str) -> Vec<String> {
    let rest = text.split_once('/').filter(|(first, _)| first.starts_with(['$', '%'])).map(|(_, rest)| rest);
    rest.map(|rest| vec![rest.to_owned(), format!("~/{rest}")]).unwrap_or_default()
}

/// The text, and what it is when it is decoded.
fn decoded(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned()];
    for _ in 0..MOST_DECODINGS {
        let Some(next) = forms.last().filter(|text| text.len() <= LONGEST_PATH).and_then(|text| shell::decoded(text))
        else {
            break;
        };
        forms.push(next);
    }
    forms
}

/// What parts a path from the text around it.
fn is_delimiter(character: char) -> bool {
    character.is_whitespace() || character.is_control() || "'\"`=<>,:;|&()[]{}?#*".contains(character)
}
