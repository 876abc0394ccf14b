//! All sources of one place into one `PolicyInput`, layer by layer.
//!
//! Takes `Locations` and what the store holds; gives the input, every finding and the state of every source. Refuses to load
//! an untrusted config found by walking up, and anything broken but permissions.json (PERM-3).

mod choose;
mod deny;
mod modes;
mod own_paths;
mod permissions;
mod records;
mod rules;
mod servers;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolwarden_core::Records;
use toolwarden_policy::input::{ApproversInput, BaseInput, PolicyInput};

use crate::files;
use crate::finding::{Finding, Severity};
use crate::locations::Locations;
use crate::lookup;
use crate::readers::SourceKind;
use crate::readers::config::{ConfigFile, StoreSection, WebhookSection};
use crate::readers::server::ServerDefinition;
use crate::records::lay_over;
use crate::report::Reading;
use crate::trust::{FileState, TrustRecords, WorkspaceFile};

/// What loading gives.
#[derive(Debug)]
pub struct Loaded {
    pub input: PolicyInput,
    pub findings: Vec<Finding>,
    pub sources: Vec<SourceStatus>,
    pub config: ConfigFile,
    pub store: StoreChoice,
    /// The config that was used; none = only defaults.
    pub config_path: Option<PathBuf>,
    /// `[rules] shipped`.
    pub shipped_rules: bool,
    /// How each server is reached; the first definition of a name is the one that counts.
    pub definitions: Vec<ServerDefinition>,
}

impl Loaded {
    /// What counts where nothing can be read: nothing.
    #[must_use]
    pub fn nothing() -> Self {
        let section = StoreSection::default();
        Self {
            input: PolicyInput::default(),
            findings: Vec::new(),
            sources: Vec::new(),
            config: ConfigFile::default(),
            store: StoreChoice { section, ..StoreChoice::default() },
            config_path: None,
            shipped_rules: true,
            definitions: Vec::new(),
        }
    }
}

/// `[store]` and `[vault] key`, and what paths in them are relative to.
#[derive(Debug, Clone, Default)]
pub struct StoreChoice {
    pub section: StoreSection,
    pub key: Option<String>,
    pub directory: PathBuf,
    /// `[control] hold_expires` and `approval_expires`.
    pub hold_expires: Option<Duration>,
    pub approval_expires: Option<Duration>,
    /// `[control.webhooks]`.
    pub webhooks: Vec<WebhookSection>,
}

impl StoreChoice {
    fn of(chosen: &choose::Chosen) -> Self {
        let (section, key) = (chosen.config.store.clone(), chosen.config.vault.key.clone());
        let control = &chosen.config.control;
        let (hold_expires, approval_expires) = (control.hold_expires, control.approval_expires);
        let (directory, webhooks) = (chosen.store_directory.clone(), control.webhooks.clone());
        Self { section, key, directory, hold_expires, approval_expires, webhooks }
    }
}

/// One file or record and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceStatus {
    pub path: PathBuf,
    pub kind: SourceKind,
    pub state: SourceState,
}

/// What became of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceState {
    Used,
    Missing,
    /// Only its deny side acts.
    Untrusted,
    /// Its last trusted content counts, and the deny side of what it says now.
    Changed,
    Broken,
}

