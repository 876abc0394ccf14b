//! Servers of the config and of the workspace's client files (MODE-7).
//!
//! One name with one launch is one server, deny sides united. Differing definitions all stay, and
//! the judge turns that name off until a person chooses.

use std::path::Path;

use toolwarden_core::name::registration_key;
use toolwarden_policy::input::Launch;

use super::Loading;
use super::choose::Chosen;
use super::deny::Narrowing;
use crate::files;
use crate::readers::server::ServerDefinition;
use crate::readers::{SourceKind, mcp_json};
use crate::trust::{FileState, WORKSPACE_FILES, WorkspaceFile};

pub(super) fn read(loading: &mut Loading<'_>, chosen: &Chosen) -> Vec<ServerDefinition> {
    let mut known = Vec::new();
    for definition in &chosen.config.servers {
        join(&mut known, definition.clone());
    }
    let Some(root) = loading.workspace.clone() else { return known };
    for (relative, kind) in WORKSPACE_FILES {
        if kind == SourceKind::Servers {
            let file = WorkspaceFile::look(loading.locations, &loading.records, &root, relative);
            read_file(loading, chosen, &file, &mut known);
        }
    }
    known
}

fn read_file(loading: &mut Loading<'_>, chosen: &Chosen, file: &WorkspaceFile, known: &mut Vec<ServerDefinition>) {
    let state = file.state();
    loading.announce(file, SourceKind::Servers);
    if let Some(trusted) = &file.trusted {
        loading.trusted_files.push(file.path.clone());
        let reading = mcp_json::read_bytes(&file.label, trusted);
        let mut servers = match state {
            FileState::Unchanged => loading.accept(&file.path, SourceKind::Servers, reading),
            FileState::Changed => loading.keep(reading),
            _ => loading.glance(reading),
        };
        if state == FileState::Deleted {
            loading.narrowings.push(Narrowing::Servers(servers));
            return;
        }
        if opted_in(loading, chosen, &file.path) {
            servers.iter_mut().for_each(|server| server.input.always_allow.clone_from(&server.offered_always_allow));
        }
        for server in servers {
            join(known, server);
        }
    }
    if let (FileState::Changed | FileState::Untrusted, Some(Ok(present))) = (state, &file.present) {
        let now = loading.glance(mcp_json::read_bytes(&file.label, present));
        loading.narrowings.push(Narrowing::Servers(now));
    }
}

/// Adds a definition, or unites it with the same one already known.
fn join(known: &mut Vec<ServerDefinition>, mut new: ServerDefinition) {
    if new.faulty {
        new.input.enabled = false;
        new.input.launch = Launch::Nothing;
    }
    let key = registration_key(&new.input.name);
    let same = |known: &ServerDefinition| {
        registration_key(&known.input.name) == key
            && known.input.name == new.input.name
            && known.input.launch == new.input.launch
    };
    match known.iter_mut().find(|known| same(known)) {
        None => known.push(new),
        Some(target) => {
            let target = &mut target.input;
            target.enabled &= new.input.enabled;
            target.default_enabled &= new.input.default_enabled;
            target.disabled_tools.append(&mut new.input.disabled_tools);
            target.always_allow.append(&mut new.input.always_allow);
        }
    }
}

/// Whether the person named this file in `allow_always_allow` of their own config.
fn opted_in(loading: &Loading<'_>, chosen: &Chosen, path: &Path) -> bool {
    let real = files::real(path);
    let person = &chosen.person;
    let named = |written: &str| files::real(&loading.locations.resolve(&person.directory, written));
    person.always_allow_files.iter().any(|file| named(&file.value) == real)
}
