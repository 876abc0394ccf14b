//! Looks up what a call needs to be judged (SELF-1, SHELL-3): where its paths really lead, and which repository
//! git would find.
//!
//! Called once per decision, by whoever builds the question: `query.with_files(lookup::files(&policy, &query))`. Gives
//! facts only; the policy decides. Nothing is opened but directories, links and small configurations of git.

use std::cell::LazyCell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use toolwarden_core::json::Kind;
use toolwarden_core::{CallKind, Operation};
use toolwarden_policy::shell::{self, FileFacts, Places, Position, Real};
use toolwarden_policy::{PolicySet, Query};

use crate::repositories;

/// Most links that are followed on the way to one file.
const MOST_LINKS: usize = 40;
/// Most entries of a directory that a pattern is compared with.
const MOST_ENTRIES: usize = 10_000;
/// Most paths a pattern may stand for, with the names behind it.
const MOST_MATCHES: usize = 256;

/// Most arguments of one call that are looked up, and the longest of them.
const MOST_ARGUMENTS: usize = 1_000;
const LONGEST_ARGUMENT: usize = 4_096;

/// The facts for a call: of a command line every path it names and every directory git would run in; of a tool's
/// arguments those that may be paths. None for lines that cannot be read or name too many paths.
#[must_use]
pub fn files(policy: &PolicySet, query: &Query) -> FileFacts {
    let places = policy.contents().places();
    match &query.call.kind {
        CallKind::Shell { command, directory } => line(places, query.workspace(), command, directory.as_deref()),
        CallKind::Mcp { operation: Operation::CallTool } => arguments(places, query),
        CallKind::Mcp { .. } | CallKind::Fetch { .. } => FileFacts::default(),
    }
}

fn line(places: &Places, workspace: Option<&Path>, command: &str, directory: Option<&Path>) -> FileFacts {
    let start = workspace.unwrap_or(Path::new("/"));
    let cwd = directory.map_or_else(|| start.to_path_buf(), |directory| start.join(directory));
    let position = Position { cwd: &cwd, workspace, home: places.home() };
    let Some(asked) = shell::read(command).ok().and_then(|line| shell::questions(&line, position)) else {
        return FileFacts::default();
    };
    let workspace = workspace.map(real);
    let repository = |directory: PathBuf| {
        let found = repositories::found_from(&directory, workspace.as_deref());
        (directory, found)
    };
    let repositories = asked.directories.into_iter().map(repository).collect();
    let (paths, present) = look_up(places, asked.paths);
    FileFacts::looked_up(paths, repositories, present)
}

/// Texts that may be paths: rooted ones, and where there is a workspace those without blanks.
fn arguments(places: &Places, query: &Query) -> FileFacts {
    let Some(arguments) = &query.call.arguments else { return FileFacts::default() };
    let mut asked = BTreeSet::new();
    let mut waiting = vec![arguments.value()];
    while let Some(value) = waiting.pop() {
        match value.kind() {
            Kind::Object => waiting.extend(value.entries().map(|(_, inner)| inner)),
            Kind::Array => waiting.extend(value.items()),
            Kind::String => asked.extend(value.as_str().and_then(|text| argument(&text, places, query.workspace()))),
            Kind::Null | Kind::True | Kind::False | Kind::Number => {}
        }
        if asked.len() > MOST_ARGUMENTS {
            return FileFacts::too_many();
        }
    }
    let (paths, present) = look_up(places, asked);
    FileFacts::looked_up(paths, HashMap::new(), present)
}

/// The path a text of an argument may mean.
fn argument(text: &str, places: &Places, workspace: Option<&Path>) -> Option<PathBuf> {
    let text = text.strip_prefix("file://").unwrap_or(text);
    // Patterns of a tool are its own.
    let is_odd = text.contains(char::is_control) || text.contains(['*', '?', '[']);
    if text.is_empty() || text.len() > LONGEST_ARGUMENT || is_odd {
        return None;
    }
    if let Some(rest) = text.strip_prefix("~/") {
        return places.home().map(|home| home.join(rest));
    }
    if text.starts_with('/') {
        return Some(PathBuf::from(text));
    }
    workspace
        .filter(|_| text.contains('/') || !text.contains(char::is_whitespace))
        .map(|workspace| workspace.join(text))
}