/// Why nothing was loaded.
#[derive(Debug)]
pub enum Refusal {
    /// A config found by walking up, in a directory nobody trusted: not read at all.
    Untrusted { path: PathBuf, directory: PathBuf },
    /// Something that must be whole is not.
    Faults { findings: Vec<Finding>, sources: Vec<SourceStatus> },
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untrusted { path, directory } => write!(
                formatter,
                "{} came with a workspace nobody trusted, so it is not read; look at it, then run `toolwarden trust {}`, or use `--config`",
                files::shown(path),
                files::shown(directory)
            ),
            Self::Faults { findings, .. } => {
                let errors = findings.iter().filter(|finding| finding.is_error());
                let lines: Vec<_> = errors.map(ToString::to_string).collect();
                formatter.write_str(&lines.join("\n"))
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// Loads everything that counts at these locations, and with these records of the store.
///
/// # Errors
/// An untrusted config up the tree, or a broken config, modes, servers, rules, admin file or record.
pub fn load(locations: &Locations, store: &Records) -> Result<Loaded, Refusal> {
    let mut loading = Loading::new(locations, store);
    records::read_trust(&mut loading);
    let chosen = choose::config(&mut loading)?;
    let admin = choose::admin(&mut loading, &chosen);
    let admin = records::admin(&mut loading, admin);
    let mut rules = rules::read(&mut loading, &chosen);
    rules.extend(records::rules(&mut loading));
    let modes = modes::read(&mut loading, &chosen.config);
    let mut definitions = servers::read(&mut loading, &chosen);
    records::servers(&mut loading, &mut definitions);
    let local = permissions::read(&mut loading);
    let settings = records::settings(&mut loading, &chosen.config);
    let mut input = PolicyInput {
        version: store.version,
        base: BaseInput {
            auto_run: records::auto_run(&chosen.config, &settings),
            admin,
            modes,
            roles: records::roles(&mut loading, &chosen.config),
            rules,
            settings,
            protected_paths: loading.protected_paths(&chosen),
            secret_paths: loading.secret_paths(&chosen),
            home: Some(locations.home.clone()),
            git_configs: locations.git_configs.clone(),
            workspaces: loading.workspaces(),
            limits: chosen.config.gateway.limits,
            approvers: ApproversInput {
                everywhere: chosen.config.control.approvers.clone(),
                second_person: chosen.config.control.second_person.clone(),
                rules: chosen.config.control.approve.clone(),
            },
        },
        servers: definitions.iter().map(|definition| definition.input.clone()).collect(),
        users: records::users(&mut loading),
        local,
    };
    input.servers.iter_mut().for_each(|server| lay_over(store, server));
    loading.narrow(&mut input);
    loading.note_lonely_review(&input, &chosen);
    loading.finish(input, chosen, definitions)
}

/// Where state is kept, as the person's own config says; nothing else is read, since no workspace has a say in it.
///
/// # Errors
/// That config is broken.
pub fn load_store(locations: &Locations) -> Result<StoreChoice, Refusal> {
    let nothing = Records::default();
    let mut loading = Loading::new(locations, &nothing);
    let chosen = choose::own_config(&mut loading);
    if loading.refused {
        return Err(Refusal::Faults { findings: loading.findings, sources: loading.sources });
    }
    Ok(StoreChoice::of(&chosen))
}

/// What is gathered on the way.
pub(crate) struct Loading<'a> {
    locations: &'a Locations,
    store: &'a Records,
    /// The workspace's real path.
    workspace: Option<PathBuf>,
    records: TrustRecords,
    findings: Vec<Finding>,
    sources: Vec<SourceStatus>,
    refused: bool,
    /// Deny sides that act once everything else is in place.
    narrowings: Vec<deny::Narrowing>,
    trusted_files: Vec<PathBuf>,
}

impl<'a> Loading<'a> {
    fn new(locations: &'a Locations, store: &'a Records) -> Self {
        Self {
            locations,
            store,
            workspace: locations.workspace_root(),
            records: TrustRecords::default(),
            findings: Vec::new(),
            sources: Vec::new(),
            refused: false,
            narrowings: Vec::new(),
            trusted_files: Vec::new(),
        }
    }

    fn source(&mut self, path: &Path, kind: SourceKind, state: SourceState) {
        self.sources.push(SourceStatus { path: path.to_path_buf(), kind, state });
    }

    /// Records an error that stops loading.
    fn refuse(&mut self, code: &'static str, label: &str, message: impl Into<String>) {
        self.findings.push(Finding::whole(Severity::Error, code, label, message));
        self.refused = true;
    }

    fn warn(&mut self, code: &'static str, label: &str, message: impl Into<String>, help: impl Into<String>) {
        self.findings.push(Finding::whole(Severity::Warning, code, label, message).with_help(help));
    }

    /// Auto-review without a classifier changes nothing but what run-everything means.
    fn note_lonely_review(&mut self, input: &PolicyInput, chosen: &choose::Chosen) {
        let of_modes = input.base.modes.iter().any(|mode| mode.auto_review == Some(true));
        if (input.base.auto_run.auto_review || of_modes) && chosen.config.classifier.is_none() {
            let message = "auto_review is on and no classifier is configured: calls are held for persons all the same";
            self.note("auto_review_without_classifier", "[classifier]", message);
        }
    }

