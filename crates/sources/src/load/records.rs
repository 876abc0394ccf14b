//! Records of the store into the judge's input. A file that defines the same name comes first; what either side
//! switches off is off.

use std::collections::BTreeMap;

use toolwarden_core::name::registration_key;
use toolwarden_core::records::{Kind, Place as Spot, Record};
use toolwarden_core::{Layer, Origin, Sourced, name};
use toolwarden_policy::AUTO_REVIEW;
use toolwarden_policy::input::{AdminInput, AutoRunInput, ModeInput, RoleInput, RuleFile, UserInput};
use toolwarden_policy::roles::canonical as canonical_role;

use super::{Loading, SourceState};
use crate::entries::{List, terminal_fault};
use crate::files;
use crate::finding::{Finding, Severity};
use crate::readers::SourceKind;
use crate::readers::config::ConfigFile;
use crate::readers::record;
use crate::readers::server::ServerDefinition;
use crate::records::{StoredRules, StoredUser, admin_controls, is_switch_only, label, server_name};
use crate::report::Reading;
use crate::stored::{self, Record as FileRecord, StoredError};
use crate::tree::Place;
use crate::trust::TrustRecords;

type SettingMap = BTreeMap<String, Sourced<serde_json::Value>>;

/// What the data directory itself holds.
pub(super) fn read_trust(loading: &mut Loading<'_>) {
    let path = TrustRecords::path(loading.locations);
    match stored::read(loading.locations) {
        Ok(records) => {
            let state = if path.exists() { SourceState::Used } else { SourceState::Missing };
            loading.source(&path, SourceKind::Record, state);
            loading.records = records;
        }
        Err(error) => {
            loading.refuse_record(&files::shown(&path), error);
            loading.source(&path, SourceKind::Record, SourceState::Broken);
        }
    }
}

impl<'a> Loading<'a> {
    fn refuse_record(&mut self, label: &str, error: StoredError) {
        let (place, message) = match error {
            StoredError::File { error, .. } => (Place::default(), error.to_string()),
            StoredError::Syntax { line, column, message, .. } => (Place::from((line, column)), message),
            locked @ StoredError::Locked { .. } => (Place::default(), locked.to_string()),
        };
        let finding = Finding::at(Severity::Error, "record_refused", label.into(), place, message);
        self.findings.push(finding.with_help("repair it, or restore it from a backup"));
        self.refused = true;
    }

    fn stored(&self, kind: Kind) -> impl Iterator<Item = (&'a Spot, &'a Record)> + use<'a> {
        self.store.of(kind)
    }

    /// A record that says that somebody else's word of the same name comes first.
    fn shadowed(&mut self, spot: &Spot, first: &Origin) {
        let message = format!("not used: {first} comes first");
        self.note("shadowed", &label(spot), message);
    }
}

pub(super) fn users(loading: &mut Loading<'_>) -> BTreeMap<String, UserInput> {
    let mut users = BTreeMap::new();
    for (spot, kept) in loading.stored(Kind::User) {
        let label = label(spot);
        let lists: StoredUser = loading.keep(record::plain(spot, &kept.content));
        let help = format!("stored for {}; remove it with `toolwarden disallow`", name::shown(&spot.owner));
        for entry in lists.mcp_allowlist.iter().filter(|entry| List::Mcp.fault(entry).is_some()) {
            let message = format!("Invalid MCP allowlist entry: {}", name::shown(entry));
            loading.warn("invalid_entry", &label, message, help.clone());
        }
        for entry in lists.terminal_allowlist.iter().filter(|entry| terminal_fault(entry).is_some()) {
            let message = format!("Invalid terminal allowlist entry: {}", name::shown(entry));
            loading.warn("invalid_entry", &label, message, help.clone());
        }
        users.insert(spot.owner.clone(), lists.to_input(&label));
    }
    users
}

/// The config's habits, with what is switched by setting (REVIEW-1).
pub(super) fn auto_run(config: &ConfigFile, settings: &SettingMap) -> AutoRunInput {
    let mut auto_run = config.auto_run.clone();
    let switched = settings.get(AUTO_REVIEW).and_then(|setting| setting.value.as_bool());
    auto_run.auto_review = switched.unwrap_or(auto_run.auto_review);
    auto_run
}

/// The config's settings, over them the stored ones. A switch that is off on either side is off.
pub(super) fn settings(loading: &mut Loading<'_>, config: &ConfigFile) -> SettingMap {
    let mut settings = config.settings.clone();
    for (spot, kept) in loading.stored(Kind::Setting) {
        let key = &spot.name;
        let label = label(spot);
        let value = Sourced::new(kept.content.clone(), Origin::record(Layer::Settings, label.as_str()));
        if is_switch(key) {
            let differs = settings.get(key).is_some_and(|known| known.value != value.value);
            if !merge_switch(&mut settings, key, &value) && !differs {
                settings.insert(key.clone(), value);
            }
            continue;
        }
        if let Some(shadowed) = settings.insert(key.clone(), value) {
            let message = format!("the setting `{key}` at {} is not used: this one comes first", shadowed.origin);
            loading.note("shadowed", &label, message);
        }
    }
    for (spot, kept) in loading.stored(Kind::Tool) {
        let tool = loading.keep(record::tool(spot, &kept.content));
        if tool.enabled == Some(false) {
            let origin = Origin::record(Layer::Settings, label(spot));
            settings.insert(format!("mcp.tool.{}.enabled", spot.name), Sourced::new(false.into(), origin));
        }
    }
    settings
}

