//! Modes by slug: config over `.roomodes` over the global modes file over the store over the built-in ones (MODE-7).

use toolwarden_core::{Layer, Origin};
use toolwarden_policy::input::ModeInput;

use super::deny::Narrowing;
use super::{Loading, SourceState};
use crate::files;
use crate::finding::{Finding, Severity};
use crate::readers::config::ConfigFile;
use crate::readers::{SourceKind, roomodes};
use crate::tree::LARGEST_FILE;
use crate::trust::{FileState, WorkspaceFile};

/// The usual modes of Roo, unrestricted (MODE-1).
const BUILT_IN: [(&str, &str); 5] = [
    ("architect", "Architect"),
    ("code", "Code"),
    ("ask", "Ask"),
    ("debug", "Debug"),
    ("orchestrator", "Orchestrator"),
];

pub(super) fn read(loading: &mut Loading<'_>, config: &ConfigFile) -> Vec<ModeInput> {
    let mut modes: Vec<_> = BUILT_IN
        .iter()
        .map(|(slug, name)| ModeInput::unrestricted(slug, name, Origin::record(Layer::Shipped, "built-in")))
        .collect();
    let stored = super::records::modes(loading);
    lay_over(loading, &mut modes, stored);
    let global = read_global(loading);
    lay_over(loading, &mut modes, global);
    let workspace = read_workspace(loading, &modes, config);
    lay_over(loading, &mut modes, workspace);
    lay_over(loading, &mut modes, config.modes.clone());
    modes
}

/// Puts a stronger layer's modes over the weaker ones; who is shadowed is noted.
fn lay_over(loading: &mut Loading<'_>, modes: &mut Vec<ModeInput>, stronger: Vec<ModeInput>) {
    let weaker = modes.len();
    for mode in stronger {
        let shadowed = modes.iter().take(weaker).position(|known| known.slug == mode.slug);
        let Some(known) = shadowed.and_then(|index| modes.get_mut(index)) else {
            modes.push(mode);
            continue;
        };
        if known.origin.layer != Layer::Shipped {
            let message = format!("the mode `{}` is not used: {} comes first", known.slug, mode.origin);
            let place = crate::tree::Place { line: known.origin.line, column: known.origin.column };
            loading.findings.push(Finding::at(Severity::Note, "shadowed", known.origin.source.clone(), place, message));
        }
        *known = mode;
    }
}

fn read_global(loading: &mut Loading<'_>) -> Vec<ModeInput> {
    let path = loading.locations.user_modes();
    let label = files::shown(&path);
    match files::read(&path, LARGEST_FILE) {
        Ok(Some(bytes)) => {
            loading.accept(&path, SourceKind::Modes, roomodes::read_bytes(&label, Layer::UserFile, &bytes))
        }
        Ok(None) => Vec::new(),
        Err(error) => {
            loading.refuse("unreadable", &label, error.to_string());
            loading.source(&path, SourceKind::Modes, SourceState::Broken);
            Vec::new()
        }
    }
}

fn read_workspace(loading: &mut Loading<'_>, weaker: &[ModeInput], config: &ConfigFile) -> Vec<ModeInput> {
    let Some(root) = loading.workspace.clone() else { return Vec::new() };
    let file = WorkspaceFile::look(loading.locations, &loading.records, &root, ".roomodes");
    let state = file.state();
    loading.announce(&file, SourceKind::Modes);
    let read = |bytes: &[u8]| roomodes::read_bytes(&file.label, Layer::WorkspaceFile, bytes);
    let mut modes = Vec::new();
    if let Some(trusted) = &file.trusted {
        loading.trusted_files.push(file.path.clone());
        let reading = read(trusted);
        modes = match state {
            FileState::Unchanged => loading.accept(&file.path, SourceKind::Modes, reading),
            FileState::Changed => loading.keep(reading),
            _ => loading.glance(reading),
        };
    }
    if state == FileState::Deleted {
        // Gone with its file, a mode that narrowed a wider one must not give way to that.
        let known = |slug: &str| weaker.iter().chain(&config.modes).any(|mode| mode.slug == slug);
        modes.retain(|mode| known(&mode.slug));
    }
    if let (FileState::Changed | FileState::Untrusted, Some(Ok(present))) = (state, &file.present) {
        let now = loading.glance(read(present));
        loading.narrowings.push(Narrowing::Modes(now));
    }
    modes
}
