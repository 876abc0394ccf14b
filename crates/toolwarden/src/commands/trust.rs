//! `trust`: let the policy files of a workspace count, as they are now. It never asks.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use toolwarden_control::operations::trust_add::{Outcome, Request};
use toolwarden_control::operations::trust_list::Trusted;
use toolwarden_control::operations::{Nothing, TrustAdd, TrustList, TrustRemove};
use toolwarden_core::name::shown;
use toolwarden_sources::{Finding, check_file};

use crate::clerk::{Desk, warn_of_server};
use crate::output::{self, Exit, finding_text, remark_text};
use toolwarden_cli::{Places, TrustArguments};

#[derive(Serialize)]
struct Removed {
    directory: String,
    was_trusted: bool,
}

pub fn run(places: &Places, arguments: &TrustArguments) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    match &arguments.directory {
        None => print(&desk.ask::<TrustList>(Nothing {})?.directories, arguments),
        Some(directory) if arguments.remove => remove(&desk, directory, arguments),
        Some(directory) => add(&desk, directory, arguments),
    }
}

fn add(desk: &Desk, directory: &Path, arguments: &TrustArguments) -> Result<Exit> {
    let trusted = desk.ask::<TrustAdd>(Request { place: desk.place(), directory: directory.to_path_buf() })?;
    trusted.findings.iter().for_each(|finding| output::remark(&remark_text(finding)));
    let exit = match warn_of_server(trusted.not_in_force.as_deref()) {
        Exit::Done if is_unusable(&trusted) => Exit::Failed,
        exit => exit,
    };
    if arguments.format.json {
        output::json(&Trusted { directory: trusted.directory, files: trusted.files })?;
        return Ok(exit);
    }
    for (said, words) in [("newly allowed there", &trusted.widens), ("no longer counts there", &trusted.lost)] {
        for words in words {
            output::text(&format!("{said}: {}\n", shown(words)))?;
        }
    }
    let what = if trusted.files.is_empty() {
        "it has no policy files yet; those that appear later need `toolwarden trust` again".to_owned()
    } else {
        format!("these files count from now on, until they change: {}", trusted.files.join(", "))
    };
    output::text(&format!("trusted {}: {what}\n", shown(&trusted.directory)))?;
    if trusted.files.iter().any(|file| file.ends_with("toolwarden.toml")) {
        output::text(
            "its toolwarden.toml is used there instead of your own config: what your own restricts does not count in \
             this directory\n",
        )?;
    }
    Ok(exit)
}

/// Says which of the files cannot be read as what they are: trusted, they still grant nothing.
fn is_unusable(trusted: &Outcome) -> bool {
    let told: Vec<String> = trusted.findings.iter().map(remark_text).collect();
    let mut is_unusable = false;
    for file in &trusted.files {
        let errors: Vec<_> =
            check_file(&Path::new(&trusted.directory).join(file)).into_iter().filter(Finding::is_error).collect();
        // Most of them were told as they were found.
        let texts = errors.iter().map(|finding| finding_text(&finding.of_policy()));
        texts.filter(|text| !told.contains(text)).for_each(|text| output::remark(&text));
        if !errors.is_empty() {
            output::remark(&format!(
                "{} has faults: what is wrong in it grants nothing until it is mended",
                shown(file)
            ));
            is_unusable = true;
        }
    }
    is_unusable
}

fn remove(desk: &Desk, directory: &Path, arguments: &TrustArguments) -> Result<Exit> {
    let removed = desk.ask::<TrustRemove>(Request { place: desk.place(), directory: directory.to_path_buf() })?;
    let exit = match warn_of_server(removed.not_in_force.as_deref()) {
        Exit::Done if !removed.was_trusted => Exit::BadInput,
        exit => exit,
    };
    if arguments.format.json {
        output::json(&Removed { directory: directory.display().to_string(), was_trusted: removed.was_trusted })?;
        return Ok(exit);
    }
    let said = if removed.was_trusted { "is no longer trusted" } else { "was not trusted; nothing changed" };
    output::text(&format!("{} {said}\n", shown(&directory.to_string_lossy())))?;
    Ok(exit)
}

fn print(rows: &[Trusted], arguments: &TrustArguments) -> Result<Exit> {
    if arguments.format.json {
        output::json(&rows)?;
    } else if rows.is_empty() {
        output::text("no directory is trusted\n")?;
    } else {
        for row in rows {
            output::text(&format!("{}  {}\n", shown(&row.directory), row.files.join(", ")))?;
        }
    }
    Ok(Exit::Done)
}
