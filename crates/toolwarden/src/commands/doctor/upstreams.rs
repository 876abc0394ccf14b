//! Whether each server could be reached: its command is there, or its address takes connections.

use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolwarden_control::ServerView;
use toolwarden_control::operations::{Nothing, ServersList};
use toolwarden_core::name::shown;
use toolwarden_pins as pins;
use toolwarden_policy::input::Launch;
use toolwarden_sources::{Loaded, Locations, ServerDefinition};

use super::Check;
use crate::clerk::Desk;
use crate::commands::lint;
use crate::{environment, serving};

/// How long a server may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn check(loaded: &Loaded, locations: &Locations, desk: &Desk) -> Vec<Check> {
    if loaded.definitions.is_empty() {
        let running = desk.ask_server::<ServersList>(&Nothing {}).ok().flatten();
        let names: Vec<String> =
            running.iter().flat_map(|found| &found.servers).map(|server| shown(&server.name).into_owned()).collect();
        if !names.is_empty() {
            let message = format!("none is configured; the running server has {}", names.join(", "));
            return vec![Check::ok("servers", message)];
        }
        let next = "add [servers.NAME] to toolwarden.toml, or try `toolwarden serve --demo`";
        return vec![Check::warning("servers", "no server is configured", next)];
    }
    let mut checks: Vec<Check> = {
        let listed = &loaded.config.vault.workspace_env;
        loaded.definitions.iter().map(|definition| one(definition, locations, listed)).collect()
    };
    checks.extend(loaded.definitions.iter().filter_map(|definition| waiting(&definition.input.name, locations)));
    checks.extend(lint::seen_schemas(locations, &loaded.input).into_iter().map(|finding| {
        let next = finding.suggestion.unwrap_or_default();
        Check::warning("tool schemas", format!("{} [{}]", finding.message, finding.code), next)
    }));
    checks
}

/// Servers that a running gateway cannot use, and why.
pub(super) fn running(desk: &Desk) -> Vec<Check> {
    let found = desk.ask_server::<ServersList>(&Nothing {}).ok().flatten();
    let is_failing = |server: &ServerView| server.status == "error" || server.tools_refused.is_some();
    let failing = found.into_iter().flat_map(|found| found.servers).filter(is_failing);
    let check = |server: ServerView| {
        let detail = server.detail.unwrap_or_else(|| "it cannot be reached".to_owned());
        let name = format!("server {} now", shown(&server.name));
        if server.tools_refused.is_some() {
            let next =
                "correct that rule, and look with `toolwarden rules check`: files are read again within a second";
            return Check::problem(&name, shown(&detail).into_owned(), next);
        }
        let next = format!("see its own log; `toolwarden servers reload {}` tries again", shown(&server.name));
        Check::problem(&name, shown(&detail).into_owned(), next)
    };
    failing.map(check).collect()
}

/// Definitions that changed and wait for a person (GATE-12).
fn waiting(server: &str, locations: &Locations) -> Option<Check> {
    let name = format!("definitions of {}", shown(server));
    match pins::read(locations, server).map(|pins| pins.waiting()) {
        Ok(0) => None,
        Ok(waiting) => {
            let message = format!("{waiting} changed or new, not shown to clients; calls of them are held");
            Some(Check::warning(&name, message, format!("look at them with `toolwarden tools diff {}`", shown(server))))
        }
        Err(error) => Some(Check::problem(&name, error.to_string(), "see what the message says of the file")),
    }
}

fn one(definition: &ServerDefinition, locations: &Locations, workspace_env: &[String]) -> Check {
    let name = format!("server {}", shown(&definition.input.name));
    let source = definition.input.origin.to_string();
    if definition.faulty {
        return Check::problem(
            &name,
            format!("its definition in {source} has faults, so it is off"),
            "run `toolwarden lint`",
        );
    }
    if !definition.input.enabled {
        return Check::ok(&name, "is disabled");
    }
    if let Some(missing) = serving::with_environment(definition.clone(), workspace_env).unresolved {
        let message = format!("`{}` in {source} has no value here", shown(&missing));
        return Check::problem(&name, message, "set it where the gateway is started");
    }
    match &definition.input.launch {
        Launch::Command { command, .. } => {
            let directory = definition.connection.working_directory.as_ref().map(PathBuf::from);
            let base = directory.unwrap_or_else(|| locations.working_directory.clone());
            match find(command, &base) {
                Some(path) => Check::ok(&name, format!("its command is {}", shown(&path.to_string_lossy()))),
                None => Check::problem(
                    &name,
                    format!("its command `{}` is not found on PATH, or not executable", shown(command)),
                    format!("install it, or correct `command` in {source}"),
                ),
            }
        }
        Launch::Url(text) => address(&name, text, &source),
        Launch::Nothing => Check::ok(&name, "is not launched by the gateway"),
    }
}

/// The file a command means.
fn find(command: &str, base: &Path) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if command.contains('/') {
        return Some(base.join(command)).filter(is_program);
    }
    let path = environment::text("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(command)).find(is_program)
}

/// Only host and port are shown: the rest of a URL may hold a secret.
fn address(name: &str, text: &str, source: &str) -> Check {
    let unusable = || Check::warning(name, "its URL cannot be checked as it is written", format!("look at {source}"));
    let Ok(url) = url::Url::parse(text) else { return unusable() };
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return unusable() };
    let bare = host.trim_matches(['[', ']']);
    let shown_address = format!("{host}:{port}");
    let next = format!("start that server, or correct `url` in {source}");
    let addresses: Vec<_> = match (bare, port).to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => return Check::problem(name, format!("{shown_address} cannot be resolved: {error}"), next),
    };
    let mut refused = "it has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(_) => return Check::ok(name, format!("{shown_address} takes connections")),
            Err(error) => refused = error.to_string(),
        }
    }
    Check::problem(name, format!("{shown_address} cannot be reached: {refused}"), next)
}
