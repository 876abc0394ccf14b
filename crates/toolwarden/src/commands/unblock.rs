//! `unblock`: takes a "deny always" back.

use anyhow::Result;
use toolwarden_control::operations::{BlocksRemove, blocks_remove};
use toolwarden_core::name::shown;

use crate::clerk::{Desk, warn_of_server};
use crate::output::{self, Exit};
use toolwarden_cli::{Places, UnblockArguments};

pub fn run(places: &Places, arguments: &UnblockArguments) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    let request = blocks_remove::Request { entry: arguments.entry.clone(), user: arguments.user.clone() };
    let done = desk.ask::<BlocksRemove>(request)?;
    if arguments.format.json {
        output::json(&done)?;
    } else {
        output::text(&format!("`{}` is no longer blocked for {}\n", shown(&done.entry), shown(&done.user)))?;
    }
    Ok(warn_of_server(done.not_in_force.as_deref()))
}