fn look_up(places: &Places, asked: BTreeSet<PathBuf>) -> (HashMap<PathBuf, Real>, BTreeSet<PathBuf>) {
    // Looked up only for a file of several names, because most calls name none.
    let own = LazyCell::new(|| {
        let found = |path| Some((fs::metadata(path).ok()?, path));
        places.paths().iter().filter_map(found).collect::<Vec<(Metadata, &PathBuf)>>()
    });
    let mut paths = HashMap::new();
    let mut present = BTreeSet::new();
    for path in asked {
        let found = follow(&path, MOST_LINKS);
        if found.is_present {
            present.insert(path.clone());
        }
        let real = same_file(&path, || &own).map_or(found.real, Real::Elsewhere);
        paths.insert(path, real);
    }
    (paths, present)
}

/// A path with its links followed as far as it exists; itself where that cannot be told.
pub(crate) fn real(path: &Path) -> PathBuf {
    match follow(path, MOST_LINKS).real {
        Real::Elsewhere(real) => real,
        Real::AsWritten => lexical(path),
        Real::Unresolved => path.to_path_buf(),
    }
}

/// A file of ours that has this name as well.
fn same_file<'a>(path: &Path, own: impl FnOnce() -> &'a [(Metadata, &'a PathBuf)]) -> Option<PathBuf> {
    let found = fs::metadata(path).ok().filter(|found| found.is_file() && found.nlink() > 1)?;
    let is_it = |(one, _): &&(Metadata, &PathBuf)| one.dev() == found.dev() && one.ino() == found.ino();
    own().iter().find(is_it).map(|(_, place)| (*place).clone())
}

struct Followed {
    real: Real,
    is_present: bool,
}

/// Follows a path name by name, as the system would: `..` behind a link is the parent of what the link leads to.
fn follow(path: &Path, links: usize) -> Followed {
    const LOST: Followed = Followed { real: Real::Unresolved, is_present: true };
    let mut waiting: VecDeque<OsString> = names(path).collect();
    let mut reached = PathBuf::from("/");
    let mut links_left = links;
    let mut is_present = true;
    while let Some(name) = waiting.pop_front() {
        if name == ".." {
            reached.pop();
            continue;
        }
        let next = reached.join(&name);
        match fs::symlink_metadata(&next) {
            Ok(found) if found.is_symlink() => {
                let (Some(left), Ok(target)) = (links_left.checked_sub(1), fs::read_link(&next)) else { return LOST };
                links_left = left;
                if target.is_absolute() {
                    reached = PathBuf::from("/");
                }
                names(&target).collect::<Vec<_>>().into_iter().rev().for_each(|name| waiting.push_front(name));
            }
            Ok(_) => reached = next,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                if is_pattern(&name) && may_match_link(&reached, &name, &waiting, links_left) {
                    return LOST;
                }
                is_present = false;
                reached = next;
            }
            Err(_) => return LOST,
        }
    }
    let real = if reached == lexical(path) { Real::AsWritten } else { Real::Elsewhere(reached) };
    Followed { real, is_present }
}

/// The names of a path, `..` included.
fn names(path: &Path) -> impl Iterator<Item = OsString> {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    parts.map(|part| part.as_os_str().to_owned()).collect::<Vec<_>>().into_iter()
}

/// The path without `.` and `..`, links not followed.
fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for name in names(path) {
        if name == ".." {
            clean.pop();
        } else {
            clean.push(name);
        }
    }
    clean
}

fn is_pattern(name: &OsString) -> bool {
    name.to_string_lossy().contains(['*', '?', '['])
}

/// Whether a pattern may stand for a link, or for a directory in which the names behind it lead to one.
fn may_match_link(directory: &Path, pattern: &OsString, behind: &VecDeque<OsString>, links: usize) -> bool {
    let pattern = pattern.to_string_lossy();
    let start = pattern.split(['*', '?', '[']).next().unwrap_or_default();
    let Ok(entries) = fs::read_dir(directory) else { return false };
    let mut matches = 0_usize;
    for (position, entry) in entries.enumerate() {
        let Ok(entry) = entry else { return true };
        if position >= MOST_ENTRIES {
            return true;
        }
        if !entry.file_name().to_string_lossy().starts_with(start) {
            continue;
        }
        matches = matches.saturating_add(1);
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let Some(left) = links.checked_sub(1) else { return true };
        let further: PathBuf = std::iter::once(entry.path().into_os_string()).chain(behind.iter().cloned()).collect();
        let leads = !behind.is_empty() && (matches > MOST_MATCHES || follow(&further, left).real != Real::AsWritten);
        if is_link || leads {
            return true;
        }
    }
    false
}
