//! `trust`: let the policy files of a workspace count, as they are now. It never asks.

use anyhow::Result;
use serde::Serialize;
use toolwarden_core::name::shown;
use toolwarden_sources::trust;

use crate::cli::{Places, TrustArguments};
use crate::environment;
use crate::output::{self, BadInput, Exit, finding_text};
use crate::wire;

#[derive(Serialize)]
struct Removed {
    directory: String,
    was_trusted: bool,
}

#[derive(Serialize)]
struct TrustedOut {
    directory: String,
    files: Vec<String>,
}

pub fn run(places: &Places, arguments: &TrustArguments) -> Result<Exit> {
    let locations = environment::locations(places, None)?;
    let Some(directory) = &arguments.directory else {
        let rows: Vec<TrustedOut> = trust::list(&locations)?
            .into_iter()
            .map(|(directory, trusted)| TrustedOut { directory, files: trusted.files.into_keys().collect() })
            .collect();
        return print(&rows, arguments);
    };
    if arguments.remove {
        let was_trusted = trust::untrust(&locations, directory)?;
        if arguments.format.json {
            output::json(&Removed { directory: directory.display().to_string(), was_trusted })?;
            return Ok(Exit::Done);
        }
        let said = if was_trusted { "is no longer trusted" } else { "was not trusted; nothing changed" };
        output::text(&format!("{} {said}\n", shown(&directory.to_string_lossy())))?;
        return Ok(Exit::Done);
    }
    let trusted = trust::trust(&locations, directory, environment::now()).map_err(|error| match error {
        trust::TrustError::NotADirectory(_) | trust::TrustError::NotText(_) | trust::TrustError::File { .. } => {
            anyhow::Error::from(BadInput(error.to_string()))
        }
        stored @ trust::TrustError::Stored(_) => stored.into(),
    })?;
    trusted.findings.iter().for_each(|finding| output::remark(&finding_text(&wire::convert(finding))));
    if arguments.format.json {
        output::json(&TrustedOut { directory: trusted.directory.display().to_string(), files: trusted.files })?;
        return Ok(Exit::Done);
    }
    let what = if trusted.files.is_empty() {
        "it has no policy files yet; those that appear later need `toolwarden trust` again".to_owned()
    } else {
        format!("these files count from now on, until they change: {}", trusted.files.join(", "))
    };
    output::text(&format!("trusted {}: {what}\n", shown(&trusted.directory.to_string_lossy())))?;
    Ok(Exit::Done)
}

fn print(rows: &[TrustedOut], arguments: &TrustArguments) -> Result<Exit> {
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
