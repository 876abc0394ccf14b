//! What calls an entry is meant for would meet now (ALLOW-4): said after every change, because an
//! entry that is stored is not yet an entry that acts.

use std::sync::Arc;

use jiff::Timestamp;
use toolwarden_core::name::shown;
use toolwarden_core::{Call, Caller, Decision, Door, Entry, Operation, Side};
use toolwarden_pins::{self as pins, Kind as PinKind, ServerPins};
use toolwarden_policy::{NarrowEntry, Query, decide};
use toolwarden_sources::{List, Locations, lookup};

use crate::place::Opened;

/// The answer in words.
pub(super) struct Again {
    pub(super) decision: Decision,
    pub(super) reason: &'static str,
    pub(super) sentence: String,
    /// Whether an entry is all that is missing.
    needs_entry: bool,
}

/// The best answer among a few calls. A wildcard stands for some tool, or for some argument.
pub(super) fn explain_again(
    opened: &Opened,
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
    let answer = |call: Call| {
        let pins = pins::read(locations, &call.server).ok();
        explain(opened, locations, user, call, pins.as_ref(), now)
    };
    if let Some(entry) = NarrowEntry::parse(entry).ok().filter(|_| list == List::Mcp) {
        // Which arguments fit is for the entry to say; what holds the tool whatever they are is told.
        let calls = tool_call(&entry.whole_tool().to_string()).into_iter();
        return calls.map(answer).find(|again| again.decision == Decision::Hold && !again.needs_entry);
    }
    let answers = calls.into_iter().map(answer);
    answers.min_by_key(|again| again.decision)
}

/// What one call of a user would meet. Without pins nothing of its server was seen.
pub(super) fn explain(
    opened: &Opened,
    locations: &Locations,
    user: &str,
    call: Call,
    pins: Option<&ServerPins>,
    now: Timestamp,
) -> Again {
    let caller = if user == locations.user { Caller::local_person(user) } else { Caller::person(user) };
    let mut query = Query::new(Arc::new(caller), call, Door::Explain, now);
    query.workspace.clone_from(&locations.workspace);
    query.files = lookup::files(&opened.policy, &query).into();
    let called =
        (query.call.requested_operation() == Operation::CallTool).then_some((PinKind::Tool, &*query.call.tool));
    let changes = opened.changes_of(&query.call.server);
    query.definition = pins.map(|pins| pins.definition(called, changes)).unwrap_or_default();
    let verdict = decide(&opened.policy, &query);
    let explanation = verdict.explanation();
    let detail = explanation.detail.as_deref().map(|detail| format!("; {}", shown(detail))).unwrap_or_default();
    let sentence = format!("{}{detail}", explanation.message(&query));
    let needs_entry = !explanation.candidates.is_empty();
    Again { decision: explanation.decision, reason: explanation.reason.code(), sentence, needs_entry }
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
