//! Finds texts that name what Toolwarden lives by: its config and data, trusted files, hooks of clients.
//! Takes the protected paths once, then any text of a call; gives the place it is, is inside of or above of,
//! or that stands somewhere in it, encoded or as a pattern. Lexical like everything here: links are not followed. Whoever asks cannot
//! know whether a tool writes, so naming a place is enough.

use std::path::{Path, PathBuf};

use aho_corasick::AhoCorasick;

use crate::addresses::{file_paths, is_file_address};
use crate::argued::{begins_like_a_line, names_us};
use crate::encodings::decoded;
use crate::folded::{folded, may_stand_for_ascii};
use crate::paths::normalise;
use crate::patterns;
use crate::processes::shows_processes;
use crate::self_protection::Belongings;
use crate::work;

/// How often a text is decoded.
const MOST_DECODINGS: usize = 3;
/// Pieces of one text that are looked at; a text with more names of our files than this is held unread.
const MOST_PIECES: usize = 10_000;
/// Longest text that is read as a command line although it has neither our name nor that of a place.
const LONGEST_UNNAMED: usize = 2_048;

/// The protected places, ready to be looked for.
#[derive(Debug)]
pub struct Places {
    paths: Vec<PathBuf>,
    /// Those that hold keys and data.
    secret: Vec<PathBuf>,
    home: Option<PathBuf>,
    /// Configurations of git besides those at the home and in the repository.
    git_configs: Vec<PathBuf>,
    home_parts: Option<Vec<String>>,
    places: Vec<Place>,
    /// What a JSON text must hold to be worth a look; none where it could not be built: then all are.
    hints: Option<AhoCorasick>,
    /// The last names of the places, folded: no text names one without its last name.
    last_names: Option<AhoCorasick>,
    /// What a text must hold to be worth reading as a command line, and what suffices where it is short.
    run_names: Option<AhoCorasick>,
    run_directories: Option<AhoCorasick>,
    /// Some place is not plain ASCII, so any other letter may be part of its name.
    is_wide: bool,
}

#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Its names from the root on, folded.
    parts: Vec<String>,
    /// From its last hidden name on, `.cursor/hooks.json`: this names it in whatever directory a tool works.
    tail: Vec<String>,
    /// The path in one piece, where it has characters that part the pieces of a text.
    unparted: Option<String>,
}

impl Place {
    fn new(path: &Path) -> Option<Self> {
        let parts: Vec<String> = parts_of(path);
        parts.first()?;
        let hidden = parts.iter().rposition(|part| part.starts_with('.'));
        let tail = hidden.and_then(|start| parts.get(start..)).map(<[String]>::to_vec).unwrap_or_default();
        let whole = format!("/{}", parts.join("/"));
        let unparted = whole.contains(is_delimiter).then_some(whole);
        Some(Self { path: path.to_path_buf(), parts, tail, unparted })
    }

    fn is_run_in(&self, names: &[&str]) -> bool {
        let anywhere = |run: &[String]| run.len() > 1 && names.windows(run.len()).any(|window| window == run);
        let is_start = self.parts.len() == 1 && starts_with(names, &self.parts);
        // A hidden file of the workspace itself: `.roomodes`.
        let is_hidden_file = self.tail.len() == 1 && names.iter().any(|name| self.tail.iter().any(|own| own == name));
        anywhere(&self.parts) || anywhere(&self.tail) || is_start || is_hidden_file
    }
}

/// Where a text points, as names from the root on.
struct Pointed<'a> {
    names: Vec<&'a str>,
    /// It says so itself: an absolute path, or one from the home.
    is_rooted: bool,
}

