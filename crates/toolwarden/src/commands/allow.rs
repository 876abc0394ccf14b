//! `allow` and `disallow`: change the user's list where it takes effect, then explain again (ALLOW-4).

use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use toolwarden_core::{Call, Caller, Decision, Door, Entry, Side};
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
    let locations = environment::locations(places, arguments.workspace.as_deref())?;
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
        [] => format!("`{}` is in no list you can change here; nothing changed", arguments.entry),
        places => format!("removed `{}` from {}", arguments.entry, places.join(" and ")),
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

/// What a call that the entry is meant for would meet now. A wildcard stands for some tool.
fn explain_again(
    places: &Places,
    arguments: &EntryArguments,
    locations: &Locations,
) -> Result<Option<(Decision, &'static str, String)>> {
    let policy = PolicyArguments { workspace: arguments.workspace.clone(), catalog: Vec::new() };
    let house = wire::open(places, &policy)?;
    let user = arguments.user.as_deref().unwrap_or(&locations.user);
    let caller = if user == locations.user { Caller::local_person(user) } else { Caller::person(user) };
    let Some(call) = (if arguments.shell { shell_call(&arguments.entry) } else { tool_call(&arguments.entry) }) else {
        return Ok(None);
    };
    let mut query = Query::new(Arc::new(caller), call, Door::Explain, environment::now());
    query.workspace.clone_from(&house.locations.workspace);
    let verdict = decide(&house.policy, &query);
    let explanation = verdict.explanation();
    Ok(Some((explanation.decision, explanation.reason.code(), explanation.message(&query))))
}

fn tool_call(entry: &str) -> Option<Call> {
    let entry = Entry::parse(entry).ok()?;
    let name = |side: Side, any: &str| match side {
        Side::Any => any.to_owned(),
        Side::Name(name) => name,
    };
    Some(Call::mcp(name(entry.server, "some-server"), name(entry.tool, "some-tool"), None))
}

fn shell_call(entry: &str) -> Option<Call> {
    let (base, arguments) = entry.split_once(':').unwrap_or((entry, ""));
    let command = format!("{base} {}", arguments.replace('*', ""));
    Some(Call::shell(command.trim(), None))
}
