//! Which config counts, and the admin record it or the system names.
//!
//! `--config`, else the nearest `toolwarden.toml` up the tree if trusted, else the user's.

use std::io;
use std::path::{Path, PathBuf};

use toolwarden_core::Sourced;
use toolwarden_policy::input::AdminInput;

use super::{Loading, Refusal};
use crate::files;
use crate::load::SourceState;
use crate::load::deny::Narrowing;
use crate::locations::CONFIG_NAME;
use crate::readers::config::{self, AlwaysAllowFile, ConfigFile, Standing};
use crate::readers::{SourceKind, admin};
use crate::tree::LARGEST_FILE;
use crate::trust::{FileState, WorkspaceFile};

/// The config that counts and where it came from.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) config: ConfigFile,
    pub(super) standing: Standing,
    pub(super) path: Option<PathBuf>,
    /// What its relative paths are relative to.
    pub(super) directory: PathBuf,
    /// The same for `[store]` and `[vault]`, which only the person's own config has.
    pub(super) store_directory: PathBuf,
    pub(super) person: Person,
}

/// What only the person's own config can say, also where a workspace's config is nearer.
#[derive(Debug)]
pub(super) struct Person {
    pub(super) always_allow_files: Vec<AlwaysAllowFile>,
    admin_file: Option<Sourced<String>>,
    /// What these paths are relative to.
    pub(super) directory: PathBuf,
}

impl Person {
    fn of(config: &ConfigFile, directory: &Path) -> Self {
        Self {
            always_allow_files: config.always_allow_files.clone(),
            admin_file: config.admin_file.clone(),
            directory: directory.to_path_buf(),
        }
    }
}

impl Chosen {
    fn new(config: ConfigFile, standing: Standing, path: &Path) -> Self {
        let directory = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        let person = Person::of(&config, &directory);
        let store_directory = directory.clone();
        Self { config, standing, path: Some(path.to_path_buf()), directory, store_directory, person }
    }
}

/// The config a person named, else the user's.
pub(super) fn own_config(loading: &mut Loading<'_>) -> Chosen {
    let locations = loading.locations;
    match &locations.config {
        Some(path) => operator(loading, &locations.working_directory.join(path), Needed::Must),
        None => operator(loading, &locations.user_config(), Needed::May),
    }
}

