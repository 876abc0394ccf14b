//! Stored records into the judge's input: users' lists and settings.

use std::collections::BTreeMap;

use toolwarden_core::{Entry, Layer, Origin, Sourced, name};
use toolwarden_policy::input::UserInput;

use super::{Loading, SourceState};
use crate::entries::terminal_fault;
use crate::files;
use crate::finding::{Finding, Severity};
use crate::readers::SourceKind;
use crate::readers::config::ConfigFile;
use crate::stored::{self, Lists, Record, Settings, StoredError};
use crate::tree::Place;
use crate::trust::TrustRecords;

type SettingMap = BTreeMap<String, Sourced<serde_json::Value>>;

/// What the data directory holds.
#[derive(Debug, Default)]
pub(super) struct Stored {
    lists: Lists,
    settings: Settings,
}

pub(super) fn read(loading: &mut Loading<'_>) -> Stored {
    loading.records = record::<TrustRecords>(loading);
    Stored { lists: record(loading), settings: record(loading) }
}

fn record<R: Record>(loading: &mut Loading<'_>) -> R {
    let path = R::path(loading.locations);
    match stored::read(loading.locations) {
        Ok(record) => {
            let state = if path.exists() { SourceState::Used } else { SourceState::Missing };
            loading.source(&path, SourceKind::Record, state);
            record
        }
        Err(error) => {
            loading.refuse_record(&files::shown(&path), error);
            loading.source(&path, SourceKind::Record, SourceState::Broken);
            R::default()
        }
    }
}

impl Loading<'_> {
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
}

pub(super) fn users(loading: &mut Loading<'_>, stored: &Stored) -> BTreeMap<String, UserInput> {
    let label = files::shown(&Lists::path(loading.locations));
    for (user, lists) in &stored.lists.users {
        let help = format!("stored for {}; remove it with `toolwarden disallow`", name::shown(user));
        for entry in lists.mcp_allowlist.iter().filter(|entry| Entry::parse(entry).is_err()) {
            let message = format!("Invalid MCP allowlist entry: {}", name::shown(entry));
            loading.warn("invalid_entry", &label, message, help.clone());
        }
        for entry in lists.terminal_allowlist.iter().filter(|entry| terminal_fault(entry).is_some()) {
            let message = format!("Invalid terminal allowlist entry: {}", name::shown(entry));
            loading.warn("invalid_entry", &label, message, help.clone());
        }
    }
    stored.lists.users.iter().map(|(user, lists)| (user.clone(), lists.to_input(&label))).collect()
}

/// The config's settings, over them the stored ones. A switch that is off on either side is off.
pub(super) fn settings(loading: &mut Loading<'_>, config: &ConfigFile, stored: &Stored) -> SettingMap {
    let label = files::shown(&Settings::path(loading.locations));
    let mut settings = config.settings.clone();
    for (key, value) in &stored.settings.values {
        let value = Sourced::new(value.clone(), Origin::record(Layer::Settings, label.as_str()));
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
