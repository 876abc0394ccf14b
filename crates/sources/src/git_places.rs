//! Paths that the workspace's own git executes or reads its configuration from, wherever they are: a state directory
//! elsewhere, hooks of `core.hooksPath`, included files, scripts of filters, aliases and helpers.
//!
//! Takes the workspace and the home; gives absolute paths that no line writes unasked. Lexical where a file is not
//! there yet. A configuration that cannot be read gives the workspace itself, so that every writer is held.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::files;
use crate::lookup::real;
use crate::repositories::{LARGEST_CONFIG, linked_state};

/// Most configurations that are read, with the included ones.
const MOST_FILES: usize = 32;
/// Most paths that are kept.
const MOST_PLACES: usize = 1_000;
/// Sections whose values are not run or read as files, and the keys of them whose values are.
const PLAIN: [&str; 8] = ["user", "remote", "branch", "color", "push", "pull", "submodule", "init"];
const RUN_ALL_THE_SAME: [&str; 5] = ["uploadpack", "receivepack", "vcs", "update", "templatedir"];

/// The places of the repository that a workspace lies in.
pub(crate) fn named_by_git(workspace: &Path, home: Option<&Path>, configs: &[PathBuf]) -> Vec<PathBuf> {
    let Some(top) = workspace.ancestors().find(|place| fs::symlink_metadata(place.join(".git")).is_ok()) else {
        return Vec::new();
    };
    let git = top.join(".git");
    let Some(state) = (if git.is_dir() { Some(real(&git)) } else { linked_state(&git) }) else {
        return vec![workspace.to_path_buf()];
    };
    let mut found = Found { top, home, places: Vec::new(), waiting: Vec::new() };
    if state != git {
        found.places.push(state.clone());
    }
    let common = files::read(&state.join("commondir"), LARGEST_CONFIG).ok().flatten();
    if let Some(common) = common.and_then(|bytes| String::from_utf8(bytes).ok()) {
        let common = real(&state.join(common.trim()));
        found.waiting.push(common.join("config"));
        found.places.push(common);
    }
    found.waiting.extend([state.join("config"), state.join("config.worktree"), PathBuf::from("/etc/gitconfig")]);
    found.waiting.extend(home.into_iter().flat_map(|home| [home.join(".gitconfig"), home.join(".config/git/config")]));
    found.waiting.extend(configs.iter().cloned());
    let mut read = 0_usize;
    while let Some(config) = found.waiting.pop() {
        read = read.saturating_add(1);
        if read > MOST_FILES || found.places.len() > MOST_PLACES || !found.config(&config) {
            return vec![workspace.to_path_buf()];
        }
    }
    found.places
}

struct Found<'a> {
    /// The top of the work tree, from which git runs hooks, filters and aliases.
    top: &'a Path,
    home: Option<&'a Path>,
    places: Vec<PathBuf>,
    /// Configurations that are not read yet.
    waiting: Vec<PathBuf>,
}

impl Found<'_> {
    /// Reads one configuration; false where it is there and cannot be read.
    fn config(&mut self, path: &Path) -> bool {
        if fs::metadata(path).is_err() {
            return true;
        }
        let bytes = files::read(path, LARGEST_CONFIG).ok().flatten();
        let Some(text) = bytes.and_then(|bytes| String::from_utf8(bytes).ok()) else { return false };
        // A value goes on in the next line behind a backslash.
        let text = text.replace("\\\r\n", " ").replace("\\\n", " ");
        let mut section = String::new();
        for line in text.lines().map(str::trim) {
            // Git reads a key behind a header in the same line.
            let mut rest = line;
            if let Some(header) = line.strip_prefix('[') {
                let Some(end) = end_of_header(header) else { return false };
                let name = header.split([' ', '.', ']', '"']).next().unwrap_or_default();
                section = name.to_ascii_lowercase();
                rest = header.get(end..).unwrap_or_default().trim();
            }
            if let Some((key, value)) = rest.split_once('=').filter(|_| !rest.starts_with(['#', ';'])) {
                self.value(path, &section, &key.trim().to_ascii_lowercase(), value.trim());
            }
        }
        true
    }

    fn value(&mut self, config: &Path, section: &str, key: &str, value: &str) {
        let value = value.replace(['"', '\''], "").replace("\\", "");
        let is_include = key == "path" && matches!(section, "include" | "includeif");
        let is_hooks = key == "hookspath" && section == "core";
        if is_include || is_hooks {
            let base = if is_include { config.parent().unwrap_or(self.top) } else { self.top };
            // A comment ends a value unless it is quoted; both readings count.
            let plain = value.split(['#', ';']).next().unwrap_or_default().trim_end();
            for text in BTreeSet::from([value.as_str(), plain]) {
                let path = self.path(text, base);
                self.waiting.extend(Some(path.clone()).filter(|_| is_include));
                self.places.push(path);
            }
            return;
        }
        if PLAIN.contains(&section) && !RUN_ALL_THE_SAME.contains(&key) {
            return;
        }
        for word in
            value.split([' ', '\t', ';', '|', '&', '(', ')', '<', '>', '=', '!', '`']).filter(|word| !word.is_empty())
        {
            let path = self.path(word, self.top);
            // A directory is where something is looked for, not what is run.
            let is_file = path.is_file() || (word.contains('/') && !word.contains("://") && !path.exists());
            if is_file && path.starts_with(self.top) && path != *self.top {
                self.places.push(path);
            }
        }
    }

    fn path(&self, text: &str, base: &Path) -> PathBuf {
        match (text.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => real(&home.join(rest)),
            _ => real(&base.join(text)),
        }
    }
}

/// Where a section's header ends: `[a]`, `[a "b]c"]`.
fn end_of_header(header: &str) -> Option<usize> {
    let mut is_quoted = false;
    let mut was_backslash = false;
    for (at, letter) in header.char_indices() {
        match letter {
            '"' if !was_backslash => is_quoted = !is_quoted,
            ']' if !is_quoted => return at.checked_add(1),
            _ => {}
        }
        was_backslash = letter == '\\' && !was_backslash;
    }
    None
}
