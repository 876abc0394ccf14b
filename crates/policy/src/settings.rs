//! System settings the judge looks at: tool switches (GATE-9) and settings tools depend on (GATE-6).

use std::collections::{BTreeMap, HashSet};

use hashbrown::HashMap;
use serde_json::Value;
use toolwarden_core::{Entry, Origin, Sourced, name};

use crate::allowlist::{Allowlist, Twin};
use crate::finding::Finding;
use crate::verdict::RuleRef;

const DISABLED_LIST: &str = "mcp.tools.disabled";
/// Over `[auto_run] auto_review` of the config (REVIEW-1).
pub const AUTO_REVIEW: &str = "auto_run.auto_review";
const SWITCH_PREFIX: &str = "mcp.tool.";
const SWITCH_SUFFIX: &str = ".enabled";

/// Settings, compiled.
#[derive(Debug, Default)]
pub struct Settings {
    values: BTreeMap<String, Sourced<Value>>,
    /// Switches by `server:tool`.
    by_entry: Allowlist,
    /// Switches by bare tool name, folded.
    by_name: HashMap<String, RuleRef>,
    /// Those bare names that may be a server and its tool in one word, as clients see them, by their `one_word`.
    by_word: HashMap<String, RuleRef>,
}

impl Settings {
    /// Compiles settings.
    ///
    /// # Errors
    /// A switch of the wrong type: half-read, it would leave a tool on that somebody switched off.
    pub fn compile(values: &BTreeMap<String, Sourced<Value>>) -> Result<Self, Vec<Finding>> {
        let mut off: Vec<Sourced<String>> = Vec::new();
        let mut faults = Vec::new();
        for (key, value) in values {
            let mut refuse = |expected: &str| {
                let message = format!("the setting `{key}` must be {expected}");
                faults.push(Finding::error("setting_type", value.origin.clone(), message));
            };
            if key == DISABLED_LIST {
                match value.value.as_array().map(|items| items.iter().map(Value::as_str).collect::<Option<Vec<_>>>()) {
                    Some(Some(names)) => {
                        off.extend(names.into_iter().map(|name| Sourced::new(name.to_owned(), value.origin.clone())));
                    }
                    _ => refuse("a list of tool names"),
                }
            } else if let Some(tool) = switched_tool(key) {
                match value.value.as_bool() {
                    Some(false) => off.push(Sourced::new(tool.to_owned(), value.origin.clone())),
                    Some(true) => {}
                    None => refuse("true or false"),
                }
            } else if key == AUTO_REVIEW && !value.value.is_boolean() {
                refuse("true or false");
            } else if let Some(help) = mistaken(key) {
                let message = format!("the setting `{}` is not known: nothing reads it", name::shown(key));
                faults.push(Finding::error("setting_unknown", value.origin.clone(), message).suggesting(help));
            }
        }
        let (entries, names): (Vec<_>, Vec<_>) = off.into_iter().partition(|text| text.value.contains(':'));
        let refused = |written: &Sourced<String>, fault: String| {
            let message = format!("`{}` names no tool to switch off: {fault}", name::shown(&written.value));
            Finding::error("setting_tool", written.origin.clone(), message)
        };
        let of_entry = |entry: &Sourced<String>| Entry::parse_restricting(&entry.value).err().map(|it| it.to_string());
        let of_name = |bare: &Sourced<String>| name::check_written(&bare.value).err().map(|it| it.to_string());
        faults.extend(entries.iter().filter_map(|entry| Some(refused(entry, of_entry(entry)?))));
        faults.extend(names.iter().filter_map(|bare| Some(refused(bare, of_name(bare)?))));
        if !faults.is_empty() {
            return Err(faults);
        }
        let rule = |name: &Sourced<String>| RuleRef::new(name.value.clone(), &name.origin);
        let by_name = names.iter().map(|name| (name.value.to_ascii_lowercase(), rule(name))).collect();
        let by_word = names.iter().filter_map(|name| Some((as_one_word(&name.value)?, rule(name)))).collect();
        Ok(Self { values: values.clone(), by_entry: Allowlist::compile(&entries), by_name, by_word })
    }

