//! The clerk of a running server: its socket, and the policy read again after every change, whether it
//! came through the socket or by an editor.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use toolwarden_console::{ControlSocket, SocketError, router, serve_socket};
use toolwarden_control::{Clerk, ClerkParts, Follower, RefusedPolicy, ServerView, Servers};
use toolwarden_gateway::Gateway;
use toolwarden_sources::{Loaded, Locations};

use super::{Readiness, Running};
use crate::environment::{self, SystemClock};
use crate::wire::{self, House};

/// The records the command line writes.
const RECORDS: [&str; 3] = ["lists.json", "trust.json", "settings.json"];
/// How often they are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Reads the policy again, from the files that counted at the start.
pub trait Reload: Fn() -> Result<House> + Send + Sync + 'static {}

impl<F: Fn() -> Result<House> + Send + Sync + 'static> Reload for F {}

impl Running {
    /// Opens the control socket and serves it until told to stop.
    ///
    /// # Errors
    /// The socket cannot be made. Where another server has it, or none can be, this one goes without.
    pub fn open_control(
        &self,
        address: SocketAddr,
        reload: Arc<impl Reload>,
        stop: watch::Receiver<bool>,
    ) -> Result<JoinHandle<()>> {
        let watching = self.watch_files(reload.clone(), stop.clone());
        let socket = match ControlSocket::bind(&self.locations.data_dir) {
            Ok(socket) => socket,
            Err(SocketError::InUse(_)) => {
                tracing::warn!(
                    "another server has the control socket of this data directory: the command line speaks to that \
                     one, and this one reads its policy again when the files change"
                );
                return Ok(watching);
            }
            Err(error @ SocketError::TooLong(_)) => {
                tracing::warn!("there is no control socket: {error}; files are read again when they change");
                return Ok(watching);
            }
            Err(error) => return Err(error.into()),
        };
        let clerk = Arc::new(self.clerk(address));
        tokio::spawn(follow(clerk.changes().follow(), Arc::downgrade(&self.gateway), reload));
        Ok(tokio::spawn(serve_socket(socket, router(clerk), stop)))
    }

    /// Reads the policy again when a file changes that counts, or would if it were there: what a person
    /// takes back by hand must not go on acting.
    pub fn watch_files(&self, reload: Arc<impl Reload>, mut stop: watch::Receiver<bool>) -> JoinHandle<()> {
        let gateway = Arc::downgrade(&self.gateway);
        let data = &self.locations.data_dir;
        let mut records: Vec<PathBuf> = RECORDS.iter().map(|name| data.join(name)).collect();
        records.push(self.locations.user_permissions());
        let mut files = [records.clone(), self.sources.clone()].concat();
        let mut known = fingerprints(&files);
        let mut last_error = None;
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    _ = stop.changed() => return,
                }
                if let Some(gateway) = gateway.upgrade() {
                    gateway.refresh_pins();
                }
                let found = fingerprints(&files);
                if found == known {
                    continue;
                }
                match take_over(&gateway, &reload, Came::ByFile).await {
                    Ok(sources) => {
                        let counting = [records.clone(), sources].concat();
                        // As they were before they were read, so that a change meanwhile is seen. Of files
                        // that count anew that is not known: they are read once more.
                        known = if counting == files { found } else { Vec::new() };
                        (files, last_error) = (counting, None);
                    }
                    // Tried again at every look, also when what is missing lies elsewhere; said once.
                    Err(error) => {
                        let error = format!("{error:#}");
                        if last_error.as_ref() != Some(&error) {
                            tell_refusal(&error);
                        }
                        (known, last_error) = (Vec::new(), Some(error));
                    }
                }
            }
        })
    }

    /// Reads the policy again whenever the process gets SIGHUP, as when a file changes: one that cannot be used leaves the
    /// former in force.
    ///
    /// # Errors
    /// Signals cannot be heard.
    pub fn reload_on_signal(
        &self,
        reload: Arc<impl Reload>,
        readiness: Readiness,
        mut stop: watch::Receiver<bool>,
    ) -> Result<JoinHandle<()>> {
        let gateway = Arc::downgrade(&self.gateway);
        let mut hangups = signal(SignalKind::hangup())?;
        Ok(tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = stop.changed() => return,
                    hangup = hangups.recv() => if hangup.is_none() { return },
                }
                readiness.reloading();
                if let Err(error) = take_over(&gateway, &reload, Came::ByFile).await {
                    tell_refusal(&format!("{error:#}"));
                }
                readiness.ready();
            }
        }))
    }

    fn clerk(&self, address: SocketAddr) -> Clerk {
        let servers = GatewayServers { gateway: Arc::downgrade(&self.gateway), configured: self.configured.clone() };
        Clerk::new(ClerkParts {
            locations: self.locations.clone(),
            clock: Arc::new(SystemClock),
            keyring: Some(self.keyring.clone()),
            journal: Some(self.journal.clone()),
            index: Some(self.index.clone()),
            servers: Some(Arc::new(servers)),
            address: Some(address),
        })
    }
}

