//! How commands that change the store read what they are given, and say what they did.

use std::io::Read as _;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;
use toolwarden_control::{Done, Terms};
use toolwarden_core::name::shown;

use crate::clerk::warn_of_server;
use crate::output::{self, BadInput, Exit, remark_text};
use toolwarden_cli::ChangeArguments;

/// No definition of a person is larger.
const LARGEST: u64 = 4 * 1024 * 1024;

/// What a person said of a change.
pub fn terms(arguments: &ChangeArguments) -> Terms {
    Terms { reason: arguments.reason.clone(), dry_run: arguments.dry_run, if_version: arguments.if_version }
}

/// Says what a change did, what it newly allows first.
pub fn say(done: &Done, said: &str, json: Option<&impl Serialize>) -> Result<Exit> {
    done.findings.iter().for_each(|finding| output::remark(&remark_text(finding)));
    let exit = warn_of_server(done.not_in_force.as_deref());
    if let Some(outcome) = json {
        output::json(outcome)?;
        return Ok(exit);
    }
    let would = if done.dry_run { "would newly allow" } else { "newly allowed" };
    for words in &done.widens {
        output::text(&format!("{would}: {}\n", shown(words)))?;
    }
    let text = match (done.changed, done.dry_run) {
        (false, _) => format!("{said}: nothing changed, it is so already\n"),
        (true, true) => format!("not done, only tried: {said}; it would make version {}\n", done.version),
        (true, false) => format!("{said} (version {})\n", done.version),
    };
    output::text(&text)?;
    Ok(exit)
}

/// The text of a file, or of stdin for `-`.
pub fn text_of(path: &Path) -> Result<String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(LARGEST).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LARGEST).read_to_string(&mut text))
    };
    read.map_err(|error| BadInput(format!("{}: {error}", path.display())))?;
    Ok(text)
}

/// The JSON of a file.
pub fn json_of(path: &Path) -> Result<Value> {
    let read = serde_json::from_str(&text_of(path)?);
    Ok(read.map_err(|error| BadInput(format!("{}: {error}", path.display())))?)
}

/// A value as people write it: JSON, or a text.
pub fn value_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
