//! `allow` and `disallow`: change the user's list where it takes effect, then explain again (ALLOW-4).

use anyhow::Result;
use serde::Serialize;
use toolwarden_control::operations::allowlist_add::Request;
use toolwarden_control::operations::{AllowlistAdd, AllowlistRemove};
use toolwarden_core::name::shown;

use crate::clerk::{Desk, warn_of_server};
use crate::output::{self, Exit, remark_text};
use toolwarden_cli::{EntryArguments, Places};

#[derive(Serialize)]
struct Outcome {
    outcome: String,
    entry: String,
    places: Vec<String>,
    remark: Option<String>,
    /// What a call of this entry would meet now.
    decision: Option<String>,
    reason: Option<String>,
    still_granted_by: Vec<String>,
}

pub fn add(places: &Places, arguments: &EntryArguments) -> Result<Exit> {
    let desk = Desk::open(places, arguments.workspace.as_deref())?;
    let done = desk.ask::<AllowlistAdd>(request(&desk, arguments))?;
    done.findings.iter().for_each(|finding| output::remark(&remark_text(finding)));
    let exit = warn_of_server(done.not_in_force.as_deref());
    if arguments.format.json {
        output::json(&Outcome {
            outcome: done.outcome,
            entry: done.entry,
            places: vec![done.place],
            remark: done.remark,
            decision: done.decision,
            reason: done.reason,
            still_granted_by: Vec::new(),
        })?;
        return Ok(exit);
    }
    let (entry, place) = (&done.entry, &done.place);
    let said = match done.outcome.as_str() {
        "added" => format!("added `{entry}` to {place}"),
        "already_there" => format!("`{entry}` is already in {place}; nothing changed"),
        _ => format!("`{entry}` in {place} covers it already; nothing changed"),
    };
    output::text(&format!("{said}\n"))?;
    done.remark.iter().for_each(|remark| output::remark(remark));
    if let Some(decision) = done.decision.filter(|decision| decision != "allow") {
        let word = if decision == "hold" { "still be held" } else { "be denied" };
        let (sentence, code) = (done.sentence.unwrap_or_default(), done.reason.unwrap_or_default());
        output::text(&format!("but such a call would {word}: {sentence} ({code})\n"))?;
    }
    Ok(exit)
}

pub fn remove(places: &Places, arguments: &EntryArguments) -> Result<Exit> {
    let desk = Desk::open(places, arguments.workspace.as_deref())?;
    let removed = desk.ask::<AllowlistRemove>(request(&desk, arguments))?;
    let exit = match warn_of_server(removed.not_in_force.as_deref()) {
        // As for every name that is not found: whoever mistyped an entry must not believe it is gone.
        Exit::Done if removed.places.is_empty() => Exit::BadInput,
        exit => exit,
    };
    let still: Vec<String> =
        removed.still_granted_by.iter().map(|(entry, place)| format!("`{entry}` in {place}")).collect();
    if arguments.format.json {
        let outcome = if removed.places.is_empty() { "not_there" } else { "removed" };
        output::json(&Outcome {
            outcome: outcome.to_owned(),
            entry: arguments.entry.clone(),
            places: removed.places,
            remark: None,
            decision: None,
            reason: None,
            still_granted_by: still,
        })?;
        return Ok(exit);
    }
    let said = match removed.places.as_slice() {
        [] => format!("`{}` is in no list you can change here; nothing changed", shown(&arguments.entry)),
        places => format!("removed `{}` from {}", shown(&arguments.entry), places.join(" and ")),
    };
    output::text(&format!("{said}\n"))?;
    if !still.is_empty() {
        output::text(&format!("but the same is still allowed by {}\n", still.join(", ")))?;
    }
    Ok(exit)
}

fn request(desk: &Desk, arguments: &EntryArguments) -> Request {
    Request {
        place: desk.place(),
        entry: arguments.entry.clone(),
        shell: arguments.shell,
        user: arguments.user.clone(),
    }
}
