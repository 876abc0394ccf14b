//! Puts a policy in force that was read again: one at a time, told where a file made it wider, and not before a
//! person agreed where the config asks for that (SELF-2).

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use anyhow::{Context, Result, anyhow};
use tokio::sync::Mutex;
use toolwarden_core::name::shown;
use toolwarden_core::{Digest, Secret};
use toolwarden_gateway::{Book, Gateway, NotTaken, Reading};
use toolwarden_policy::Finding;
use toolwarden_policy::input::LimitsInput;
use toolwarden_sources::{Loaded, Locations, ScreeningRules, stored};
use toolwarden_store::State;
use toolwarden_store::state::{Author, Feed};

use super::control::Reload;
use super::file_versions::{self, Contents, contents};
use super::with_environment;
use crate::environment;
use crate::wire::{self, House};

/// How a change came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// A file is another: who changed it, nobody knows.
    ByFile,
    /// Somebody told the process to read again, whatever changed.
    OnSignal,
    /// A person asked the clerk, who has it on record; none = of another process.
    ByClerk(Option<Author>),
}

/// What a gateway was started with.
pub struct Start {
    /// The files the policy came from.
    pub files: Vec<PathBuf>,
    /// As they looked when they had just been read.
    pub looks: Vec<Look>,
    asks: bool,
    findings: Vec<String>,
    fixed: Fixed,
    /// Of what the store held.
    version: u64,
    contents: Contents,
}

impl Start {
    pub fn of(loaded: &Loaded, locations: &Locations) -> Self {
        let files = watched(loaded, locations);
        Self {
            looks: looks(&files),
            contents: contents(&versioned(&files, locations)),
            files,
            asks: asks(loaded),
            findings: findings(loaded),
            fixed: fixed(loaded),
            version: loaded.input.version,
        }
    }
}

/// `[control] confirm_file_widening`.
fn asks(loaded: &Loaded) -> bool {
    loaded.config.control.confirm_file_widening == Some(true)
}

/// What is to be said of a policy, in one line each.
fn findings(loaded: &Loaded) -> Vec<String> {
    let line = |finding: &Finding| {
        let help = finding.suggestion.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        shown(&format!("{}: {}: {}{help}", finding.severity.as_str(), finding.origin, finding.message)).into_owned()
    };
    wire::findings(loaded).iter().map(line).collect()
}

/// Takes policies over.
pub struct Taking<R> {
    gateway: Weak<Gateway>,
    feed: Arc<Feed>,
    state: State,
    reload: Arc<R>,
    in_force: Mutex<InForce>,
    at_start: Fixed,
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
    /// What was said of it: only what is new is said again.
    findings: Vec<String>,
    /// Of what the store holds.
    version: u64,
    /// What all files held.
    contents: Contents,
}

impl<R: Reload> Taking<R> {
    pub fn new(
        gateway: &Arc<Gateway>,
        (feed, state): (Arc<Feed>, State),
        reload: R,
        locations: &Locations,
        start: &Start,
    ) -> Self {
        let files = start.files.iter().cloned().zip(start.looks.iter().copied());
        let (files, looks) = files.filter(|(file, _)| !is_the_clerks(file, locations)).unzip();
        let in_force = InForce {
            looks,
            files,
            asks: start.asks,
            another_waits: false,
            findings: start.findings.clone(),
            version: start.version,
            contents: start.contents.clone(),
        };
        Self {
            gateway: Arc::downgrade(gateway),
            feed,
            state,
            reload: Arc::new(reload),
            in_force: Mutex::new(in_force),
            at_start: start.fixed.clone(),
        }
    }

    /// The store's version as it is known here.
    pub fn store_version(&self) -> u64 {
        self.feed.known().records.version
    }

    /// The same, with what other processes wrote until now. Where the store cannot be read, what is known counts for as
    /// long as `max_stale` says.
    pub async fn caught_up(&self) -> u64 {
        if let Err(error) = self.feed.catch_up().await {
            tracing::debug!("changes in the store are not seen: {error}");
        }
        self.store_version()
    }

    /// Takes over a version of the store, unless that is done already.
    pub async fn follow(&self, version: u64) -> Result<()> {
        if self.in_force.lock().await.version >= version {
            return Ok(());
        }
        self.take_over(Came::ByClerk(None)).await.map(drop)
    }

