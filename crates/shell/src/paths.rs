//! Lexical paths: where a word points, without asking the file system.
//! Takes words, a working directory and a home; gives normalised absolute paths. Refuses (as `None`) what
//! is not literal, so that callers treat it as outside.

use std::path::{Component, Path, PathBuf};

use crate::executed::{reached_by_word, written_by_word};
use crate::line::{Redirection, ShellLine};

/// Whether every redirection to or from a file has a literal target inside the workspace, and no `cd` makes
/// relative paths uncertain. `/dev/null` and descriptor duplication do not count.
pub fn redirections_stay_inside(line: &ShellLine, workspace: &Path, cwd: &Path) -> bool {
    leaving_redirection(line, Some(workspace), cwd).is_none()
}

/// The first redirection that may leave the workspace.
pub(super) fn leaving_redirection<'a>(
    line: &'a ShellLine,
    workspace: Option<&Path>,
    cwd: &Path,
) -> Option<&'a Redirection> {
    line.all_redirections().filter(|redirection| !redirection.is_harmless()).find(|redirection| {
        let inside = workspace.is_some_and(|workspace| is_inside(redirection, workspace, cwd));
        line.changes_directory || !inside
    })
}

fn is_inside(redirection: &Redirection, workspace: &Path, cwd: &Path) -> bool {
    if !redirection.target.literal || !workspace.is_absolute() {
        return false;
    }
    let Some(target) = resolve(&redirection.target.text, cwd) else { return false };
    let workspace = normalise(workspace);
    let Ok(relative) = target.strip_prefix(&workspace) else { return false };
    let place = if redirection.writes() { written_by_word } else { reached_by_word };
    relative.components().next().is_some() && place(&relative.to_string_lossy()).is_none()
}

/// The absolute path a text means in a directory; `None` for a relative text in a directory that is not
/// absolute itself.
pub(super) fn resolve(text: &str, cwd: &Path) -> Option<PathBuf> {
    if text.is_empty() {
        return None;
    }
    let joined = cwd.join(text);
    joined.is_absolute().then(|| normalise(&joined))
}

/// Whether a text may mean a device or a descriptor (`/dev/stdin`, `//dev/./fd/0`, `../../proc/self/fd/0`),
/// also behind `=` or glued to an option.
pub(super) fn is_device(text: &str) -> bool {
    let behind_equals = text.split_once('=').map(|(_, value)| value);
    let glued = text.find('/').filter(|_| text.starts_with('-')).and_then(|start| text.get(start..));
    [Some(text), behind_equals, glued].into_iter().flatten().any(|text| {
        let path = normalise(&Path::new("/").join(text));
        let is_outside = text.starts_with('/') || text.contains("..");
        is_outside && (path.starts_with("/dev") || path.starts_with("/proc")) && text != "/dev/null"
    })
}

/// Removes `.` and `..` lexically; `..` at the root stays at the root.
#[must_use]
pub fn normalise(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}
