//! The globs of `[rules] files`: `*` matches within one component of a path, nothing else does.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// More files than this are not rules.
const MOST_FILES: usize = 10_000;

/// Every regular-looking path under `base` that fits the pattern, sorted.
pub(crate) fn expand(base: &Path, pattern: &str) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::from([base.to_path_buf()]);
    for component in Path::new(pattern).components() {
        found = match component {
            Component::Normal(name) => match name.to_str().filter(|name| name.contains('*')) {
                Some(glob) => found.iter().flat_map(|directory| children(directory, glob)).take(MOST_FILES).collect(),
                None => found.iter().map(|directory| directory.join(name)).collect(),
            },
            Component::CurDir => found,
            other => found.iter().map(|directory| directory.join(other)).collect(),
        };
    }
    found.retain(|path| fs::symlink_metadata(path).is_ok());
    found
}

/// Whether a pattern could name something outside its base.
pub(crate) fn leaves_base(pattern: &str) -> bool {
    Path::new(pattern).components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Whether a relative path, written with `/`, fits the pattern.
pub(crate) fn fits(path: &str, pattern: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let path: Vec<&str> = path.split('/').collect();
    path.len() == pattern.len() && path.iter().zip(&pattern).all(|(name, glob)| matches(name, glob))
}

fn children(directory: &Path, glob: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    // As in a shell, hidden files need to be named.
    let fitting = names.filter(|name| (!name.starts_with('.') || glob.starts_with('.')) && matches(name, glob));
    fitting.take(MOST_FILES).map(|name| directory.join(name)).collect()
}

/// `*` stands for any text. Greedy from the left is enough when only `*` is special.
fn matches(name: &str, glob: &str) -> bool {
    let Some((head, rest)) = glob.split_once('*') else { return name == glob };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let mut rest = rest;
    while let Some((middle, after)) = rest.split_once('*') {
        let Some(position) = name.find(middle) else { return false };
        name = name.get(position + middle.len()..).unwrap_or_default();
        rest = after;
    }
    name.ends_with(rest)
}

#[cfg(test)]
#[path = "glob_tests.rs"]
mod tests;
