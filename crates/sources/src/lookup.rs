//! Looks up what a call needs to be judged (SELF-1, SHELL-3): where its paths really lead, and which repository
//! git would find.
//!
//! Called once per decision, by whoever builds the question: `query.with_files(lookup::files(&policy, &query))`. Gives
//! facts only; the policy decides. Nothing is opened but directories, links and small configurations of git.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use toolwarden_core::{CallKind, weak};
use toolwarden_policy::shell::{self, FileFacts, Places, Position, Real};
use toolwarden_policy::{PolicySet, Query};

use crate::argument_paths;
use crate::git_places;
use crate::repositories;
use crate::trees::{self, Budget};

/// Most links that are followed on the way to one file.
const MOST_LINKS: usize = 40;
/// Most entries of a directory that a pattern is compared with.
const MOST_ENTRIES: usize = 10_000;
/// Most paths a pattern may stand for, with the names behind it.
const MOST_MATCHES: usize = 256;
/// Most names and entries of directories that are looked at for all paths of a call, and for a single path.
const MOST_STEPS: usize = 100_000;
const MOST_STEPS_OF_ONE: usize = 4_096;
/// Longest name that a file can have.
const LONGEST_NAME: usize = 255;
/// Most files of ours in one directory that are compared with a file of several names.
const MOST_OWN: usize = 1_000;

/// How much may still be looked at. Patterns multiply, and links lead back, so that all paths of a call share one.
#[derive(Debug)]
struct Steps {
    left: usize,
    /// A pattern was given up, or nothing was left.
    is_cut: bool,
}

impl Steps {
    fn new(left: usize) -> Self {
        Self { left, is_cut: false }
    }

    /// Takes one; `None` where none is left.
    fn take(&mut self) -> Option<()> {
        weak::worked(1);
        let left = self.left.checked_sub(1);
        self.is_cut |= left.is_none();
        self.left = left?;
        Some(())
    }
}

/// What was found of many paths.
pub(crate) struct LookedUp {
    pub(crate) paths: HashMap<PathBuf, Real>,
    pub(crate) present: BTreeSet<PathBuf>,
    /// Whether something was given up because there was too much of it.
    pub(crate) is_cut: bool,
}

/// The facts for a call: of a command line every path it names and every directory git would run in; of a tool's
/// arguments those that may be paths. None for lines that cannot be read or name too many paths.
#[must_use]
pub fn files(policy: &PolicySet, query: &Query) -> FileFacts {
    let places = policy.contents().places();
    match &query.call.kind {
        CallKind::Shell { command, directory } => line(places, query.workspace(), command, directory.as_deref()),
        CallKind::Mcp { .. } => argument_paths::facts(places, query),
        CallKind::Fetch { .. } => FileFacts::default(),
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
    let mut budget = Budget::default();
    let mut repositories = HashMap::new();
    for directory in asked.directories {
        let gathered = asked.gathering.get(&directory).map(Vec::as_slice).unwrap_or_default();
        let found = repositories::found_from(&directory, workspace.as_deref(), gathered, &mut budget);
        repositories.insert(directory, found);
    }
    let own = Own::of(places);
    let trees = asked.trees.into_iter().map(|path| (path.clone(), trees::below(&path, &mut budget, &own))).collect();
    // What was given up is not resolved, and held.
    let LookedUp { paths, present, .. } = look_up(places, asked.paths);
    let named = |workspace: &Path| git_places::named_by_git(workspace, places.home(), places.git_configs());
    let executed = workspace.map(|workspace| named(&workspace)).unwrap_or_default();
    FileFacts::looked_up(paths, repositories, present).with_trees(trees).with_executed(executed)
}

pub(crate) fn look_up(places: &Places, asked: BTreeSet<PathBuf>) -> LookedUp {
    let mut steps = Steps::new(MOST_STEPS);
    let own = Own::of(places);
    let mut paths = HashMap::new();
    let mut present = BTreeSet::new();
    for path in asked {
        let found = follow(&path, MOST_LINKS, &mut steps, Some(&own));
        if found.is_present {
            present.insert(path.clone());
        }
        // No file that is not there has another name.
        let same = if found.is_present { own.same_file(&path) } else { None };
        paths.insert(path, same.map_or(found.real, Real::Elsewhere));
    }
    LookedUp { paths, present, is_cut: steps.is_cut }
}

/// The files of ours, by which a file of several names is known. Looked up only for such a file, because most calls
/// name none.
pub(crate) struct Own<'a>(LazyCell<Vec<OwnFile>, Box<dyn FnOnce() -> Vec<OwnFile> + 'a>>);

struct OwnFile {
    found: Metadata,
    path: PathBuf,
}

impl<'a> Own<'a> {
    pub(crate) fn of(places: &'a Places) -> Self {
        Self(LazyCell::new(Box::new(|| {
            let entries = |path: &PathBuf| fs::read_dir(path).into_iter().flatten().flatten().take(MOST_OWN);
            let inside = places.paths().iter().flat_map(entries).map(|entry| entry.path());
            let named = |path: PathBuf| Some(OwnFile { found: fs::metadata(&path).ok()?, path });
            places.paths().iter().cloned().chain(inside).filter_map(named).collect()
        })))
    }

    /// A file of ours that has this name as well.
    pub(crate) fn same_file(&self, path: &Path) -> Option<PathBuf> {
        let found = fs::metadata(path).ok().filter(|found| found.is_file() && found.nlink() > 1)?;
        let is_it = |one: &&OwnFile| one.found.dev() == found.dev() && one.found.ino() == found.ino();
        self.0.iter().find(is_it).map(|one| one.path.clone())
    }
}

