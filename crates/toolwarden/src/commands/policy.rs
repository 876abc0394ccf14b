//! `policy`: the versions of what was decided, and agreeing to what files made wider.

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;
use toolwarden_control::Done;
use toolwarden_control::operations::policy_diff::View;
use toolwarden_control::operations::{
    PolicyConfirm, PolicyDiff, PolicyHistory, PolicyRollback, policy_confirm, policy_diff, policy_history,
    policy_rollback,
};
use toolwarden_core::name::shown;

use crate::changed;
use crate::clerk::{Desk, warn_of_server};
use crate::output::{self, BadInput, Colour, Exit, coloured};
use crate::table::{self, Cell, Last};
use toolwarden_cli::{Places, PolicyCommand};

pub fn run(places: &Places, command: &PolicyCommand) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    match command {
        PolicyCommand::Confirm { mark, format } => {
            let done = desk.ask::<PolicyConfirm>(policy_confirm::Request { mark: mark.clone() })?;
            let exit = warn_of_server(done.not_in_force.as_deref());
            if format.json {
                output::json(&done)?;
            } else {
                output::text(&format!("agreed to the policy {}\n", done.mark))?;
            }
            Ok(exit)
        }
        PolicyCommand::History { limit, before, format } => {
            let request = policy_history::Request { limit: *limit, before: *before };
            let versions = desk.ask::<PolicyHistory>(request)?.versions;
            if format.json {
                output::json(&versions)?
            } else {
                output::text(&history(&versions))?
            }
            Ok(Exit::Done)
        }
        PolicyCommand::Diff { from, to, format } => {
            let found = desk.ask::<PolicyDiff>(policy_diff::Request { from: *from, to: *to })?;
            if format.json {
                output::json(&found)?
            } else {
                output::text(&diff(&found))?
            }
            Ok(Exit::Done)
        }
        PolicyCommand::Rollback { version, last, change, format } => {
            let mut terms = changed::terms(change);
            let version = match version {
                Some(version) => *version,
                None if !last => {
                    let message = "say which version to go back to, as `toolwarden policy history` shows it, or --last to \
                                   take back the last change";
                    return Err(BadInput(message.to_owned()).into());
                }
                None => {
                    let last = desk.ask::<PolicyHistory>(policy_history::Request { limit: Some(1), before: None })?;
                    let last = last.versions.first().map_or(0, |last| last.version);
                    // Of exactly the change that was looked at.
                    terms.if_version.get_or_insert(last);
                    last.saturating_sub(1)
                }
            };
            let request = policy_rollback::Request { version, terms };
            let done = desk.ask::<PolicyRollback>(request)?;
            let files = changed_files(&desk, version)?;
            let what = if files.is_empty() { "everything is as it was" } else { "the stored records are as they were" };
            let said = format!("{what} at version {version}");
            let back = WentBack { done: &done, files_left: &files };
            let exit = changed::say(&done, &said, format.json.then_some(&back))?;
            if !files.is_empty() {
                output::remark(&format!(
                    "files that changed since then are left as they are, and what they allow counts: {}; see `toolwarden \
                     policy diff {version}`, and edit them or use `toolwarden disallow`",
                    files.join(", ")
                ));
            }
            Ok(exit)
        }
    }
}

/// What a rollback did, for scripts.
#[derive(Serialize)]
struct WentBack<'a> {
    #[serde(flatten)]
    done: &'a Done,
    /// Policy files that changed since that version.
    files_left: &'a [String],
}

/// The policy files that are others by now than at a version. A rollback leaves them as they are.
fn changed_files(desk: &Desk, version: u64) -> Result<Vec<String>> {
    let found = desk.ask::<PolicyDiff>(policy_diff::Request { from: Some(version), to: None })?;
    let files = found.changes.iter().filter(|change| change.kind == toolwarden_core::records::Kind::File.as_str());
    Ok(files.map(|file| shown(&file.name).into_owned()).collect())
}

fn history(versions: &[policy_history::View]) -> String {
    if versions.is_empty() {
        return "nothing was decided here yet\n".to_owned();
    }
    let row = |version: &policy_history::View| {
        let why = version.reason.as_ref().map(|reason| format!(" ({})", shown(reason))).unwrap_or_default();
        vec![
            Cell::plain(version.version.to_string()),
            Cell::plain(format!("{:.0}", version.time)),
            Cell::plain(shown(&version.author)),
            Cell::plain(format!("{}{why}", shown(&version.summary))),
        ]
    };
    table::text(&["VERSION", "TIME", "BY", "WHAT"], versions.iter().map(row).collect(), Last::Whole)
}

fn diff(found: &policy_diff::Outcome) -> String {
    let mut text = format!("from version {} to version {}\n", found.from, found.to);
    if found.changes.is_empty() {
        text.push_str("nothing changed\n");
    }
    for View { kind, owner, name, before, after } in &found.changes {
        let owner = if owner.is_empty() { String::new() } else { format!(" of {}", shown(owner)) };
        text.push_str(&format!("{kind} `{}`{owner}\n", shown(name)));
        for (sign, side, colour) in [("-", before, Colour::Red), ("+", after, Colour::Green)] {
            for line in side.iter().flat_map(lines) {
                text.push_str(&coloured(&format!("  {sign} {line}"), colour));
                text.push('\n');
            }
        }
    }
    for words in &found.widens {
        text.push_str(&format!("newly allowed: {}\n", shown(words)));
    }
    text
}

/// One line for each key.
fn lines(content: &Value) -> Vec<String> {
    match content {
        Value::Object(entries) => {
            entries.iter().map(|(key, value)| format!("{}: {}", shown(key), shown(&value.to_string()))).collect()
        }
        other => vec![shown(&other.to_string()).into_owned()],
    }
}
