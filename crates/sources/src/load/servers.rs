//! Servers of the config and of the workspace's client files (MODE-7).
//!
//! One name with one launch is one server, deny sides united. Differing definitions all stay, and
//! the judge turns that name off until a person chooses.

use std::path::Path;

use toolwarden_core::name::{self, registration_key};
use toolwarden_policy::input::Launch;

use super::choose::Chosen;
use super::deny::Narrowing;
use super::{Loading, SourceState};
use crate::env_file;
use crate::files;
use crate::finding::{Finding, Severity};
use crate::readers::server::ServerDefinition;
use crate::readers::{SourceKind, mcp_json};
use crate::tree::Place;
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
        for mut server in servers {
            fill_from_env_file(loading, &mut server);
            join(known, server);
        }
    }
    if let (FileState::Changed | FileState::Untrusted, Some(Ok(present))) = (state, &file.present) {
        let now = loading.glance(mcp_json::read_bytes(&file.label, present));
        loading.narrowings.push(Narrowing::Servers(now));
    }
}

/// Gives a server the variables of its `envFile`; those of `env` come first. One that cannot be read turns the server off.
fn fill_from_env_file(loading: &mut Loading<'_>, server: &mut ServerDefinition) {
    let (Some(written), Some(root)) = (server.connection.env_file.clone(), loading.workspace.clone()) else { return };
    let place = env_file::place(&root, &written);
    let read = place.as_ref().map_err(Clone::clone).and_then(|path| env_file::read(path));
    if let Ok(path) = &place {
        let state = if read.is_ok() { SourceState::Used } else { SourceState::Broken };
        loading.source(path, SourceKind::Servers, state);
    }
    match read {
        Ok(variables) => {
            for (name, value) in variables {
                server.connection.env.entry(name).or_insert(value);
            }
        }
        Err(why) => {
            let (origin, shown) = (&server.input.origin, name::shown(&server.input.name));
            let place = Place { line: origin.line, column: origin.column };
            let message =
                format!("the server `{shown}` is off: its envFile `{}` is not read: {why}", name::shown(&written));
            let finding = Finding::at(Severity::Error, "env_file", origin.source.clone(), place, message);
            loading.findings.push(finding.with_help("repair the file, or remove `envFile`"));
            server.faulty = true;
        }
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