impl Places {
    /// Compiles absolute paths; `home` is what `~` and `$HOME` stand for.
    #[must_use]
    pub fn compile(paths: &[PathBuf], home: Option<&Path>) -> Self {
        let places: Vec<Place> = paths.iter().filter_map(|path| Place::new(&normalise(path))).collect();
        let last_names: Vec<String> = places.iter().filter_map(|place| place.parts.last().cloned()).collect();
        let any_case = |texts: Vec<String>| AhoCorasick::builder().ascii_case_insensitive(true).build(texts).ok();
        let hidden = places.iter().flat_map(|place| &place.parts).filter(|part| part.starts_with('.')).cloned();
        Self {
            paths: paths.to_vec(),
            secret: Vec::new(),
            home: home.map(Path::to_path_buf),
            git_configs: Vec::new(),
            home_parts: home.map(|home| parts_of(&normalise(home))),
            hints: any_case(hints(&places)),
            run_directories: any_case(["~", "$home", "${home"].map(str::to_owned).into_iter().chain(hidden).collect()),
            run_names: any_case(
                last_names.iter().cloned().chain(["toolwarden", "/proc/"].map(str::to_owned)).collect(),
            ),
            last_names: AhoCorasick::new(last_names).ok(),
            is_wide: places.iter().flat_map(|place| &place.parts).any(|part| !part.is_ascii()),
            places,
        }
    }

    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The same places, of which these hold keys and data that nobody reads unasked.
    #[must_use]
    pub fn with_secret(mut self, secret: &[PathBuf]) -> Self {
        self.secret = secret.to_vec();
        self
    }

    /// The same places, with configurations of git that lie elsewhere.
    #[must_use]
    pub fn with_git_configs(mut self, configs: &[PathBuf]) -> Self {
        self.git_configs = configs.to_vec();
        self
    }

    #[must_use]
    pub fn git_configs(&self) -> &[PathBuf] {
        &self.git_configs
    }