    /// Reads the policy again and puts it in force; gives the files it was looked for in. One that cannot be
    /// used, or has to wait, changes nothing.
    pub async fn take_over(&self, came: Came) -> Result<Vec<PathBuf>> {
        // Held to the end: what was read first must not be put in force last.
        let mut in_force = self.in_force.lock().await;
        let before = looks(&in_force.files);
        let (is_asked, former) = (came == Came::OnSignal, (in_force.version, in_force.contents.clone()));
        // Beside what the clerk was asked for, a file may have changed.
        let came = if before == in_force.looks && !in_force.another_waits { came } else { Came::ByFile };
        let (reload, store) = (self.reload.clone(), self.feed.known().records.clone());
        let version = store.version;
        let read = tokio::task::spawn_blocking(move || reload(&store)).await.map_err(|error| anyhow!(error)).flatten();
        let gateway = self.gateway.upgrade().context("the server is stopping")?;
        let taken = match read {
            Ok(house) => self.put_in_force(&gateway, house, (came, before), &mut in_force, version).await,
            Err(error) => Err(error),
        };
        let reloads = &gateway.telemetry().reloads;
        match &taken {
            Ok(_) => {
                reloads.accepted(environment::now());
                // Whoever changes something is followed in two ways, of which the second finds it done.
                if !is_asked && former == (in_force.version, in_force.contents.clone()) {
                    tracing::debug!("the policy was read again, and is as it was");
                } else {
                    tracing::info!("the policy was read again and is in force");
                }
            }
            Err(error) => reloads.refuse(environment::now(), &format!("{error:#}")),
        }
        taken
    }

    /// Puts what was read in force, at a version of the store; a change of files becomes the next one.
    async fn put_in_force(
        &self,
        gateway: &Arc<Gateway>,
        house: House,
        (came, before): (Came, Vec<Look>),
        in_force: &mut InForce,
        version: u64,
    ) -> Result<Vec<PathBuf>> {
        let files = watched(&house.loaded, &house.locations);
        let waiting = waits_for_restart(&self.at_start, &fixed(&house.loaded));
        let asks = asks(&house.loaded);
        let listed = &house.loaded.config.vault.workspace_env;
        let definitions: Vec<_> =
            house.loaded.definitions.iter().cloned().map(|one| with_environment(one, listed)).collect();
        let (servers, written) = (&house.loaded.input.servers, &house.loaded.definitions);
        let reading = Reading { policy: &house.policy, servers, written, definitions: &definitions };
        let wider = wider(gateway, reading)?;
        let is_by_file = matches!(came, Came::ByFile | Came::OnSignal);
        if is_by_file && in_force.asks {
            agreed(gateway, &house, asks, wider.clone()).inspect_err(|_| in_force.another_waits = true)?;
        }
        let held = contents(&versioned(&files, &house.locations));
        let version = self.stored_version(came, &in_force.contents, &held, &wider, version).await?;
        let policy = house.policy.with_servers(version, servers).map_err(|refused| wire::policy_refused(&refused))?;
        gateway.replace_policy(Reading { policy: &policy, ..reading }).map_err(|why| match why {
            NotTaken::Policy(refused) => wire::policy_refused(&refused).into(),
            NotTaken::Pins(error) => anyhow!(error),
        })?;
        if is_by_file {
            gateway.tell_widening(&wider);
        }
        gateway.telemetry().reloads.waits_for_restart(waiting);
        gateway.refresh_pins();
        let others = files.iter().filter(|file| !is_the_clerks(file, &house.locations));
        let others: Vec<PathBuf> = others.cloned().collect();
        let looks = if others == in_force.files { before } else { looks(&others) };
        let findings = findings(&house.loaded);
        for finding in findings.iter().filter(|finding| !in_force.findings.contains(finding)) {
            tracing::warn!("{finding}");
        }
        *in_force = InForce { files: others, looks, asks, another_waits: false, findings, version, contents: held };
        Ok(files)
    }

    /// The version a policy is in force at. A change of files is stored first, also one that a person asked the clerk for;
    /// where that cannot be, what it would newly allow is not in force, and what it takes away is, at the version there was.
    async fn stored_version(
        &self,
        came: Came,
        before: &Contents,
        after: &Contents,
        wider: &[String],
        version: u64,
    ) -> Result<u64> {
        let by = match came {
            Came::ByFile | Came::OnSignal => None,
            Came::ByClerk(author) => author,
        };
        match file_versions::store(&self.state, (before, after), wider, by).await {
            // Nobody else changed anything in between, or what they changed is read with the next version.
            Ok(Some(committed)) if committed.has_changed && committed.version == version + 1 => {
                // Whoever asks next sees it; if not now, soon.
                drop(self.feed.catch_up().await);
                Ok(committed.version)
            }
            Ok(_) => Ok(version),
            Err(error) if wider.is_empty() => {
                tracing::error!("a change of files cannot be stored as a version: {error:#}");
                Ok(version)
            }
            Err(error) => {
                Err(error.context("a change of files makes the policy wider, and cannot be stored as a version"))
            }
        }
    }
}