    fn note(&mut self, code: &'static str, label: &str, message: impl Into<String>) {
        self.findings.push(Finding::whole(Severity::Note, code, label, message));
    }

    /// Takes a reading that counts: broken stops loading.
    fn accept<T>(&mut self, path: &Path, kind: SourceKind, reading: Reading<T>) -> T {
        self.warn_of_open_file(path);
        self.findings.extend(reading.findings);
        self.refused |= reading.broken;
        self.source(path, kind, if reading.broken { SourceState::Broken } else { SourceState::Used });
        reading.value
    }

    fn warn_of_open_file(&mut self, path: &Path) {
        if files::is_open_to_all(path) {
            let label = files::shown(path);
            let help = format!("run `chmod o-w {label}`");
            self.warn("open_file", &label, "every user of this machine can change this file", help);
        }
    }

    /// Takes the trusted content of a file that changed since: it counts, so it must be whole.
    fn keep<T>(&mut self, reading: Reading<T>) -> T {
        self.refused |= reading.broken;
        self.findings.extend(reading.findings);
        reading.value
    }

    /// Takes a reading of which only the deny side acts: its errors stop nothing.
    fn glance<T>(&mut self, reading: Reading<T>) -> T {
        self.findings.extend(reading.findings.into_iter().map(|mut finding| {
            finding.severity = finding.severity.max(Severity::Warning);
            finding
        }));
        reading.value
    }

    /// Tells how a workspace file stands, where it is not simply used or missing.
    fn announce(&mut self, file: &WorkspaceFile, kind: SourceKind) {
        let (state, message) = match file.state() {
            FileState::Missing => (SourceState::Missing, None),
            FileState::Unchanged => (SourceState::Used, None),
            FileState::Deleted => (
                SourceState::Missing,
                Some("was trusted and is gone: nothing it granted counts, its restrictions stay"),
            ),
            FileState::Changed => (
                SourceState::Changed,
                Some("changed since it was trusted: its trusted content counts, and what it newly forbids"),
            ),
            FileState::Untrusted => (SourceState::Untrusted, Some("is not trusted: only what it forbids counts")),
        };
        if state != SourceState::Used {
            self.source(&file.path, kind, state);
        }
        if let Some(message) = message {
            self.warn("not_trusted", &file.label, message, file.remedy());
        }
        if let Some(Err(error)) = &file.present {
            self.warn("unreadable", &file.label, error.to_string(), "make it a plain file of the workspace");
        }
    }

    fn narrow(&mut self, input: &mut PolicyInput) {
        for narrowing in std::mem::take(&mut self.narrowings) {
            self.findings.extend(narrowing.apply(input));
        }
    }

    /// Directories that people work in: this workspace, and every trusted one.
    fn workspaces(&self) -> Vec<PathBuf> {
        let home = lookup::real(&self.locations.home);
        let mut roots: Vec<PathBuf> = self.records.directories.keys().map(PathBuf::from).collect();
        roots.extend(self.workspace.clone());
        // The home holds more than a workspace: naming it as a whole names what is protected there.
        roots.retain(|root| !home.starts_with(root));
        roots.sort();
        roots.dedup();
        roots
    }

    fn finish(
        self,
        input: PolicyInput,
        chosen: choose::Chosen,
        mut definitions: Vec<ServerDefinition>,
    ) -> Result<Loaded, Refusal> {
        // What narrowed the judge's view holds for the definitions too.
        for (definition, server) in definitions.iter_mut().zip(&input.servers) {
            definition.input.clone_from(server);
        }
        if self.refused {
            return Err(Refusal::Faults { findings: self.findings, sources: self.sources });
        }
        Ok(Loaded {
            input,
            findings: self.findings,
            sources: self.sources,
            shipped_rules: chosen.config.rules.shipped,
            store: StoreChoice::of(&chosen),
            config_path: chosen.path,
            config: chosen.config,
            definitions,
        })
    }
}
