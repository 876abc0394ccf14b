//! Whether the port is free or ours, and whether the disk has room for the record.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use toolwarden_control::operations::status::Outcome as StatusOutcome;
use toolwarden_control::operations::{Nothing, ServersList, Status};
use toolwarden_core::name::shown;
use toolwarden_sources::{ConfigFile, Loaded, Locations};

use super::Check;
use crate::clerk::Desk;
use crate::serving;

const MEBIBYTE: u64 = 1024 * 1024;
const LITTLE: u64 = 1024 * MEBIBYTE;
/// A call whose record cannot be written does not run.
const TOO_LITTLE: u64 = 100 * MEBIBYTE;

/// Whether the running server judges by what the files say.
pub(super) fn policy_in_force(desk: &Desk, locations: &Locations) -> Option<Check> {
    // A server that does not answer is the port's matter.
    let status = desk.ask_server::<Status>(&Nothing {}).ok().flatten()?;
    let Some(refused) = status.refused_policy else {
        if let Some(message) = other_place(&status, locations) {
            let next = "run `toolwarden doctor` from there, with the same --config and --workspace";
            return Some(Check::warning("in force", message, next));
        }
        let waiting: Vec<_> = status.waits_for_restart.iter().map(|what| shown(what)).collect();
        let refused = refused_tools(desk);
        if !refused.is_empty() {
            let message = format!(
                "the running server refuses all tools of {}: a rule of these files does not fit them",
                refused.join(", ")
            );
            return Some(Check::problem("in force", message, "run `toolwarden rules check`, and correct that rule"));
        }
        if waiting.is_empty() {
            return Some(Check::ok("in force", "the running server judges by the policy of these files"));
        }
        let message = format!("the running server acts otherwise than these files say: {} changed", waiting.join(", "));
        return Some(Check::warning("in force", message, "restart the server"));
    };
    let lines: Vec<_> = refused.error.lines().map(shown).collect();
    let message =
        format!("the running server keeps its former policy since {}: {}", shown(&refused.since), lines.join("\n  "));
    Some(Check::problem(
        "in force",
        message,
        "correct that file, or agree where it says how: files are read again within a second",
    ))
}

/// Servers of the running gateway whose tools a rule does not fit.
fn refused_tools(desk: &Desk) -> Vec<String> {
    let found = desk.ask_server::<ServersList>(&Nothing {}).ok().flatten();
    let servers = found.into_iter().flat_map(|found| found.servers);
    servers.filter(|server| server.tools_refused.is_some()).map(|server| shown(&server.name).into_owned()).collect()
}

/// Why this examination is not about the files the running server judges by.
fn other_place(status: &StatusOutcome, locations: &Locations) -> Option<String> {
    let named = |path: &Option<PathBuf>| {
        path.as_ref().map_or_else(|| "none".to_owned(), |path| shown(&path.to_string_lossy()).into_owned())
    };
    let (config, workspace) = (locations.config_file(), locations.workspace_root());
    let mut differences = Vec::new();
    if status.config != config {
        differences.push(format!("its config is {}, here it is {}", named(&status.config), named(&config)));
    }
    // Without a workspace it judges by no files of one, whatever the working directory here.
    if status.workspace.is_some() && status.workspace != workspace {
        differences.push(format!("its workspace is {}, here it is {}", named(&status.workspace), named(&workspace)));
    }
    let differences = differences.join("; ");
    (!differences.is_empty()).then(|| format!("the running server judges by other files: {differences}"))
}

pub(super) fn port(desk: &Desk, loaded: Option<&Loaded>, listen: Option<SocketAddr>) -> Check {
    let defaults = ConfigFile::default();
    let config = loaded.map_or(&defaults, |loaded| &loaded.config);
    let address = match serving::listen_address(config, listen) {
        Ok(address) => address,
        Err(error) => return Check::problem("port", format!("{error:#}"), "correct [gateway] listen"),
    };
    let server = match desk.ask_server::<Status>(&Nothing {}) {
        Ok(server) => server,
        Err(error) => return Check::problem("port", format!("{error:#}"), "restart the server"),
    };
    if let Some(status) = server {
        let place = status.address.map(|address| address.to_string()).unwrap_or_default();
        let own = env!("CARGO_PKG_VERSION");
        if status.version != own {
            let message = format!("a server of version {} serves {place}, and this is {own}", status.version);
            return Check::warning("port", message, "restart the server");
        }
        return Check::ok("port", format!("a server runs and serves {place} (process {})", status.process));
    }
    match TcpListener::bind(address) {
        Ok(_) => Check::ok("port", format!("{address} is free; no server runs")),
        Err(error) => {
            let next = "stop the other program, or choose another port with `[gateway] listen` or --listen";
            Check::problem("port", format!("{address} is not free, and it is not ours: {error}"), next)
        }
    }
}

pub(super) fn disk(locations: &Locations) -> Check {
    // The directory may not exist yet; then its nearest parent is on the same disk.
    let place = locations.data_dir.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let label = shown(&place.to_string_lossy()).into_owned();
    let free = match rustix::fs::statvfs(place) {
        Ok(found) => found.f_bavail.saturating_mul(found.f_frsize),
        Err(error) => {
            return Check::warning("disk", format!("{label}: free space is unknown: {error}"), "look yourself");
        }
    };
    let message = format!("{} MiB free at {label}", free / MEBIBYTE);
    let next = "make room: calls are refused when their record cannot be written";
    match free {
        0..TOO_LITTLE => Check::problem("disk", message, next),
        TOO_LITTLE..LITTLE => Check::warning("disk", message, next),
        _ => Check::ok("disk", message),
    }
}
