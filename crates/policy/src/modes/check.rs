//! What can be wrong with a mode before anybody uses it: conflicts, and conditions nobody can meet.

use std::fmt;

use toolwarden_core::{Caller, Origin, Sourced, ToolIdentity};

use crate::input::{Conditions, ModeInput};

/// Context keys a condition may name.
const CONDITION_KEYS: [&str; 8] = ["task", "project", "run", "job", "session", "user", "role", "group"];

/// The same server or tool allowed and disallowed by one mode (MODE-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub what: String,
    pub allowed: Origin,
    pub disallowed: Origin,
}

impl fmt::Display for Conflict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, allowed, disallowed } = self;
        write!(formatter, "{what} is allowed at {allowed} and disallowed at {disallowed}")
    }
}

/// Every conflict inside one mode. An allowed tool of a disallowed server is one too: no call could
/// ever use that permission.
#[must_use]
pub fn conflicts(mode: &ModeInput) -> Vec<Conflict> {
    let mut found = Vec::new();
    for allowed in mode.allowed_servers.iter().flatten() {
        for disallowed in same_server(&mode.disallowed_servers, &allowed.value) {
            found.push(conflict(format!("server \"{}\"", allowed.value), &allowed.origin, &disallowed.origin));
        }
    }
    for allowed in mode.allowed_tools.iter().flatten() {
        let same = |other: &&Sourced<ToolIdentity>| {
            other.value.server.eq_ignore_ascii_case(&allowed.value.server)
                && other.value.tool.eq_ignore_ascii_case(&allowed.value.tool)
        };
        for disallowed in mode.disallowed_tools.iter().filter(same) {
            found.push(conflict(format!("tool \"{}\"", allowed.value), &allowed.origin, &disallowed.origin));
        }
    }
    found
}

fn same_server<'a>(names: &'a [Sourced<String>], server: &'a str) -> impl Iterator<Item = &'a Sourced<String>> {
    names.iter().filter(move |name| name.value.eq_ignore_ascii_case(server))
}

fn conflict(what: String, allowed: &Origin, disallowed: &Origin) -> Conflict {
    Conflict { what, allowed: allowed.clone(), disallowed: disallowed.clone() }
}

/// Faults of condition keys that no context has.
pub(super) fn unknown_conditions(mode: &ModeInput) -> Vec<String> {
    let unknown = |key: &&String| !CONDITION_KEYS.contains(&key.as_str());
    mode.conditions
        .keys()
        .filter(unknown)
        .map(|key| format!("condition on the unknown context key `{key}`; known are {}", CONDITION_KEYS.join(", ")))
        .collect()
}

/// The first condition the caller's context does not meet.
pub(super) fn unmet_condition<'a>(
    conditions: &'a Conditions,
    caller: &Caller,
    roles: [Option<&str>; 2],
) -> Option<&'a str> {
    let met = |key: &str, texts: &[String]| match key {
        "role" => roles.iter().flatten().any(|role| fits_any(texts, role)),
        "group" => caller.groups.iter().any(|group| fits_any(texts, group)),
        _ => context_value(key, caller).is_some_and(|value| fits_any(texts, value)),
    };
    conditions.iter().find(|(key, texts)| !met(key, texts)).map(|(key, _)| key.as_str())
}

fn context_value<'a>(key: &str, caller: &'a Caller) -> Option<&'a str> {
    let context = &caller.context;
    let value = match key {
        "task" => &context.task,
        "project" => &context.project,
        "run" => &context.run,
        "job" => &context.job,
        "session" => &context.session,
        "user" => &caller.user,
        _ => return None,
    };
    value.as_deref()
}

/// Whether a value equals one of the texts, where a trailing `*` matches any ending.
pub(crate) fn fits_any(texts: &[String], value: &str) -> bool {
    texts.iter().any(|text| match text.strip_suffix('*') {
        Some(prefix) => value.starts_with(prefix),
        None => value == text,
    })
}
