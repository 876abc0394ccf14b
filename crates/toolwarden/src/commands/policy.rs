//! `policy confirm`: a person agrees to what files made wider.

use anyhow::Result;
use toolwarden_control::operations::PolicyConfirm;
use toolwarden_control::operations::policy_confirm::Request;

use crate::clerk::{Desk, warn_of_server};
use crate::cli::{Places, PolicyCommand};
use crate::output::{self, Exit};

pub fn run(places: &Places, command: &PolicyCommand) -> Result<Exit> {
    let PolicyCommand::Confirm { mark, format } = command;
    let done = Desk::open(places, None)?.ask::<PolicyConfirm>(Request { mark: mark.to_ascii_lowercase() })?;
    let exit = warn_of_server(done.not_in_force.as_deref());
    if format.json {
        output::json(&done)?;
    } else if exit == Exit::Done {
        output::text(&format!("agreed to the policy {}\n", done.mark))?;
    }
    Ok(exit)
}
