//! Puts a policy in force that was read again: one at a time, told where a file made it wider, and not before a
//! person agreed where the config asks for that (SELF-2).

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use anyhow::{Context, Result, anyhow};
use tokio::sync::Mutex;
use toolwarden_core::Digest;
use toolwarden_gateway::Gateway;
use toolwarden_sources::{Loaded, Locations, stored};

use super::control::Reload;
use crate::environment;
use crate::wire::{self, House};

/// How a change came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// A file is another: who changed it, nobody knows.
    ByFile,
    /// A person asked the clerk, who has it on record.
    ByClerk,
}

/// Takes policies over.
pub struct Taking<R> {
    gateway: Weak<Gateway>,
    reload: Arc<R>,
    in_force: Mutex<InForce>,
}

/// What the policy in force was made of.
struct InForce {
    /// Without those the clerk writes: its records and the person's own permissions. Somebody else's edit of
    /// these goes with the clerk's where it comes within the same look, half a second.
    files: Vec<PathBuf>,
    looks: Vec<Look>,
    /// `[control] confirm_file_widening`.
    asks: bool,
    /// Something wider was read since, and waits: it must not come in with what the clerk is asked for.
    another_waits: bool,
}

impl<R: Reload> Taking<R> {
    /// `files` are those of the policy that is in force already.
    pub fn new(gateway: &Arc<Gateway>, reload: R, files: &[PathBuf], locations: &Locations, asks: bool) -> Self {
        let files = not_the_clerks(files, locations);
        let in_force = InForce { looks: looks(&files), files, asks, another_waits: false };
        Self { gateway: Arc::downgrade(gateway), reload: Arc::new(reload), in_force: Mutex::new(in_force) }
    }

    pub fn gateway(&self) -> Option<Arc<Gateway>> {
        self.gateway.upgrade()
    }

    /// Reads the policy again and puts it in force; gives the files it was looked for in. One that cannot be
    /// used, or has to wait, changes nothing.
    pub async fn take_over(&self, came: Came) -> Result<Vec<PathBuf>> {
        // Held to the end: what was read first must not be put in force last.
        let mut in_force = self.in_force.lock().await;
        let before = looks(&in_force.files);
        // Beside what the clerk was asked for, a file may have changed.
        let came = if before == in_force.looks && !in_force.another_waits { came } else { Came::ByFile };
        let reload = self.reload.clone();
        let read = tokio::task::spawn_blocking(move || reload()).await.map_err(|error| anyhow!(error)).flatten();
        let gateway = self.gateway.upgrade().context("the server is stopping")?;
        let taken = read.and_then(|house| {
            let files = watched(&house.loaded, &house.locations);
            tell_of_servers(&gateway, &house);
            let asks = house.loaded.config.control.confirm_file_widening == Some(true);
            if came == Came::ByFile && in_force.asks {
                agreed(&gateway, &house, asks).inspect_err(|_| in_force.another_waits = true)?;
            }
            let wider = gateway.replace_policy(&house.policy, house.loaded.input.servers);
            let wider = wider.map_err(|refused| wire::policy_refused(&refused))?;
            if came == Came::ByFile {
                gateway.tell_widening(&wider);
            }
            gateway.refresh_pins();
            let others = not_the_clerks(&files, &house.locations);
            let looks = if others == in_force.files { before } else { looks(&others) };
            *in_force = InForce { files: others, looks, asks, another_waits: false };
            Ok(files)
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
}

fn not_the_clerks(files: &[PathBuf], locations: &Locations) -> Vec<PathBuf> {
    let own = locations.user_permissions();
    files.iter().filter(|file| **file != own && !file.starts_with(&locations.data_dir)).cloned().collect()
}

/// Whether nothing becomes wider, or a person agreed to exactly this policy.
fn agreed(gateway: &Gateway, house: &House, asks: bool) -> Result<()> {
    let input = &house.loaded.input;
    let wider = gateway.would_widen(&house.policy, input.servers.clone());
    let wider = wider.map_err(|refused| wire::policy_refused(&refused))?;
    let mut words: Vec<String> = wider.iter().map(ToString::to_string).collect();
    if !asks {
        words.push("files may make the policy wider without anybody's consent".to_owned());
    }
    let mark: String =
        Digest::of_bytes(format!("{asks} {input:?}").as_bytes()).to_string().chars().take(stored::MARK).collect();
    if words.is_empty() || stored::is_confirmed(&house.locations, &mark)? {
        return Ok(());
    }
    let words = toolwarden_core::name::shown(&words.join("; ")).into_owned();
    Err(anyhow!(
        "files make it wider, which waits for a person: {words}; agree with `toolwarden policy confirm {mark}`"
    ))
}

/// What of a file changes with its content: replaced files have another number.
pub type Look = Option<(u64, u64, i64, i64)>;

pub fn looks(files: &[PathBuf]) -> Vec<Look> {
    let of = |path: &PathBuf| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    };
    files.iter().map(of).collect()
}

/// The files a policy is made of, and places where others would count: the admin's record, a config up
/// the tree, and the directories of rules, whose time changes when a file appears.
pub fn watched(loaded: &Loaded, locations: &Locations) -> Vec<PathBuf> {
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
