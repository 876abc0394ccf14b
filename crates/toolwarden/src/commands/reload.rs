//! `reload`: the running server reads its files again.

use anyhow::Result;
use toolwarden_control::operations::{PolicyReload, policy_reload};

use crate::clerk::Desk;
use crate::output::{self, Exit};
use toolwarden_cli::{Places, ReloadArguments};

pub fn run(places: &Places, arguments: &ReloadArguments) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    let done = desk.ask::<PolicyReload>(policy_reload::Request {})?;
    if arguments.format.json {
        output::json(&done)?;
    }
    match (done.running, &done.not_in_force) {
        (true, None) => {
            if !arguments.format.json {
                output::text("the policy was read again and is in force\n")?;
            }
            Ok(Exit::Done)
        }
        (true, Some(why)) => {
            output::remark(&format!("toolwarden: the former policy stays in force: {why}"));
            Ok(Exit::Failed)
        }
        (false, _) => {
            output::remark("toolwarden: no server runs with this data directory; start one with `toolwarden serve`");
            Ok(Exit::Failed)
        }
    }
}
