//! Which repository git would find from a directory, and whether its configuration or hooks may execute something.
//!
//! Takes a directory and the workspace; gives a `Repository`. The one the workspace lies in is its owner's business. In
//! any other, each key of the configuration must be known to be harmless, and no hook may be there. The same holds for
//! nested ones that the index names, which git enters by itself, and for those that `git add` would put there.

use std::fs;
use std::path::{Path, PathBuf};

use toolwarden_policy::shell::{Gathered, Repository};

use crate::files;
use crate::git_index;
use crate::lookup::real;
use crate::trees::{self, Budget};

pub(crate) const LARGEST_CONFIG: u64 = 64 * 1024;

/// Sections and keys that neither execute nor lead anywhere else.
const HARMLESS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
        ],
    ),
    ("remote", &["url", "fetch", "tagopt", "prune"]),
    ("branch", &["remote", "merge", "rebase"]),
    ("user", &["name", "email"]),
    ("submodule", &["url", "active"]),
    ("extensions", &["objectformat"]),
];

/// What git would find, from this directory upwards. `gathered` is what it would take into the index.
pub(crate) fn found_from(
    directory: &Path,
    workspace: Option<&Path>,
    gathered: &[Gathered],
    budget: &mut Budget,
) -> Repository {
    let start = real(directory);
    if !start.is_dir() {
        return Repository::Strange;
    }
    for place in start.ancestors() {
        let git = place.join(".git");
        if fs::symlink_metadata(&git).is_ok() {
            let is_own = workspace.is_some_and(|workspace| workspace.starts_with(place));
            if let Some(found) = nested(place, &git).or_else(|| added(&start, place, gathered, budget)) {
                return found;
            }
            return match is_own {
                true if place == start => Repository::OwnTop,
                true => Repository::Own,
                false if is_plain(&git, workspace) => Repository::Plain,
                false => Repository::Strange,
            };
        }
        let has = |name: &str| fs::symlink_metadata(place.join(name)).is_ok();
        if has("HEAD") && (has("objects") || has("refs") || has("commondir")) {
            return Repository::Strange;
        }
    }
    Repository::None
}

/// A nested repository that git enters by itself, because its index names it.
fn nested(top: &Path, git: &Path) -> Option<Repository> {
    let state = if git.is_dir() { Some(git.to_path_buf()) } else { linked_state(git) };
    let links = state.as_deref().and_then(git_index::gitlinks);
    let (Some(state), Some(links)) = (state, links) else { return Some(Repository::Unread) };
    let mut inner = links.iter().map(|link| top.join(link).join(".git"));
    inner.any(|inner| is_strange(&inner, top, &state)).then_some(Repository::Nested)
}

/// A nested repository that git would take into its index.
fn added(start: &Path, top: &Path, gathered: &[Gathered], budget: &mut Budget) -> Option<Repository> {
    let own = top.join(".git");
    let places = gathered.iter().flat_map(|gathered| match gathered {
        Gathered::All => vec![top.to_path_buf()],
        Gathered::Paths(paths) => paths.iter().map(|path| real(&start.join(path))).collect(),
    });
    for place in places {
        let Some(found) = trees::repositories_below(&place, budget) else { return Some(Repository::Unread) };
        if found.iter().any(|git| *git != own && is_strange(git, top, &own)) {
            return Some(Repository::Nested);
        }
    }
    None
}

/// Whether a nested repository may execute something. One whose state lies inside of the outer one's, as that of a
/// submodule does, is as much the owner's business as the outer one.
fn is_strange(git: &Path, top: &Path, state: &Path) -> bool {
    let Ok(found) = fs::symlink_metadata(git) else { return false };
    let is_below = |target: PathBuf| target.starts_with(real(state)) || target.starts_with(top.join(".git"));
    let is_module = found.is_file() && linked_state(git).is_some_and(is_below);
    !is_module && !is_plain(git, None)
}

/// Where a file `.git` leads to.
pub(crate) fn linked_state(git: &Path) -> Option<PathBuf> {
    let bytes = files::read(git, LARGEST_CONFIG).ok().flatten()?;
    let text = String::from_utf8(bytes).ok()?;
    Some(real(&git.parent()?.join(text.strip_prefix("gitdir:")?.trim())))
}