/// A path with its links followed as far as it exists; itself where that cannot be told.
pub(crate) fn real(path: &Path) -> PathBuf {
    match followed(path).real {
        Real::Elsewhere(real) => real,
        Real::AsWritten => lexical(path),
        Real::Several(_) | Real::Unresolved => path.to_path_buf(),
    }
}

pub(crate) struct Followed {
    pub(crate) real: Real,
    pub(crate) is_present: bool,
}

/// Follows the links of a path.
pub(crate) fn followed(path: &Path) -> Followed {
    follow(path, MOST_LINKS, &mut Steps::new(MOST_STEPS_OF_ONE), None)
}

/// Follows a path name by name, as the system would: `..` behind a link is the parent of what the link leads to.
fn follow(path: &Path, links: usize, steps: &mut Steps, own: Option<&Own<'_>>) -> Followed {
    const LOST: Followed = Followed { real: Real::Unresolved, is_present: true };
    let mut waiting: VecDeque<Cow<'_, OsStr>> = names(path).map(Cow::Borrowed).collect();
    let mut reached = PathBuf::from("/");
    let mut is_led = false;
    let mut links_left = links;
    let mut is_present = true;
    // Nothing is below what is not there.
    let mut absent: Option<PathBuf> = None;
    while let Some(name) = waiting.pop_front() {
        if *name == *".." {
            reached.pop();
            continue;
        }
        if steps.take().is_none() {
            return LOST;
        }
        let next = reached.join(&name);
        if absent.as_ref().is_some_and(|absent| next.starts_with(absent)) {
            reached = next;
            continue;
        }
        match fs::symlink_metadata(&next) {
            Ok(found) if found.is_symlink() => {
                let (Some(left), Ok(target)) = (links_left.checked_sub(1), fs::read_link(&next)) else { return LOST };
                (links_left, is_led) = (left, true);
                if target.is_absolute() {
                    reached = PathBuf::from("/");
                }
                let further: Vec<OsString> = names(&target).map(OsStr::to_owned).collect();
                further.into_iter().rev().for_each(|name| waiting.push_front(Cow::Owned(name)));
            }
            Ok(_) => reached = next,
            // No file has a name that is too long.
            Err(error) if is_absent(&error) || (error.kind() == ErrorKind::InvalidFilename && is_too_long(&name)) => {
                if is_pattern(&name) {
                    match matches(&reached, &name, &waiting, links_left, steps, own) {
                        Matches::Unknown => {
                            steps.is_cut = true;
                            return LOST;
                        }
                        Matches::Led(reals) => return Followed { real: Real::Several(reals), is_present: true },
                        Matches::AsWritten => {}
                    }
                }
                is_present = false;
                absent = Some(next.clone());
                reached = next;
            }
            Err(_) => return LOST,
        }
    }
    let real = if !is_led || reached == lexical(path) { Real::AsWritten } else { Real::Elsewhere(reached) };
    Followed { real, is_present }
}

/// The names of a path, `..` included.
fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    parts.map(Component::as_os_str)
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

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn is_too_long(name: &OsStr) -> bool {
    name.len() > LONGEST_NAME
}

fn is_pattern(name: &OsStr) -> bool {
    name.to_string_lossy().contains(['*', '?', '['])
}

/// What a pattern stands for on the disk.
enum Matches {
    /// No link and nothing behind one.
    AsWritten,
    /// Links, or paths behind links, which lead to these.
    Led(Vec<PathBuf>),
    /// Too many, or names that could become options.
    Unknown,
}

/// Follows whatever a pattern matches, with the names behind it.
fn matches(
    directory: &Path,
    pattern: &OsStr,
    behind: &VecDeque<Cow<'_, OsStr>>,
    links: usize,
    steps: &mut Steps,
    own: Option<&Own<'_>>,
) -> Matches {
    let pattern = pattern.to_string_lossy();
    let start = pattern.split(['*', '?', '[']).next().unwrap_or_default();
    let end = pattern.rsplit(['*', '?', ']']).next().unwrap_or_default();
    let Ok(entries) = fs::read_dir(directory) else { return Matches::AsWritten };
    let Some(left) = links.checked_sub(1) else { return Matches::Unknown };
    let mut count = 0_usize;
    let mut led = Vec::new();
    for (position, entry) in entries.enumerate() {
        let within = position < MOST_ENTRIES && steps.take().is_some();
        let Some(entry) = entry.ok().filter(|_| within) else { return Matches::Unknown };
        let name = entry.file_name();
        let text = name.to_string_lossy();
        if !text.starts_with(start) || !text.ends_with(end) {
            continue;
        }
        // An unquoted pattern could become an option.
        if text.starts_with('-') {
            return Matches::Unknown;
        }
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if behind.is_empty() && !is_link {
            led.extend(own.and_then(|own| own.same_file(&entry.path())));
            continue;
        }
        count = count.saturating_add(1);
        if count > MOST_MATCHES {
            return Matches::Unknown;
        }
        let further: PathBuf =
            std::iter::once(entry.path().as_os_str()).chain(behind.iter().map(AsRef::as_ref)).collect();
        led.extend(own.and_then(|own| own.same_file(&further)));
        match follow(&further, left, steps, own).real {
            Real::AsWritten => {}
            Real::Unresolved => return Matches::Unknown,
            Real::Elsewhere(real) => led.push(real),
            Real::Several(reals) => led.extend(reals),
        }
    }
    if led.is_empty() { Matches::AsWritten } else { Matches::Led(led) }
}