/// Settings that switch tools off for everyone (GATE-9).
fn is_switch(key: &str) -> bool {
    key == "mcp.tools.disabled" || (key.starts_with("mcp.tool.") && key.ends_with(".enabled"))
}

/// Adds what a switch turns off, never what it turns on; true where it did.
pub(super) fn merge_switch(settings: &mut SettingMap, key: &str, value: &Sourced<serde_json::Value>) -> bool {
    if !is_switch(key) {
        return false;
    }
    if key != "mcp.tools.disabled" {
        let off = value.value != serde_json::Value::Bool(true);
        if off {
            settings.insert(key.to_owned(), value.clone());
        }
        return off;
    }
    match settings.get_mut(key).map(|known| &mut known.value) {
        Some(serde_json::Value::Array(known)) => match &value.value {
            serde_json::Value::Array(new) => known.extend(new.iter().cloned()),
            other => known.push(other.clone()),
        },
        _ => {
            settings.insert(key.to_owned(), value.clone());
        }
    }
    true
}

pub(super) fn modes(loading: &mut Loading<'_>) -> Vec<ModeInput> {
    let found = loading.stored(Kind::Mode).map(|(spot, kept)| record::mode(spot, &kept.content));
    let found: Vec<Reading<_>> = found.collect();
    // A mode that is wrong is refused by itself, as one of a file (MODE-6).
    found.into_iter().filter_map(|reading| loading.glance(reading)).collect()
}

/// The config's roles, and those of the store it does not name.
pub(super) fn roles(loading: &mut Loading<'_>, config: &ConfigFile) -> Vec<RoleInput> {
    let mut roles = config.roles.clone();
    for (spot, kept) in loading.stored(Kind::Role) {
        let same = |role: &&RoleInput| canonical_role(&role.name.value) == canonical_role(&spot.name);
        match config.roles.iter().find(same) {
            Some(first) => loading.shadowed(spot, &first.name.origin),
            None => roles.extend(loading.keep(record::role(spot, &kept.content))),
        }
    }
    roles
}

/// Rules add up, wherever they stand.
pub(super) fn rules(loading: &mut Loading<'_>) -> Vec<RuleFile> {
    let mut rules = Vec::new();
    for (spot, kept) in loading.stored(Kind::Rule) {
        let StoredRules { text } = loading.keep(record::plain(spot, &kept.content));
        rules.push(RuleFile { origin: Origin::new(Layer::Settings, label(spot), 1, 1), text });
    }
    rules
}

/// The controls of the store, where no file has any.
pub(super) fn admin(loading: &mut Loading<'_>, of_file: Option<AdminInput>) -> Option<AdminInput> {
    let spot = admin_controls();
    let Some(kept) = loading.store.get(&spot) else { return of_file };
    if of_file.is_some() {
        loading.note("shadowed", &label(&spot), "not used: the admin's file comes first");
        return of_file;
    }
    Some(loading.keep(record::admin(&spot, &kept.content)))
}

/// Adds the servers of the store to those of files. Of one that a file defines only the switch counts.
pub(super) fn servers(loading: &mut Loading<'_>, known: &mut Vec<ServerDefinition>) {
    // Definitions first: a switch may be written in another way than the name it is for.
    let (switches, whole): (Vec<_>, Vec<_>) =
        loading.stored(Kind::Server).partition(|(_, kept)| is_switch_only(&kept.content));
    for (spot, kept) in whole.into_iter().chain(switches) {
        let key = registration_key(&server_name(spot));
        let of_file = known.iter().position(|one| registration_key(&one.input.name) == key);
        let is_switch = is_switch_only(&kept.content);
        match of_file {
            None if is_switch => {}
            None if spot.owner.is_empty() => known.extend(loading.keep(record::server(spot, &kept.content))),
            // One user's mistake is no fault of the whole house.
            None => known.extend(loading.glance(record::server(spot, &kept.content))),
            // What is a user's own switches nothing that is the operator's.
            Some(of_file) if !spot.owner.is_empty() => {
                if let Some(first) = known.get(of_file).map(|one| one.input.origin.clone()) {
                    loading.shadowed(spot, &first);
                }
            }
            Some(_) => {
                let is_on = kept.content.get("enabled").is_none_or(|enabled| *enabled == serde_json::Value::Bool(true));
                let same = known.iter_mut().filter(|one| registration_key(&one.input.name) == key);
                let mut first = None;
                for one in same {
                    one.input.enabled &= is_on;
                    first.get_or_insert(one.input.origin.clone());
                }
                if let Some(first) = first.filter(|_| !is_switch) {
                    loading.shadowed(spot, &first);
                }
            }
        }
    }
}