pub(super) fn config(loading: &mut Loading<'_>) -> Result<Chosen, Refusal> {
    let locations = loading.locations;
    let user_config = locations.user_config();
    if locations.config.is_some() {
        return Ok(own_config(loading));
    }
    match nearest(&files::real(&locations.working_directory)) {
        Some(directory) if files::real(&directory.join(CONFIG_NAME)) != files::real(&user_config) => {
            workspace(loading, &directory)
        }
        _ => Ok(operator(loading, &user_config, Needed::May)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    Must,
    May,
}

/// The nearest directory upwards with something called `toolwarden.toml`, whatever it is.
fn nearest(from: &Path) -> Option<PathBuf> {
    from.ancestors().find(|directory| directory.join(CONFIG_NAME).symlink_metadata().is_ok()).map(Path::to_path_buf)
}

fn operator(loading: &mut Loading<'_>, path: &Path, needed: Needed) -> Chosen {
    let label = files::shown(path);
    let config = match files::read(path, LARGEST_FILE) {
        Ok(Some(bytes)) => {
            let reading = config::read_bytes(&label, Standing::Operator, &bytes);
            loading.accept(path, SourceKind::Config, reading)
        }
        Ok(None) => {
            if needed == Needed::Must {
                loading.refuse("missing", &label, "no such file");
            }
            loading.source(path, SourceKind::Config, SourceState::Missing);
            let mut chosen = Chosen::new(ConfigFile::default(), Standing::Operator, path);
            chosen.path = None;
            return chosen;
        }
        Err(error) => {
            loading.refuse("unreadable", &label, error.to_string());
            loading.source(path, SourceKind::Config, SourceState::Broken);
            ConfigFile::default()
        }
    };
    Chosen::new(config, Standing::Operator, path)
}

fn workspace(loading: &mut Loading<'_>, directory: &Path) -> Result<Chosen, Refusal> {
    let file = WorkspaceFile::look(loading.locations, &loading.records, directory, CONFIG_NAME);
    let state = file.state();
    let Some(trusted) = file.trusted.as_ref().filter(|_| matches!(state, FileState::Unchanged | FileState::Changed))
    else {
        return Err(Refusal::Untrusted { path: file.path, directory: directory.to_path_buf() });
    };
    loading.trusted_files.push(file.path.clone());
    let reading = config::read_bytes(&file.label, Standing::Workspace, trusted);
    let config = if state == FileState::Unchanged {
        loading.accept(&file.path, SourceKind::Config, reading)
    } else {
        loading.announce(&file, SourceKind::Config);
        loading.keep(reading)
    };
    if let (FileState::Changed, Some(Ok(present))) = (state, &file.present) {
        let now = loading.glance(config::read_bytes(&file.label, Standing::Workspace, present));
        loading.narrowings.push(Narrowing::Config(Box::new(now)));
    }
    let mut chosen = Chosen::new(config, Standing::Workspace, &file.path);
    hear_person(loading, &mut chosen);
    Ok(chosen)
}

/// A workspace's config must not make the person's own word on admin, `alwaysAllow` and variables
/// disappear. Its own admin record counts only where the person named none.
fn hear_person(loading: &mut Loading<'_>, chosen: &mut Chosen) {
    let users = operator(loading, &loading.locations.user_config(), Needed::May);
    chosen.config.vault.workspace_env = users.config.vault.workspace_env;
    chosen.config.store = users.config.store;
    // These read the environment and tell others of calls, and links that answer lead there: nothing that came with a
    // workspace names them.
    let own = [
        ("[control.webhooks]", !chosen.config.control.webhooks.is_empty()),
        ("[gateway] public_url", chosen.config.gateway.public_url.is_some()),
        ("[gateway] anonymous_loopback", chosen.config.gateway.anonymous_loopback.is_some()),
    ];
    let place = chosen.path.as_deref().map(files::shown).unwrap_or_default();
    for (what, _) in own.iter().filter(|(_, is_said)| *is_said) {
        loading.note("not_counted", &place, format!("`{what}` counts only in the user's own config"));
    }
    chosen.config.control.webhooks = users.config.control.webhooks;
    chosen.config.gateway.public_url = users.config.gateway.public_url;
    chosen.config.classifier = users.config.classifier;
    // A workspace may hide more of what is recorded, and neither less nor record more, nor remove records.
    let audit = &mut chosen.config.audit;
    (audit.arguments, audit.retention) = (users.config.audit.arguments, users.config.audit.retention);
    audit.redaction.names.extend(users.config.audit.redaction.names);
    audit.redaction.patterns.extend(users.config.audit.redaction.patterns);
    chosen.config.gateway.anonymous_loopback = users.config.gateway.anonymous_loopback;
    chosen.config.vault.key = users.config.vault.key;
    chosen.store_directory = users.directory;
    let own_admin = chosen.person.admin_file.take();
    chosen.person = users.person;
    if chosen.person.admin_file.is_none() {
        chosen.person.admin_file = own_admin.map(|file| {
            let path = loading.locations.resolve(&chosen.directory, &file.value);
            Sourced::new(path.to_string_lossy().into_owned(), file.origin)
        });
    }
    if let Some(path) = users.path {
        let nearer = chosen.path.as_deref().map(files::shown).unwrap_or_default();
        let message = format!(
            "only its store, key, webhooks, classifier, `[audit]` arguments, redaction and retention, admin file, \
             `allow_always_allow` and `workspace_env` count here: \
             {nearer} is nearer"
        );
        loading.note("shadowed", &files::shown(&path), message);
    }
}

/// The system's admin record where there is one, else the one the config names.
pub(super) fn admin(loading: &mut Loading<'_>, chosen: &Chosen) -> Option<AdminInput> {
    let locations = loading.locations;
    let person = &chosen.person;
    let named = person.admin_file.as_ref().map(|file| locations.resolve(&person.directory, &file.value));
    // Only a path that is certainly not there means that there is no record: one that cannot be looked
    // at may hold one.
    let is_absent = |path: &Path| {
        let absent = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        path.symlink_metadata().is_err_and(|error| absent.contains(&error.kind()))
    };
    let system = locations.system_admin_file.as_ref().filter(|path| !is_absent(path));
    if let (Some(system), Some(named)) = (system, &named)
        && system != named
    {
        let message = format!("not used: the system's admin record {} comes first", files::shown(system));
        loading.note("shadowed", &files::shown(named), message);
    }
    let path = system.cloned().or(named)?;
    let label = files::shown(&path);
    match admin::read_trusted(&path) {
        Ok(bytes) => Some(loading.accept(&path, SourceKind::Admin, admin::read_bytes(&label, &bytes))),
        Err(fault) => {
            loading.refuse("admin_refused", &label, fault.to_string());
            loading.source(&path, SourceKind::Admin, SourceState::Broken);
            None
        }
    }
}