/// Whether nothing of a directory of git's can execute.
fn is_plain(git: &Path, workspace: Option<&Path>) -> bool {
    let Some(directory) = state_of(git, workspace) else { return false };
    let has = |name: &str| fs::symlink_metadata(directory.join(name)).is_ok();
    if has("commondir") || has("config.worktree") {
        return false;
    }
    let hooks = match fs::read_dir(directory.join("hooks")) {
        Ok(mut hooks) => {
            hooks.all(|hook| hook.is_ok_and(|hook| hook.path().extension().is_some_and(|end| end == "sample")))
        }
        Err(_) => !has("hooks"),
    };
    // The state of a submodule lies in the workspace's own `.git` and says where its files are.
    let is_module = directory != git;
    hooks && config_is_harmless(&directory.join("config"), is_module)
}

/// The directory itself, or the one a submodule's file leads to inside of the workspace's own.
fn state_of(git: &Path, workspace: Option<&Path>) -> Option<PathBuf> {
    let found = fs::symlink_metadata(git).ok()?;
    if found.is_dir() {
        return Some(git.to_path_buf());
    }
    let bytes = files::read(git, LARGEST_CONFIG).ok().flatten().filter(|_| found.is_file())?;
    let text = String::from_utf8(bytes).ok()?;
    let target = real(&git.parent()?.join(text.strip_prefix("gitdir:")?.trim()));
    let modules = workspace?.join(".git").join("modules");
    target.starts_with(modules).then_some(target)
}

/// Strict: a line that is not understood is not harmless.
fn config_is_harmless(path: &Path, is_module: bool) -> bool {
    let is_plain_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let bytes = files::read(path, LARGEST_CONFIG).ok().flatten().filter(|_| is_plain_file);
    let Some(text) = bytes.and_then(|bytes| String::from_utf8(bytes).ok()) else { return false };
    let mut keys: &[&str] = &[];
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let Some(section) = section(header) else { return false };
            keys = section;
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { return false };
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        let is_core = keys.contains(&"filemode");
        let is_own = is_core && ((key == "bare" && value == "false") || (key == "worktree" && is_module));
        let is_known = is_own || keys.contains(&key.as_str());
        let is_address = matches!(key.as_str(), "url" | "pushurl");
        let is_odd = value.contains(['\\', '"', '\n'])
            || (is_address && !leads_elsewhere(value))
            || (matches!(key.as_str(), "remote" | "pushremote") && !names_remote(&text, value));
        if !is_known || is_odd {
            return false;
        }
    }
    true
}

/// Whether a value is the name of a remote that has an address in this file: git takes any other for a directory.
fn names_remote(config: &str, value: &str) -> bool {
    let is_name =
        !value.is_empty() && value.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    let headers = config.lines().filter(|line| line.trim().starts_with("[remote ")).count();
    let addresses = config.lines().filter(|line| line.trim().starts_with("url")).count();
    is_name && addresses >= headers && config.contains(&format!("[remote \"{value}\"]"))
}

/// The harmless keys of a section: `core]`, `remote "origin"]`.
fn section(header: &str) -> Option<&'static [&'static str]> {
    let header = header.strip_suffix(']')?;
    let (name, rest) = header.split_once(' ').unwrap_or((header, ""));
    // Git reads several headers and keys in one line: nothing but one name may stand between the quotes.
    let quoted = rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let is_plain = rest.is_empty() || quoted.is_some_and(|name| !name.contains(['"', '\\', '[', ']', '#', ';']));
    let found = HARMLESS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).filter(|_| is_plain)?;
    Some(found.1)
}

/// An address of another machine.
fn leads_elsewhere(url: &str) -> bool {
    let has_scheme = ["https://", "http://", "ssh://", "git://"].iter().any(|scheme| {
        url.strip_prefix(scheme).is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_alphanumeric()))
    });
    let is_short = url.split_once(':').is_some_and(|(host, path)| {
        host.contains('@') && !host.contains('/') && !host.starts_with('-') && !path.starts_with(':')
    });
    (has_scheme || is_short) && !url.contains("::")
}
