//! The rule files a config names, as text; the judge parses them (GATE-10).
//!
//! Those of a workspace count with their trusted content: a rule that is changed, added or deleted
//! there acts only once somebody trusted it, because a missing `forbid` grants.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolwarden_core::{Layer, Origin, Sourced};
use toolwarden_policy::input::RuleFile;

use super::choose::Chosen;
use super::{Loading, SourceState};
use crate::files;
use crate::finding::{Finding, Severity};
use crate::glob;
use crate::locations::WorkspaceTrust;
use crate::readers::SourceKind;
use crate::readers::config::Standing;
use crate::tree::{LARGEST_FILE, Place, decode};
use crate::trust::{FileState, WorkspaceFile};

pub(super) fn read(loading: &mut Loading<'_>, chosen: &Chosen) -> Vec<RuleFile> {
    match chosen.standing {
        Standing::Operator => read_operator(loading, chosen),
        Standing::Workspace => read_workspace(loading, chosen),
    }
}

fn complain(loading: &mut Loading<'_>, pattern: &Sourced<String>, severity: Severity, message: String) {
    let place = Place { line: pattern.origin.line, column: pattern.origin.column };
    loading.findings.push(Finding::at(severity, "rules", pattern.origin.source.clone(), place, message));
    loading.refused |= severity == Severity::Error;
}

fn read_operator(loading: &mut Loading<'_>, chosen: &Chosen) -> Vec<RuleFile> {
    let mut paths = BTreeSet::new();
    for pattern in &chosen.config.rules.files {
        let found = glob::expand(&chosen.directory, &pattern.value);
        if found.is_empty() {
            // A glob may match nothing yet; a file that is named must be there.
            let severity = if pattern.value.contains('*') { Severity::Warning } else { Severity::Error };
            complain(loading, pattern, severity, format!("no rule file matches `{}`", pattern.value));
        }
        paths.extend(found);
    }
    paths.into_iter().filter_map(|path| read_file(loading, &path)).collect()
}

fn read_file(loading: &mut Loading<'_>, path: &Path) -> Option<RuleFile> {
    let label = files::shown(path);
    match files::read(path, LARGEST_FILE) {
        Ok(Some(bytes)) => rule_file(loading, path, &bytes, Layer::Config),
        Ok(None) => {
            loading.refuse("missing", &label, "no such file");
            None
        }
        Err(error) => {
            loading.refuse("unreadable", &label, error.to_string());
            loading.source(path, SourceKind::Rules, SourceState::Broken);
            None
        }
    }
}

fn rule_file(loading: &mut Loading<'_>, path: &Path, bytes: &[u8], layer: Layer) -> Option<RuleFile> {
    let label = files::shown(path);
    match decode(bytes) {
        Ok(text) => {
            loading.source(path, SourceKind::Rules, SourceState::Used);
            Some(RuleFile { origin: Origin::new(layer, label, 1, 1), text: text.to_owned() })
        }
        Err(error) => {
            let finding = Finding::at(Severity::Error, error.code, label.into(), error.place, error.message);
            loading.findings.push(finding);
            loading.refused = true;
            loading.source(path, SourceKind::Rules, SourceState::Broken);
            None
        }
    }
}

fn read_workspace(loading: &mut Loading<'_>, chosen: &Chosen) -> Vec<RuleFile> {
    let root = chosen.directory.clone();
    let mut relatives = BTreeSet::new();
    for pattern in &chosen.config.rules.files {
        if glob::leaves_base(&pattern.value) {
            let message = format!("`{}` leads out of the workspace", pattern.value);
            complain(loading, pattern, Severity::Error, message);
            continue;
        }
        let present = glob::expand(&root, &pattern.value);
        let present = present.iter().filter_map(|path| path.strip_prefix(&root).ok()?.to_str().map(str::to_owned));
        let found: BTreeSet<_> = present.chain(recorded(loading, &root, &pattern.value)).collect();
        if found.is_empty() && !pattern.value.contains('*') {
            complain(loading, pattern, Severity::Error, format!("no rule file matches `{}`", pattern.value));
        }
        relatives.extend(found);
    }
    relatives.into_iter().filter_map(|relative| read_trusted(loading, &root, &relative)).collect()
}

/// Trusted rule files that fit a pattern, whether or not they still exist.
fn recorded(loading: &Loading<'_>, root: &Path, pattern: &str) -> Vec<String> {
    if loading.locations.workspace_trust == WorkspaceTrust::AsTheyAre {
        return Vec::new();
    }
    let record = root.to_str().and_then(|key| loading.records.directories.get(key));
    let files = record.into_iter().flat_map(|record| record.files.keys());
    files.filter(|relative| glob::fits(relative, pattern)).cloned().collect()
}

fn read_trusted(loading: &mut Loading<'_>, root: &Path, relative: &str) -> Option<RuleFile> {
    let file = WorkspaceFile::look(loading.locations, &loading.records, root, relative);
    if matches!(file.state(), FileState::Deleted) {
        let message = "was trusted and is gone: its trusted content counts until the directory is trusted again";
        loading.warn("not_trusted", &file.label, message, file.remedy());
    } else {
        loading.announce(&file, SourceKind::Rules);
    }
    let trusted = file.trusted.as_ref()?;
    loading.trusted_files.push(file.path.clone());
    let path: PathBuf = file.path.clone();
    rule_file(loading, &path, trusted, Layer::WorkspaceFile)
}
