//! Looks through directories: links below them, names that are executed, nested repositories.
//!
//! Takes a path and a budget that all lookups of one call share; gives what was found, and whether everything was looked
//! at. Links are not entered.

use std::fs;
use std::path::{Path, PathBuf};

use toolwarden_policy::shell::{Real, Tree, executed_below};

use crate::lookup::{Own, followed, real};

/// Most entries of directories that are looked at for one call.
const MOST_ENTRIES: usize = 100_000;
/// Most links below one directory that are followed.
const MOST_LINKS: usize = 2_000;

/// How many entries may still be looked at.
pub(crate) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(MOST_ENTRIES)
    }
}

/// What the walk does with an entry that it found.
enum Next {
    Enter,
    Skip,
    Stop,
}

/// What lies below a path. A file, and what is not there, is whole and has nothing below it.
/// A file of ours that has another name below it is such a link as well.
pub(crate) fn below(path: &Path, budget: &mut Budget, own: &Own<'_>) -> Tree {
    let top = real(path);
    let mut tree = Tree { is_whole: true, ..Tree::default() };
    let is_whole = walk(&top, budget, |entry, is_link| {
        let relative = entry.strip_prefix(&top).unwrap_or(entry);
        if let Some(name) = relative.to_str().filter(|_| relative.components().nth(1).is_none()) {
            tree.names.push(name.to_owned());
        }
        if tree.executed.is_none() && executed_below(relative) {
            tree.executed = Some(relative.to_path_buf());
        }
        if !is_link {
            tree.links.extend(own.same_file(entry));
            return Next::Enter;
        }
        match followed(entry).real {
            Real::Elsewhere(real) if tree.links.len() < MOST_LINKS => {
                tree.links.push(real);
                Next::Skip
            }
            _ => Next::Stop,
        }
    });
    tree.is_whole = is_whole;
    tree
}

/// The `.git` of every repository below a directory, which is none itself; `None` where not everything was looked at.
pub(crate) fn repositories_below(directory: &Path, budget: &mut Budget) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    let is_whole = walk(directory, budget, |entry, _| {
        let is_git = entry.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
        if is_git {
            found.push(entry.to_path_buf());
            return Next::Skip;
        }
        Next::Enter
    });
    is_whole.then_some(found)
}

/// Shows every entry below a directory; gives whether all were shown.
fn walk(top: &Path, budget: &mut Budget, mut show: impl FnMut(&Path, bool) -> Next) -> bool {
    let mut waiting = vec![top.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        let is_directory = fs::symlink_metadata(&directory).is_ok_and(|found| found.is_dir());
        if !is_directory {
            continue;
        }
        let Ok(entries) = fs::read_dir(&directory) else { return false };
        for entry in entries {
            let Some(left) = budget.0.checked_sub(1) else { return false };
            budget.0 = left;
            let Ok(entry) = entry else { return false };
            let Ok(kind) = entry.file_type() else { return false };
            let path = entry.path();
            match show(&path, kind.is_symlink()) {
                Next::Enter if kind.is_dir() => waiting.push(path),
                Next::Enter | Next::Skip => {}
                Next::Stop => return false,
            }
        }
    }
    true
}
