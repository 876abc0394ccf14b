//! `tools`: switch and scope; what was accepted of servers' definitions, what changed, and a person's consent.

mod comparison;
mod listing;

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use toolwarden_control::DefinitionView;
use toolwarden_control::operations::{ToolsAccept, ToolsList, ToolsSet, tools_accept, tools_list, tools_set};
use toolwarden_core::name::shown;

use crate::changed;
use crate::clerk::{Desk, warn_of_server};
use crate::commands::tools::comparison::{diff, with_changes};
use crate::commands::tools::listing::list;
use crate::output::{self, BadInput, Exit};
use toolwarden_cli::{ChangeArguments, Format, Places, ToolsCommand};

pub fn run(places: &Places, command: &ToolsCommand) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    match command {
        ToolsCommand::List { server, format } => {
            let found = desk.ask::<ToolsList>(tools_list::Request { server: server.clone(), name: None })?;
            if format.json {
                output::json(&for_scripts(found.definitions))?
            } else {
                output::text(&list(&found.definitions))?
            }
            found.failing.iter().for_each(|why| output::remark(&format!("toolwarden: {}", shown(why))));
            Ok(warn_of_unreadable(&found.unreadable))
        }
        ToolsCommand::Enable { tool, change, format } => switch(&desk, tool, true, (change, *format)),
        ToolsCommand::Disable { tool, change, format } => switch(&desk, tool, false, (change, *format)),
        ToolsCommand::Scope { tool, scope, change, format } => {
            let request = tools_set::Request {
                tool: tool.clone(),
                scope: Some(scope.clone()),
                terms: changed::terms(change),
                ..tools_set::Request::default()
            };
            let outcome = desk.ask::<ToolsSet>(request)?;
            let said = match &outcome.scope {
                Some(scope) => format!("{} is for {}", shown(&outcome.tool), scope_words(scope)),
                None => format!("{} has no scope of its own any more", shown(&outcome.tool)),
            };
            changed::say(&outcome.done, &said, format.json.then_some(&outcome))
        }
        ToolsCommand::Diff { definition, format } => {
            let (server, name) = match definition {
                Some(definition) => split(definition),
                None => (None, None),
            };
            let mut found = desk.ask::<ToolsList>(tools_list::Request { server, name: name.clone() })?;
            found.definitions.retain(|one| !one.waiting.is_empty());
            if name.is_some() {
                // Of one definition it would accept more than was shown.
                found.waiting.clear();
            }
            match definition {
                _ if format.json => {
                    let definitions = for_scripts(std::mem::take(&mut found.definitions));
                    output::json(&Waits { definitions, waiting: &found.waiting })?;
                }
                Some(asked) if found.definitions.is_empty() => output::text(&nothing_waits(asked, &found))?,
                _ => output::text(&diff(&found.definitions, name.is_none().then_some(&found.waiting)))?,
            }
            Ok(warn_of_unreadable(&found.unreadable))
        }
        ToolsCommand::Accept { definition, version, format } => {
            let (Some(server), name) = split(definition) else {
                return Err(BadInput("write SERVER, or SERVER:TOOL".to_owned()).into());
            };
            let request = tools_accept::Request { server, name, version: version.clone() };
            let done = desk.ask::<ToolsAccept>(request)?;
            let exit = warn_of_server(done.not_in_force.as_deref());
            if format.json {
                output::json(&for_scripts(done.accepted))?;
            } else {
                let words = |one: &DefinitionView| format!("accepted {}", address(one));
                let text: Vec<String> = done.waited.iter().map(|one| with_changes(&words(one), one)).collect();
                let rest = done.accepted.iter().filter(|one| !one.waiting.is_empty()).map(address);
                let rest: Vec<String> = rest
                    .map(|one| format!("another version of {one} waits; see `toolwarden tools diff {one}`\n"))
                    .collect();
                output::text(&[text, rest].concat().concat())?;
            }
            Ok(exit)
        }
    }
}

fn scope_words(scope: &str) -> &str {
    match scope {
        "both" => "agents of both sides",
        "pm" => "agents of the pm side",
        _ => "agents of the sandbox side",
    }
}

fn switch(desk: &Desk, tool: &str, enabled: bool, (change, format): (&ChangeArguments, Format)) -> Result<Exit> {
    let request = tools_set::Request {
        tool: tool.to_owned(),
        enabled: Some(enabled),
        terms: changed::terms(change),
        ..tools_set::Request::default()
    };
    let outcome = desk.ask::<ToolsSet>(request)?;
    let said = format!("{} is switched {}", shown(&outcome.tool), if enabled { "on" } else { "off for everyone" });
    let exit = changed::say(&outcome.done, &said, format.json.then_some(&outcome))?;
    if outcome.still_off_by.is_empty() {
        return Ok(exit);
    }
    let others: Vec<_> = outcome.still_off_by.iter().map(|source| shown(source)).collect();
    output::remark(&format!("but it stays off: it is switched off by {}, too", others.join(" and ")));
    Ok(Exit::Failed)
}

/// What waits, as scripts read it.
#[derive(Serialize)]
struct Waits<'a> {
    definitions: Vec<DefinitionView>,
    /// What `tools accept SERVER --version` needs, by server.
    waiting: &'a BTreeMap<String, String>,
}

/// Scripts read every change by its place; they are spared the same in words.
fn for_scripts(mut found: Vec<DefinitionView>) -> Vec<DefinitionView> {
    found.iter_mut().flat_map(|one| &mut one.waiting).for_each(|waiting| waiting.told.clear());
    found
}

/// Says of which servers nothing can be said; the exit code must not hide it.
fn warn_of_unreadable(unreadable: &[String]) -> Exit {
    unreadable.iter().for_each(|why| output::remark(&format!("toolwarden: {}", shown(why))));
    if unreadable.is_empty() { Exit::Done } else { Exit::Failed }
}

/// Nothing waits of what was asked for, though something may beside it.
fn nothing_waits(asked: &str, found: &tools_list::Outcome) -> String {
    let server = asked.split_once(':').map_or(asked, |(server, _)| server);
    let beside = match found.others_waiting {
        0 => String::new(),
        1 => format!(" (1 other definition of {} does)", shown(server)),
        more => format!(" ({more} other definitions of {} do)", shown(server)),
    };
    format!("{}: nothing waits{beside}\n", shown(asked))
}

/// `SERVER` or `SERVER:NAME`.
fn split(written: &str) -> (Option<String>, Option<String>) {
    match written.split_once(':') {
        None => (Some(written.to_owned()), None),
        Some((server, name)) => (Some(server.to_owned()), Some(name.to_owned())),
    }
}

fn address(one: &DefinitionView) -> String {
    format!("{}:{}", shown(&one.server), shown(&one.name))
}
