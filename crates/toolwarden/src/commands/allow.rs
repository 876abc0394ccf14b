//! `allow` and `disallow`: change the user's list where it takes effect, then explain again (ALLOW-4).

use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use toolwarden_core::name::shown;
use toolwarden_core::{BUILTIN_SERVER, Call, Caller, Decision, Door, Entry, FETCH_TOOL, Operation, SHELL_TOOL, Side};
use toolwarden_policy::{Query, decide};
use toolwarden_sources::edit::{self, Added, EditError};
use toolwarden_sources::{List, Locations};

use crate::cli::{EntryArguments, Places, PolicyArguments};
use crate::environment;
use crate::output::{self, BadInput, Exit};
use crate::wire;

#[derive(Serialize)]
struct Outcome {
    outcome: &'static str,
    entry: String,
    places: Vec<String>,
    remark: Option<String>,
    /// What a call of this entry would meet now.
    decision: Option<&'static str>,
    reason: Option<&'static str>,
    still_granted_by: Vec<String>,
}

pub fn add(places: &Places, arguments: &EntryArguments) -> Result<Exit> {
    refuse_useless(arguments)?;
    let locations = environment::locations(places, arguments.workspace.as_deref())?;
    // A policy that cannot be read is said before anything is changed.
    wire::open(places, &policy_arguments(arguments))?;
    let user = arguments.user.as_deref().unwrap_or(&locations.user);
    let added = edit::add_entry(&locations, user, list(arguments), &arguments.entry).map_err(as_input)?;
    let (outcome, entry, place, remark) = match added {
        Added::Added { place, remark } => ("added", arguments.entry.clone(), place, remark),
        Added::AlreadyThere { entry, place } => ("already_there", entry, place, None),
        Added::CoveredBy { entry, place } => ("covered", entry, place, None),
    };
    let again = explain_again(places, arguments, &locations)?;
    if arguments.format.json {
        output::json(&Outcome {
            outcome,
            entry,
            places: vec![place],
            remark,
            decision: again.as_ref().map(|(decision, _, _)| decision.as_str()),
            reason: again.as_ref().map(|(_, code, _)| *code),
            still_granted_by: Vec::new(),
        })?;
        return Ok(Exit::Done);
    }
    let said = match outcome {
        "added" => format!("added `{entry}` to {place}"),
        "already_there" => format!("`{entry}` is already in {place}; nothing changed"),
        _ => format!("`{entry}` in {place} covers it already; nothing changed"),
    };
    output::text(&format!("{said}\n"))?;
    remark.iter().for_each(|remark| output::remark(remark));
    if let Some((decision, code, sentence)) = again.filter(|(decision, _, _)| *decision != Decision::Allow) {
        let word = if decision == Decision::Hold { "still be held" } else { "be denied" };
        output::text(&format!("but such a call would {word}: {sentence} ({code})\n"))?;
    }
    Ok(Exit::Done)
}

pub fn remove(places: &Places, arguments: &EntryArguments) -> Result<Exit> {
    let locations = environment::locations(places, arguments.workspace.as_deref())?;
    let user = arguments.user.as_deref().unwrap_or(&locations.user);
    let removed = edit::remove_entry(&locations, user, list(arguments), &arguments.entry).map_err(as_input)?;
    let still: Vec<String> =
        removed.still_granted_by.iter().map(|(entry, place)| format!("`{entry}` in {place}")).collect();
    let outcome = if removed.places.is_empty() { "not_there" } else { "removed" };
    if arguments.format.json {
        let entry = arguments.entry.clone();
        output::json(&Outcome {
            outcome,
            entry,
            places: removed.places,
            remark: None,
            decision: None,
            reason: None,
            still_granted_by: still,
        })?;
        return Ok(Exit::Done);
    }
    let said = match removed.places.as_slice() {
        [] => format!("`{}` is in no list you can change here; nothing changed", shown(&arguments.entry)),
        places => format!("removed `{}` from {}", shown(&arguments.entry), places.join(" and ")),
    };
    output::text(&format!("{said}\n"))?;
    if !still.is_empty() {
        output::text(&format!("but the same is still allowed by {}\n", still.join(", ")))?;
    }
    Ok(Exit::Done)
}

fn list(arguments: &EntryArguments) -> List {
    if arguments.shell { List::Terminal } else { List::Mcp }
}

fn as_input(error: EditError) -> anyhow::Error {
    match error {
        EditError::Invalid { .. } | EditError::Broken { .. } => BadInput(error.to_string()).into(),
        other => other.into(),
    }
}

/// Entries that are well-formed but could never do what they seem to (MODE-4, SHELL-1).
fn refuse_useless(arguments: &EntryArguments) -> Result<()> {
    let Some(Entry { server, tool: Side::Name(tool) }) =
        Entry::parse(&arguments.entry).ok().filter(|_| !arguments.shell)
    else {
        return Ok(());
    };
    let advice = if Operation::from_reserved_name(&tool) == Some(Operation::ReadResource) {
        format!("only `{server}:*` lets resources be read unasked")
    } else if tool.contains('/') {
        "`/` is reserved: no tool may have it in its name, and prompts and completion never ask".to_owned()
    } else if server == Side::Name(BUILTIN_SERVER.to_owned()) && tool == SHELL_TOOL {
        "commands have their own entries: `toolwarden allow --shell 'command:arguments'`".to_owned()
    } else if server == Side::Name(BUILTIN_SERVER.to_owned()) && tool == FETCH_TOOL {
        "a fetch has no allowlist".to_owned()
    } else {
        return Ok(());
    };
    Err(BadInput(format!("`{}` would allow nothing: {advice}", shown(&arguments.entry))).into())
}

fn policy_arguments(arguments: &EntryArguments) -> PolicyArguments {
    PolicyArguments { workspace: arguments.workspace.clone(), catalog: Vec::new() }
}

/// What calls the entry is meant for would meet now: the best answer among a few of them. A wildcard
/// stands for some tool, or for some argument.
fn explain_again(
    places: &Places,
    arguments: &EntryArguments,
    locations: &Locations,
) -> Result<Option<(Decision, &'static str, String)>> {
    let house = wire::open_quietly(places, &policy_arguments(arguments))?;
    let user = arguments.user.as_deref().unwrap_or(&locations.user);
    let caller = Arc::new(if user == locations.user { Caller::local_person(user) } else { Caller::person(user) });
    let calls = if arguments.shell { shell_calls(&arguments.entry) } else { tool_call(&arguments.entry) };
    let answers = calls.into_iter().map(|call| {
        let mut query = Query::new(caller.clone(), call, Door::Explain, environment::now());
        query.workspace.clone_from(&house.locations.workspace);
        let verdict = decide(&house.policy, &query);
        let explanation = verdict.explanation();
        let detail = explanation.detail.as_deref().map(|detail| format!("; {}", shown(detail))).unwrap_or_default();
        let message = format!("{}{detail}", explanation.message(&query));
        (explanation.decision, explanation.reason.code(), message)
    });
    Ok(answers.min_by_key(|(decision, _, _)| *decision))
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
