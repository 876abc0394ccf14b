//! `describe`: the prompt text of what a mode may use.

use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use toolwarden_core::{Caller, Door};
use toolwarden_policy::Transport;

use crate::environment;
use crate::output::{self, BadInput, Exit};
use crate::wire;
use toolwarden_cli::{DescribeArguments, Places};

#[derive(Serialize)]
struct Description<'a> {
    mode: Option<&'a str>,
    text: &'a str,
}

pub fn run(places: &Places, arguments: &DescribeArguments) -> Result<Exit> {
    let house = wire::with_seen_tools(wire::open(places, &arguments.policy)?)?;
    if let Some(slug) = &arguments.mode {
        super::modes::known(&house, slug).map_err(BadInput)?;
    }
    let mut caller = Caller::local_person(house.locations.user.as_str());
    caller.mode.clone_from(&arguments.mode);
    let transport = Transport::new(Door::Mcp, house.locations.workspace_root());
    let text = toolwarden_advice::describe(&house.policy, &transport, &Arc::new(caller), environment::now());
    if arguments.format.json {
        output::json(&Description { mode: arguments.mode.as_deref(), text: &text })?;
    } else {
        output::text(&text)?;
    }
    Ok(Exit::Done)
}
