//! What calls an entry is meant for would meet now (ALLOW-4): said after every change, because an
//! entry that is stored is not yet an entry that acts.

use std::sync::Arc;

use jiff::Timestamp;
use toolwarden_core::name::shown;
use toolwarden_core::{Call, Caller, Decision, Door, Entry, Side};
use toolwarden_policy::{PolicySet, Query, decide};
use toolwarden_sources::{List, Locations};

/// The answer in words.
pub(super) struct Again {
    pub(super) decision: Decision,
    pub(super) reason: &'static str,
    pub(super) sentence: String,
}

/// The best answer among a few calls. A wildcard stands for some tool, or for some argument.
pub(super) fn explain_again(
    policy: &PolicySet,
    locations: &Locations,
    user: &str,
    list: List,
    entry: &str,
    now: Timestamp,
) -> Option<Again> {
    let calls = match list {
        List::Mcp => tool_call(entry),
        List::Terminal => shell_calls(entry),
    };
    let answers = calls.into_iter().map(|call| explain(policy, locations, user, call, now));
    answers.min_by_key(|again| again.decision)
}

/// What one call of a user would meet.
pub(super) fn explain(policy: &PolicySet, locations: &Locations, user: &str, call: Call, now: Timestamp) -> Again {
    let caller = if user == locations.user { Caller::local_person(user) } else { Caller::person(user) };
    let mut query = Query::new(Arc::new(caller), call, Door::Explain, now);
    query.workspace.clone_from(&locations.workspace);
    let verdict = decide(policy, &query);
    let explanation = verdict.explanation();
    let detail = explanation.detail.as_deref().map(|detail| format!("; {}", shown(detail))).unwrap_or_default();
    let sentence = format!("{}{detail}", explanation.message(&query));
    Again { decision: explanation.decision, reason: explanation.reason.code(), sentence }
}

fn tool_call(entry: &str) -> Vec<Call> {
    let name = |side: Side, any: &str| match side {
        Side::Any => any.to_owned(),
        Side::Name(name) => name,
    };
    let entry = Entry::parse(entry).ok();
    entry
        .map(|entry| Call::mcp(name(entry.server, "some-server"), name(entry.tool, "some-tool"), None))
        .into_iter()
        .collect()
}

fn shell_calls(entry: &str) -> Vec<Call> {
    let (base, arguments) = entry.split_once(':').unwrap_or((entry, ""));
    let with = |word: &str| Call::shell(format!("{base} {}", arguments.replace('*', word)).trim(), None);
    let mut calls = vec![with(""), with("file")];
    if !entry.contains(':') {
        calls.push(Call::shell(format!("{base} file"), None));
    }
    calls
}
