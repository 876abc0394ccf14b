//! `tools list|diff|accept`: what was accepted of servers' definitions, what changed, and a person's consent.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use toolwarden_control::operations::{ToolsAccept, ToolsList, tools_accept, tools_list};
use toolwarden_control::{DefinitionView, WaitingView};
use toolwarden_core::name::shown;
use toolwarden_guard::pins::{Change, Standing};

use crate::clerk::{Desk, warn_of_server};
use crate::cli::{Places, ToolsCommand};
use crate::output::{self, BadInput, Colour, Exit, coloured};

/// How much of a description is shown in a list, and of a text that stays the same beside one that changed.
const LONGEST_DESCRIPTION: usize = 60;
const BESIDE: usize = 40;

pub fn run(places: &Places, command: &ToolsCommand) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    match command {
        ToolsCommand::List { server, format } => {
            let found = desk.ask::<ToolsList>(tools_list::Request { server: server.clone(), name: None })?;
            if format.json {
                output::json(&found.definitions)?
            } else {
                output::text(&list(&found.definitions))?
            }
            Ok(warn_of_unreadable(&found.unreadable))
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
                _ if format.json => output::json(&Waits { definitions: &found.definitions, waiting: &found.waiting })?,
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
                output::json(&done.accepted)?;
            } else {
                let words = |one: &DefinitionView| format!("accepted {}", address(one));
                let text: Vec<String> = done.waited.iter().map(|one| with_changes(&words(one), one)).collect();
                output::text(&text.concat())?;
            }
            Ok(exit)
        }
    }
}

/// What waits, as scripts read it.
#[derive(Serialize)]
struct Waits<'a> {
    definitions: &'a [DefinitionView],
    /// What `tools accept SERVER --version` needs, by server.
    waiting: &'a BTreeMap<String, String>,
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

fn list(found: &[DefinitionView]) -> String {
    if found.is_empty() {
        return "nothing was seen of any server yet: start `toolwarden serve` and connect a client\n".to_owned();
    }
    let width = found.iter().map(|one| address(one).chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for one in found {
        let standing = standing(one);
        let description = one.description.as_deref().map(|all| shorten(&shown(all))).unwrap_or_default();
        let how = one.how.as_deref().unwrap_or("not accepted");
        text.push_str(&format!("{:<width$}  {standing}  {:<12}  {description}\n", address(one), shown(how)));
    }
    if found.iter().any(|one| one.standing != Standing::Accepted) {
        text.push_str("\nWhat changed or is new is not shown to clients; see `toolwarden tools diff`.\n");
    }
    text
}

fn standing(one: &DefinitionView) -> String {
    let (words, colour) = match one.standing {
        Standing::Accepted if one.configured && one.gone => ("gone", Colour::Dim),
        Standing::Accepted if one.configured => ("accepted", Colour::Green),
        Standing::Accepted => ("not configured", Colour::Dim),
        Standing::Changed => ("changed", Colour::Red),
        Standing::New => ("new", Colour::Yellow),
    };
    coloured(words, colour)
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= LONGEST_DESCRIPTION {
        return text.to_owned();
    }
    let kept: String = text.chars().take(LONGEST_DESCRIPTION - 1).collect();
    format!("{}…", kept.trim_end())
}

/// What waits, and how to accept exactly that. `whole` has the digests of servers that are shown whole.
fn diff(found: &[DefinitionView], whole: Option<&BTreeMap<String, String>>) -> String {
    if found.is_empty() {
        return "nothing waits: every definition that was seen is accepted\n".to_owned();
    }
    let mut text = String::new();
    for one in found {
        let standing = match one.standing {
            Standing::New => "is new",
            Standing::Changed | Standing::Accepted => "changed",
        };
        text.push_str(&with_changes(&format!("{} {standing}", address(one)), one));
        text.push('\n');
    }
    for (server, digest) in whole.into_iter().flatten() {
        let server = shown(server);
        text.push_str(&format!("Accept all of it with: toolwarden tools accept {server} --version {digest}\n"));
    }
    for one in found.iter().filter(|_| whole.is_none()) {
        for WaitingView { version, .. } in one.waiting.iter().filter(|waiting| !waiting.too_large) {
            text.push_str(&format!("Accept it with: toolwarden tools accept {} --version {version}\n", address(one)));
        }
    }
    text
}

fn with_changes(words: &str, one: &DefinitionView) -> String {
    let mut text = String::new();
    for waiting in &one.waiting {
        let WaitingView { version, first_seen, offered, too_large, changes } = waiting;
        let offered = match offered {
            true => ", offered now",
            false if one.gone => ", not listed any more",
            false => "",
        };
        text.push_str(&format!("{words}, version {version}{offered}, first seen {first_seen}\n"));
        if *too_large {
            text.push_str("  it is larger than 256 KiB, so it was not kept and cannot be accepted\n");
        }
        changes.iter().for_each(|change| push_change(&mut text, change));
    }
    text
}

/// Both sides of a change, one below the other; what is the same in long texts is left out.
fn push_change(text: &mut String, change: &Change) {
    let path = if change.path.is_empty() { "text".into() } else { shown(&change.path) };
    let (old, new) = match (&change.old, &change.new) {
        (Some(old), Some(new)) => (Some(around(old, new)), Some(around(new, old))),
        (old, new) => (old.clone(), new.clone()),
    };
    for (sign, side, colour) in [('-', old, Colour::Red), ('+', new, Colour::Green)] {
        if let Some(side) = side {
            let line = format!("  {sign} {path}: {}", shown(&side));
            text.push_str(&coloured(&line, colour));
            text.push('\n');
        }
    }
}

/// A text with only a little of what it shares with another at its beginning and end.
fn around(text: &str, other: &str) -> String {
    let (mine, theirs): (Vec<char>, Vec<char>) = (text.chars().collect(), other.chars().collect());
    let begin = mine.iter().zip(&theirs).take_while(|(one, two)| one == two).count();
    let most = mine.len().min(theirs.len()) - begin;
    let end = mine.iter().rev().zip(theirs.iter().rev()).take(most).take_while(|(one, two)| one == two).count();
    let (skip, keep) = (begin.saturating_sub(BESIDE), mine.len() - end.saturating_sub(BESIDE));
    let middle: String = mine.iter().skip(skip).take(keep - skip).collect();
    let before = if skip > 0 { "…" } else { "" };
    let after = if keep < mine.len() { "…" } else { "" };
    format!("{before}{middle}{after}")
}

#[cfg(test)]
#[test]
fn of_long_texts_the_part_that_changed_is_shown() {
    let same = "x".repeat(100);
    let (old, new) = (format!("{same}reads{same}"), format!("{same}sends{same}"));
    let beside = "x".repeat(BESIDE);
    // They share the last two letters, too.
    let rest = "x".repeat(BESIDE - 2);
    assert_eq!(around(&old, &new), format!("…{beside}reads{rest}…"));
    assert_eq!(around("a", "b"), "a");
    assert_eq!(around("aa", "a"), "aa");
    assert_eq!(around("", "a"), "");
}