    /// What command lines are compared with.
    #[must_use]
    pub fn belongings(&self) -> Belongings<'_> {
        Belongings { protected: &self.paths, secret: &self.secret, home: self.home() }
    }

    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Whether a JSON text is worth a look: one pass, and false for almost every call.
    #[must_use]
    pub fn may_be_named_in(&self, json: &str) -> bool {
        let stands_for_ascii = |character: char| !character.is_ascii() && may_stand_for_ascii(character);
        self.hints.as_ref().is_none_or(|hints| hints.is_match(json))
            || names_us(json)
            || (!json.is_ascii() && (self.is_wide || json.chars().any(stands_for_ascii)))
    }

    /// Whether a text may end in the name of a place.
    #[must_use]
    pub fn holds_last_name(&self, text: &str) -> bool {
        self.last_names.as_ref().is_none_or(|names| names.is_match(&*folded(text)))
    }

    /// The directory a text is, seen from `here`, if it lies above `here`: no place is named by it, but whatever else
    /// the arguments say may be seen from there.
    #[must_use]
    pub fn directory_above(&self, text: &str, here: &Path) -> Option<PathBuf> {
        let own = here.to_string_lossy();
        let parts = parts_of(&normalise(here));
        let form = folded(text).replace("${home}", "$home");
        paths_of(&form).find_map(|path| {
            let pointed = self.pointed(path, Some(&parts))?;
            let is_path = pointed.is_rooted || path.starts_with('.');
            let is_above = is_path && pointed.names.len() < parts.len() && starts_with(&parts, &pointed.names);
            let depth = parts.len().checked_sub(pointed.names.len())?;
            // As it is written there: names were folded.
            Path::new(&*own).ancestors().nth(depth).filter(|_| is_above).map(Path::to_path_buf)
        })
    }

    /// Whether a text that names no place is worth reading as a command line: it has our name, the last name
    /// of a place, or, where it is short, a hidden directory above one or the home.
    #[must_use]
    pub fn may_be_run_in(&self, text: &str) -> bool {
        let has = |hints: &Option<AhoCorasick>| hints.as_ref().is_none_or(|hints| hints.is_match(text));
        let is_short = text.len() <= LONGEST_UNNAMED;
        has(&self.run_names) || names_us(text) || (is_short && (has(&self.run_directories) || begins_like_a_line(text)))
    }

    /// The place a text names. `here` is the directory that relative paths are seen from, where it is known.
    #[must_use]
    pub fn named_in(&self, text: &str, here: Option<&Path>) -> Option<&Path> {
        work::went_through(text);
        let here: Option<Vec<String>> = here.map(|here| parts_of(&normalise(here)));
        let mut form = folded(text).into_owned();
        // Quotes and backslashes inside a name mean nothing to a shell: `ho""oks.json`.
        let unquoted = form.contains(['"', '\'', '\\']).then(|| form.replace(['"', '\'', '\\'], ""));
        if let Some(place) = unquoted.and_then(|text| self.in_form(&text, here.as_deref())) {
            return Some(place);
        }
        for _ in 0..MOST_DECODINGS {
            if let Some(place) = self.in_form(&form, here.as_deref()) {
                return Some(place);
            }
            form = folded(&decoded(&form)?).into_owned();
        }
        self.in_form(&form, here.as_deref())
    }

    fn in_form(&self, form: &str, here: Option<&[String]>) -> Option<&Path> {
        let form = form.replace("${home}", "$home");
        let holds_name = |text: &str| self.last_names.as_ref().is_none_or(|names| names.is_match(text));
        if let Some(place) = self.is_whole(&form, here) {
            return Some(place);
        }
        if !holds_name(&form) {
            return None;
        }
        let unparted = |place: &&Place| place.unparted.as_ref().is_some_and(|whole| form.contains(whole));
        if let Some(place) = self.places.iter().find(unparted) {
            return Some(&place.path);
        }
        let mut pieces = form.split(is_delimiter).filter(|piece| holds_name(piece));
        let found = pieces.by_ref().take(MOST_PIECES).find_map(|piece| self.is_piece(piece, here));
        found.or_else(|| pieces.next().and(self.places.first()).map(|place| place.path.as_path()))
    }

    /// The text is a path: to a place, into it, or to a directory that holds it. Directories that also hold
    /// the one tools work in are given to every tool and mean nothing.
    fn is_whole(&self, form: &str, here: Option<&[String]>) -> Option<&Path> {
        paths_of(form).find_map(|path| self.is_path(path, here))
    }

    fn is_path(&self, path: &str, here: Option<&[String]>) -> Option<&Path> {
        let pointed = self.pointed(path, here)?;
        let is_path = pointed.is_rooted || path.starts_with('.') || path.contains(['/', '\\']);
        let holds_here = here.is_some_and(|here| starts_with(here, &pointed.names));
        let is_above = |place: &Place| {
            is_path && !pointed.names.is_empty() && !holds_here && starts_with(&place.parts, &pointed.names)
        };
        let found = self.places.iter().find(|place| place.is_run_in(&pointed.names) || is_above(place));
        found.map(|place| place.path.as_path())
    }

    /// A piece of a longer text. A single plain word is no path there.
    fn is_piece(&self, piece: &str, here: Option<&[String]>) -> Option<&Path> {
        if !piece.contains(['/', '\\', '.', '~']) {
            return None;
        }
        // The end of a sentence is no part of a name.
        let forms = [piece, piece.trim_end_matches(['.', '!'])];
        let pointed = forms.iter().filter_map(|form| self.pointed(form, here));
        let mut found = pointed.filter_map(|pointed| self.places.iter().find(|place| place.is_run_in(&pointed.names)));
        found.next().map(|place| place.path.as_path())
    }

    /// The place that a pattern may stand for: the text itself, or a word of it that begins at the root or the home and
    /// names the first directory. Of a text, `left` bytes are compared at most; with more, the first place is given.
    #[must_use]
    pub fn pattern_in(&self, text: &str, here: Option<&Path>, left: &mut usize) -> Option<&Path> {
        let here: Option<Vec<String>> = here.map(|here| parts_of(&normalise(here)));
        let mut form = folded(text).into_owned();
        for _ in 0..MOST_DECODINGS {
            let spelled = form.replace("${home}", "$home");
            let plain = patterns::without_extended(&spelled);
            let found = plain.and_then(|plain| self.pattern(&plain, here.as_deref(), left));
            if let Some(place) = found.or_else(|| self.pattern(&spelled, here.as_deref(), left)) {
                return Some(place);
            }
            form = folded(&decoded(&form)?).into_owned();
        }
        None
    }

    /// Whether a text is the path of a file that shows memory, environment or open files of processes, seen from
    /// `here`, the root or the home, in any spelling.
    #[must_use]
    pub fn is_process_file(&self, text: &str, here: Option<&Path>) -> bool {
        let here: Option<Vec<String>> = here.map(|here| parts_of(&normalise(here)));
        let mut form = folded(text).into_owned();
        for _ in 0..=MOST_DECODINGS {
            let spelled = form.replace("${home}", "$home");
            if paths_of(&spelled).any(|path| self.is_path_of_process(path, here.as_deref())) {
                return true;
            }
            match decoded(&form) {
                Some(next) => form = folded(&next).into_owned(),
                None => return false,
            }
        }
        false
    }

    fn is_path_of_process(&self, path: &str, here: Option<&[String]>) -> bool {
        // Where a relative path is seen from is not known without a workspace; those that leave it may lead anywhere.
        let is_placed = |pointed: &Pointed<'_>| {
            let is_named = pointed.names.first().is_some_and(|first| !patterns::is_pattern(first));
            pointed.is_rooted || here.is_some() || (path.starts_with("..") && is_named)
        };
        let pointed = self.pointed(path, here).filter(is_placed);
        let path = pointed.map(|pointed| format!("/{}", pointed.names.join("/")));
        // Texts that only begin with such a path speak of it.
        path.is_some_and(|path| !path.contains(char::is_whitespace) && shows_processes(Path::new(&path)))
    }

    fn pattern(&self, form: &str, here: Option<&[String]>, left: &mut usize) -> Option<&Path> {
        if !patterns::is_pattern(form) {
            return None;
        }
        let is_part =
            |character: char| character.is_whitespace() || character.is_control() || PARTING.contains(character);
        let is_whole = !form.contains(is_part) || is_file_address(form);
        let words = form.split(is_part).filter(|_| !is_whole).chain(Some(form).filter(|_| is_whole));
        for word in words.filter(|word| patterns::is_pattern(word)) {
            // The end of a clause is no part of a name.
            let word = word.trim_end_matches([',', '.', '!']);
            for path in paths_of(word) {
                if let Some(place) = self.pattern_of(path, here, is_whole, left) {
                    return Some(place);
                }
            }
        }
        None
    }

    /// The place that one pattern may stand for.
    fn pattern_of(&self, word: &str, here: Option<&[String]>, is_whole: bool, left: &mut usize) -> Option<&Path> {
        let pointed = self.pointed(word, here)?;
        let first = pointed.names.first().filter(|_| pointed.is_rooted);
        let is_begun = |place: &Place| first.is_some_and(|first| place.parts.first().is_some_and(|own| own == first));
        let is_plausible = match is_whole {
            true => pointed.is_rooted || here.is_some_and(|here| says_more(&pointed.names, here)),
            false => self.places.iter().any(is_begun),
        };
        if !is_plausible {
            return None;
        }
        let Some(rest) = left.checked_sub(word.len()) else {
            return self.places.first().map(|one| one.path.as_path());
        };
        *left = rest;
        let mut fitting = self.places.iter().filter(|place| patterns::reaches(&pointed.names, &place.parts));
        fitting.next().map(|place| place.path.as_path())
    }

    fn pointed<'a>(&'a self, path: &'a str, here: Option<&'a [String]>) -> Option<Pointed<'a>> {
        if path.is_empty() {
            return None;
        }
        let from_home = self.behind_home(path);
        let is_rooted = from_home.is_some() || path.starts_with(['/', '\\']);
        let (start, rest) = match from_home {
            Some(rest) => (self.home_parts.as_deref(), rest),
            None if is_rooted => (None, path),
            None => (here, path),
        };
        let mut names: Vec<&str> = start.unwrap_or_default().iter().map(String::as_str).collect();
        for name in rest.split(['/', '\\']) {
            match name {
                "" | "." => {}
                ".." => {
                    names.pop();
                }
                name => names.push(name),
            }
        }
        Some(Pointed { names, is_rooted })
    }

    /// What stands behind the home directory, where the path begins with one of its names.
    fn behind_home<'a>(&self, path: &'a str) -> Option<&'a str> {
        let own = self.home_parts.as_ref().and_then(|parts| parts.last());
        let user = |path: &'a str| path.strip_prefix('~')?.strip_prefix(own?.as_str());
        let names = ["~", "$home", "%home%", "%userprofile%", "$env:userprofile", "$env:home"];
        let mut forms = names.iter().map(|name| path.strip_prefix(name)).chain([user(path)]).flatten();
        forms.find(|rest| rest.is_empty() || rest.starts_with(['/', '\\']))
    }
}