    /// The setting that switches a tool off.
    pub(crate) fn switched_off(&self, server: &str, tool: &str) -> Option<&RuleRef> {
        if self.by_name.is_empty() && self.by_entry.is_empty() {
            return None;
        }
        let by_name = || self.by_name.get(&*name::folded(tool));
        let by_word = || (!self.by_word.is_empty()).then(|| self.by_word.get(&one_word(&[server, tool])))?;
        self.by_entry.find(server, tool, Twin::None).or_else(by_name).or_else(by_word)
    }

    /// What switches tools off by `server:tool`, and by name alone.
    pub fn entries_off(&self) -> impl Iterator<Item = &RuleRef> {
        self.by_entry.rules()
    }

    pub fn names_off(&self) -> impl Iterator<Item = (&str, &RuleRef)> {
        self.by_name.iter().map(|(name, rule)| (name.as_str(), rule))
    }

    /// Settings that nothing reads: no switches, and asked for by none of these.
    pub fn unread<'a>(
        values: &'a BTreeMap<String, Sourced<Value>>,
        asked_for: &HashSet<&str>,
    ) -> impl Iterator<Item = (&'a str, &'a Origin)> {
        let is_read = |key: &str| {
            key == DISABLED_LIST || key == AUTO_REVIEW || switched_tool(key).is_some() || asked_for.contains(key)
        };
        // What is mistaken is refused, which says more.
        let unread = values.iter().filter(move |(key, _)| !is_read(key) && mistaken(key).is_none());
        unread.map(|(key, value)| (key.as_str(), &value.origin))
    }

    /// What switches tools off, as it is written, by whichever setting.
    #[must_use]
    pub fn written_off(values: &BTreeMap<String, Sourced<Value>>) -> Vec<Sourced<String>> {
        let mut written = Vec::new();
        for (key, value) in values {
            let push = |name: &str| written.push(Sourced::new(name.to_owned(), value.origin.clone()));
            match &value.value {
                Value::Array(names) if key == DISABLED_LIST => names.iter().filter_map(Value::as_str).for_each(push),
                Value::Bool(false) => switched_tool(key).into_iter().for_each(push),
                _ => {}
            }
        }
        written
    }

    /// The settings that are `true`, but for switches of tools.
    pub fn keys_on(&self) -> impl Iterator<Item = (&str, &Origin)> {
        let on =
            self.values.iter().filter(|(key, value)| value.value == Value::Bool(true) && switched_tool(key).is_none());
        on.map(|(key, value)| (key.as_str(), &value.origin))
    }

    /// Whether a setting is `true`; anything else, or nothing, is off.
    #[must_use]
    pub fn is_on(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(|value| value.value == Value::Bool(true))
    }
}

/// Whether a bare name in a switch names a tool of a server: by its own name, or in one word with its server's.
#[must_use]
pub fn names_tool(written: &str, server: &str, tool: &str) -> bool {
    written.eq_ignore_ascii_case(tool) || as_one_word(written).is_some_and(|word| word == one_word(&[server, tool]))
}

/// A bare name that may say its server, too: behind the common door tools are called `server__tool`, and people write
/// `server.tool`. It is read both ways, because only one of them was meant and a switch may only be too wide.
fn as_one_word(written: &str) -> Option<String> {
    (written.contains("__") || written.contains('.')).then(|| one_word(&[written]))
}

/// Names as one word of letters, digits and dashes, with one underscore for whatever else is between them.
fn one_word(names: &[&str]) -> String {
    let mut word = String::new();
    for name in names {
        word.push('_');
        for character in name.chars() {
            let plain = if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' };
            if plain != '_' || !word.ends_with('_') {
                word.push(plain.to_ascii_lowercase());
            }
        }
        word.truncate(word.trim_end_matches('_').len());
    }
    word
}

/// What a key that nothing reads was meant to be, where its beginning says that it restricts something: left alone, it
/// would leave on what somebody switched off.
fn mistaken(key: &str) -> Option<&'static str> {
    let lower = key.trim().to_ascii_lowercase();
    if lower.starts_with("mcp.") {
        return Some("use `mcp.tools.disabled` or `mcp.tool.NAME.enabled`; servers have `enabled` of their own");
    }
    (key != AUTO_REVIEW && lower.starts_with("auto_run."))
        .then_some("write it under `[auto_run]` of the config, or set a user's own with `settings set`")
}

fn switched_tool(key: &str) -> Option<&str> {
    key.strip_prefix(SWITCH_PREFIX)?.strip_suffix(SWITCH_SUFFIX).filter(|tool| !tool.is_empty())
}