/// What of a file changes with its content: replaced files have another number.
fn fingerprints(files: &[PathBuf]) -> Vec<Option<(u64, u64, i64, i64)>> {
    let of = |path: &PathBuf| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    };
    files.iter().map(of).collect()
}

/// Takes every change over, until the clerk is gone.
async fn follow(mut changes: Follower, gateway: Weak<Gateway>, reload: Arc<impl Reload>) {
    while let Some(change) = changes.next().await {
        let taken = take_over(&gateway, &reload, Came::ByClerk).await.map_err(|error| format!("{error:#}"));
        if let Err(error) = &taken {
            tell_refusal(error);
        }
        changes.took(change, taken.err());
    }
}

/// How a change came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    /// A file is another: who changed it, nobody knows.
    ByFile,
    /// A person asked the clerk, who has it on record.
    ByClerk,
}

/// Reads the policy again and puts it in force; gives the files it was looked for in. One that cannot be
/// used changes nothing.
async fn take_over(gateway: &Weak<Gateway>, reload: &Arc<impl Reload>, came: Came) -> Result<Vec<PathBuf>> {
    // One at a time: what was read first must not be put in force last.
    static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = TURN.lock().await;
    let reload = reload.clone();
    let read = tokio::task::spawn_blocking(move || reload()).await.map_err(|error| anyhow!(error)).flatten();
    let gateway = gateway.upgrade().context("the server is stopping")?;
    let taken = read.and_then(|house| {
        let sources = watched(&house.loaded, &house.locations);
        tell_of_servers(&gateway, &house);
        let servers = house.loaded.input.servers;
        let wider = gateway.replace_policy(&house.policy, servers);
        let wider = wider.map_err(|refused| wire::policy_refused(&refused))?;
        if came == Came::ByFile {
            gateway.tell_widening(&wider);
        }
        gateway.refresh_pins();
        Ok(sources)
    });
    let reloads = &gateway.telemetry().reloads;
    match &taken {
        Ok(_) => {
            reloads.accepted(environment::now());
            tracing::info!("the policy was read again and is in force");
        }
        Err(error) => reloads.refuse(environment::now(), &format!("{error:#}")),
    }
    taken
}

fn tell_refusal(error: &str) {
    tracing::error!("the policy cannot be used, the former one stays in force: {error}");
}

/// The files a policy is made of, and places where others would count: the admin's record, a config up
/// the tree, and the directories of rules, whose time changes when a file appears.
pub(super) fn watched(loaded: &Loaded, locations: &Locations) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = loaded.sources.iter().map(|source| source.path.clone()).collect();
    places.extend(loaded.config_path.clone());
    places.extend(locations.system_admin_file.clone());
    places.extend(locations.working_directory.ancestors().map(|above| above.join("toolwarden.toml")));
    if let Some(base) = loaded.config_path.as_deref().and_then(Path::parent) {
        let patterns = loaded.config.rules.files.iter().map(|pattern| locations.resolve(base, &pattern.value));
        places.extend(patterns.filter_map(|pattern| pattern.parent().map(Path::to_path_buf)));
    }
    places
}

/// Servers are reached as they were configured at the start.
fn tell_of_servers(gateway: &Gateway, house: &House) {
    let running: BTreeSet<String> = gateway.server_statuses().into_iter().map(|status| status.name).collect();
    let written: BTreeSet<String> = house.loaded.definitions.iter().map(|one| one.input.name.clone()).collect();
    if running != written {
        let names: Vec<&str> = running.symmetric_difference(&written).map(String::as_str).collect();
        tracing::warn!(servers = names.join(", "), "servers were added or removed: that needs a restart");
    }
}

/// The gateway's servers, in the clerk's words.
#[derive(Debug)]
struct GatewayServers {
    gateway: Weak<Gateway>,
    configured: Vec<ServerView>,
}

impl Servers for GatewayServers {
    fn list(&self) -> Vec<ServerView> {
        let Some(gateway) = self.gateway.upgrade() else { return Vec::new() };
        let view = |status: toolwarden_gateway::ServerStatus| {
            let mut view = self.configured.iter().find(|server| server.name == status.name)?.clone();
            view.tools = gateway.listed_tools(&status.name).len();
            view.status = status.state.as_str().to_owned();
            view.detail = status.detail;
            Some(view)
        };
        gateway.server_statuses().into_iter().filter_map(view).collect()
    }

    fn tools(&self, server: &str) -> Vec<(String, Option<String>)> {
        let gateway = self.gateway.upgrade();
        let listed = gateway.map(|gateway| gateway.listed_tools(server)).unwrap_or_default();
        listed.into_iter().map(|tool| (tool.name, tool.description)).collect()
    }

    fn refused_policy(&self) -> Option<RefusedPolicy> {
        let refused = self.gateway.upgrade()?.telemetry().reloads.refusal()?;
        Some(RefusedPolicy { since: refused.since.to_string(), error: refused.error })
    }
}
