//! What calls an entry is meant for would meet now (ALLOW-4): said after every change, because an
//! entry that is stored is not yet an entry that acts.

use std::sync::Arc;

use jiff::Timestamp;
use toolwarden_core::name::shown;
use toolwarden_core::{BUILTIN_SERVER, Call, Caller, Decision, Door, Entry, Operation, Side};
use toolwarden_pins::{self as pins, Kind as PinKind, ServerPins};
use toolwarden_policy::servers::Server;
use toolwarden_policy::{NarrowEntry, Transport, decide};
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

/// The best answer among a few calls. A wildcard stands for every tool that was seen, or for some argument.
pub(super) fn explain_again(
    opened: &Opened,
    locations: &Locations,
    user: &str,
    list: List,
    entry: &str,
    now: Timestamp,
) -> Option<Again> {
    let calls = match list {
        List::Mcp => tool_calls(opened, user, entry),
        List::Terminal => shell_calls(entry).into_iter().map(Example::Real).collect(),
    };
    let answer = |example: Example| match example {
        Example::Real(call) => {
            let pins = pins::read(locations, &call.server).ok();
            explain(opened, locations, user, call, pins.as_ref(), now)
        }
        // Nobody saw this tool, so nothing is known of its definition.
        Example::MadeUp(call) => explain(opened, locations, user, call, None, now),
    };
    if let Some(entry) = NarrowEntry::parse(entry).ok().filter(|_| list == List::Mcp) {
        // Which arguments fit is for the entry to say; what holds the tool whatever they are is told.
        let calls = tool_calls(opened, user, &entry.whole_tool().to_string()).into_iter();
        return calls.map(answer).find(|again| again.decision == Decision::Hold && !again.needs_entry);
    }
    let answers = calls.into_iter().map(answer);
    answers.min_by_key(|again| again.decision)
}

/// A call that an entry is meant for.
enum Example {
    Real(Call),
    /// Its tool or server stands for any.
    MadeUp(Call),
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
    let called = (call.requested_operation() == Operation::CallTool).then_some((PinKind::Tool, &*call.tool));
    let changes = opened.changes_of(&call.server);
    // A tool that nobody ever listed is judged as if its server had always had it (CORE-6).
    let seen = |pins: &ServerPins| called.filter(|(kind, name)| pins.has_seen(*kind, name));
    let definition = pins.map(|pins| pins.definition(seen(pins), changes)).unwrap_or_default();
    let transport = Transport::new(Door::Explain, locations.workspace_root());
    let query = transport.query(Arc::new(caller), call, now).with_definition(definition).without_arguments();
    let files = lookup::files(&opened.policy, &query);
    let query = query.with_files(files);
    let verdict = decide(&opened.policy, &query);
    let explanation = verdict.explanation();
    let detail = explanation.detail.as_deref().map(|detail| format!("; {}", shown(detail))).unwrap_or_default();
    let sentence = format!("{}{detail}", explanation.message(&query));
    let needs_entry = !explanation.candidates.is_empty();
    Again { decision: explanation.decision, reason: explanation.reason.code(), sentence, needs_entry }
}

/// Calls of the tools an entry covers, as far as they were seen; one of a made-up tool where none was.
fn tool_calls(opened: &Opened, user: &str, entry: &str) -> Vec<Example> {
    let Ok(entry) = Entry::parse(entry) else { return Vec::new() };
    if let (Side::Name(server), Side::Name(tool)) = (&entry.server, &entry.tool) {
        return vec![Example::Real(Call::mcp(server.as_str(), tool.as_str(), None))];
    }
    // Commands and fetches are not for these entries to allow.
    let is_meant = |server: &&Arc<Server>| server.is_for(Some(user)) && &*server.name != BUILTIN_SERVER;
    let known = opened.policy.servers().sorted().into_iter().filter(is_meant);
    let mut examples = Vec::new();
    for server in known {
        let covered = |tool: &str| {
            entry.server.covers(&Side::Name(server.name.to_string())) && entry.tool.covers(&Side::Name(tool.to_owned()))
        };
        for tool in server.listed_tools().into_iter().filter(|tool| covered(&tool.name)) {
            examples.push(Example::Real(Call::mcp(server.name.clone(), tool.name.as_str(), None)));
        }
    }
    if examples.is_empty() {
        let name = |side: &Side, any: &str| match side {
            Side::Any => any.to_owned(),
            Side::Name(name) => name.clone(),
        };
        let (server, tool) = (name(&entry.server, "some-server"), name(&entry.tool, "some-tool"));
        examples.push(Example::MadeUp(Call::mcp(server, tool, None)));
    }
    examples
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
