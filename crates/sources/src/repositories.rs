//! Which repository git would find from a directory, and whether its configuration or hooks may execute something.
//!
//! Takes a directory and the workspace; gives a `Repository`. The one the workspace lies in is its owner's business. In
//! any other, each key of the configuration must be known to be harmless, and no hook may be there.

use std::fs;
use std::path::{Path, PathBuf};

use toolwarden_policy::shell::Repository;

use crate::files;
use crate::lookup::real;

const LARGEST_CONFIG: u64 = 64 * 1024;

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

/// What git would find, from this directory upwards.
pub(crate) fn found_from(directory: &Path, workspace: Option<&Path>) -> Repository {
    let start = real(directory);
    if !start.is_dir() {
        return Repository::Strange;
    }
    for place in start.ancestors() {
        let git = place.join(".git");
        if fs::symlink_metadata(&git).is_ok() {
            let is_own = workspace.is_some_and(|workspace| workspace.starts_with(place));
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
        let is_odd = value.contains(['\\', '"', '\n']) || (key == "url" && !leads_elsewhere(value));
        if !is_known || is_odd {
            return false;
        }
    }
    true
}

/// The harmless keys of a section: `core]`, `remote "origin"]`.
fn section(header: &str) -> Option<&'static [&'static str]> {
    let header = header.strip_suffix(']')?;
    let (name, rest) = header.split_once(' ').unwrap_or((header, ""));
    let is_plain = rest.is_empty() || (rest.len() > 1 && rest.starts_with('"') && rest.ends_with('"'));
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