/// The files whose changes are versions. What is in the data directory is Toolwarden's own, but what a person trusts there
/// decides which files of workspaces count.
fn versioned(files: &[PathBuf], locations: &Locations) -> Vec<PathBuf> {
    let others = files.iter().filter(|file| !file.starts_with(&locations.data_dir)).cloned();
    others.chain([locations.trust_record()]).collect()
}

/// Whether the clerk writes a file, too.
fn is_the_clerks(file: &Path, locations: &Locations) -> bool {
    file == locations.user_permissions() || file.starts_with(&locations.data_dir)
}

/// What a policy newly allows, which servers are given something else, and of which more is shown.
fn wider(gateway: &Gateway, reading: Reading<'_>) -> Result<Vec<String>> {
    let wider = gateway.would_widen(reading).map_err(|refused| wire::policy_refused(&refused))?;
    let mut words: Vec<String> = wider.iter().map(ToString::to_string).collect();
    let otherwise = gateway.reached_otherwise(reading);
    words.extend(otherwise.iter().map(|server| format!("the server `{server}` is given something else at its start")));
    let shown = gateway.screens.shown_more(reading.written);
    words.extend(shown.iter().map(|server| format!("of what `{server}` returns, screening lets more through")));
    let followed = gateway.pins.newly_followed(reading.written);
    words.extend(followed.iter().map(|server| format!("changed definitions of `{server}` need nobody's consent")));
    Ok(words)
}

/// Whether nothing becomes wider, or a person agreed to exactly this policy.
fn agreed(gateway: &Gateway, house: &House, asks: bool, mut wider: Vec<String>) -> Result<()> {
    if !asks {
        wider.push("files may make the policy wider without anybody's consent".to_owned());
    }
    let started = Book::launches(&house.loaded.definitions, &*gateway.keyring);
    let followed: Vec<bool> = house.loaded.definitions.iter().map(|one| one.follows_changes).collect();
    let (input, screening) = (&house.loaded.input, screening(&house.loaded));
    let content = format!("{asks} {input:?} {screening:?} {started:?} {followed:?}");
    let mark: String = Digest::of_bytes(content.as_bytes()).to_string().chars().take(stored::MARK).collect();
    if wider.is_empty() || stored::is_confirmed(&house.locations, &mark, environment::now())? {
        return Ok(());
    }
    let words = shown(&wider.join("; ")).into_owned();
    Err(anyhow!(
        "files make it wider, which waits for a person: {words}; agree with `toolwarden policy confirm {mark}`"
    ))
}

fn screening(loaded: &Loaded) -> Vec<&ScreeningRules> {
    loaded.definitions.iter().map(|definition| &definition.screening).collect()
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
fn watched(loaded: &Loaded, locations: &Locations) -> Vec<PathBuf> {
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

/// What counts from the start to the end of the process, by what it is called.
type Fixed = BTreeMap<String, String>;

/// Secrets do not show, so their marks stand in their place.
fn fixed(loaded: &Loaded) -> Fixed {
    let config = &loaded.config;
    let mut gateway = config.gateway.clone();
    gateway.limits = LimitsInput::default();
    let control = &config.control;
    let mark = |secret: &Secret| Digest::of_bytes(secret.reveal_to_upstream().as_bytes()).to_string();
    let machine = config.classifier.as_ref().and_then(|machine| machine.api_key.as_ref());
    let webhooks = loaded
        .store
        .webhooks
        .iter()
        .map(|webhook| format!("{webhook:?} {} {:?};", mark(&webhook.url), webhook.secret.as_ref().map(mark)));
    BTreeMap::from([
        ("[gateway]".to_owned(), format!("{gateway:?}")),
        ("[audit]".to_owned(), format!("{:?}", config.audit)),
        ("[telemetry]".to_owned(), format!("{:?}", config.telemetry)),
        ("[classifier]".to_owned(), format!("{:?} {:?}", config.classifier, machine.map(mark))),
        ("[control.webhooks]".to_owned(), webhooks.collect()),
        ("[control] hold_expires".to_owned(), format!("{:?} {:?}", control.hold_expires, control.approval_expires)),
    ])
}

/// What of that is written otherwise by now.
fn waits_for_restart(at_start: &Fixed, now: &Fixed) -> Vec<String> {
    let names: BTreeSet<&String> = at_start.keys().chain(now.keys()).collect();
    names
        .into_iter()
        .filter(|name| at_start.get(*name) != now.get(*name))
        .map(|name| shown(name).into_owned())
        .collect()
}