/// The paths of a `file:` address, or the text itself.
fn paths_of(form: &str) -> impl Iterator<Item = &str> {
    file_paths(form).chain(Some(form).filter(|form| !is_file_address(form)))
}

fn parts_of(path: &Path) -> Vec<String> {
    let text = folded(&path.to_string_lossy()).into_owned();
    text.split(['/', '\\']).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn starts_with<A: AsRef<str>, B: AsRef<str>>(names: &[A], start: &[B]) -> bool {
    names.len() >= start.len() && names.iter().zip(start).all(|(name, other)| name.as_ref() == other.as_ref())
}

/// What parts a path from the text around it.
fn is_delimiter(character: char) -> bool {
    character.is_whitespace() || character.is_control() || "'\"`=<>,:;|&()[]{}?#*".contains(character)
}

/// Whether a relative pattern says more than that it searches in the directory tools work in.
fn says_more(names: &[&str], here: &[String]) -> bool {
    !starts_with(names, here) || names.get(here.len()..).is_some_and(patterns::is_pointed)
}

/// What parts a pattern from the text around it: not the signs it may hold.
const PARTING: &str = "'\"`=<>:;|&()#";

/// Texts of which one stands in every JSON text that names a place, in any of the forms looked for.
fn hints(places: &[Place]) -> Vec<String> {
    let mut hints: Vec<String> =
        ["\\u", "\\x", "~", "$home", "${home", "%home", "userprofile", "toolwarden", "proc/", "dev/"]
            .map(str::to_owned)
            .to_vec();
    // Programs that end others by a part of their names.
    hints.extend(["kill", "systemctl"].map(str::to_owned));
    // Percent-encoded letters, digits and dots.
    hints.extend(('2'..='7').map(|digit| format!("%{digit}")));
    // Octal escapes; JSON itself has none.
    hints.extend(('0'..='7').map(|digit| format!("\\{digit}")));
    // Patterns whose first name says nothing, and those that leave the directory tools work in.
    hints.extend([" ..", "=..", "\"/*", "\"/?", "\"/[", "\"/{", "\"..", "\"file:"].map(str::to_owned));
    // And extended ones.
    hints.extend(["@(", "+(", "!(", "?(", "*("].map(str::to_owned));
    for place in places {
        hints.extend(place.parts.last().cloned());
        for name in place.parts.split_last().map(|(_, above)| above).unwrap_or_default() {
            if name.starts_with('.') {
                hints.push(name.clone());
            } else {
                // Directories often have short names, which must not be found inside of others.
                hints.extend(["/", "\\", "\""].map(|before| format!("{before}{name}")));
            }
        }
        let is_escaped =
            |part: &String| part.contains(|character: char| character.is_control() || "\"\\".contains(character));
        if place.parts.iter().any(is_escaped) {
            // Such a name looks different in JSON: every text is looked at.
            hints.push("\"".to_owned());
        }
        if place.parts.iter().any(|part| !part.is_ascii()) {
            hints.push("%".to_owned());
        }
    }
    hints.sort();
    hints.dedup();
    hints
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
