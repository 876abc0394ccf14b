//! Takes a stored server away.

use serde::{Deserialize, Serialize};
use toolwarden_core::name::{registration_key, shown};
use toolwarden_sources::records::{is_switch_only, server_name};

use super::servers_add::place_of;
use crate::deciding::{Done, Terms};
use crate::editing::{Editing, not_there, refuse_shadowed};
use crate::naming::or_nearest;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct ServersRemove;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub name: String,
    /// Whose it is; none = everybody's.
    pub user: Option<String>,
    pub terms: Terms,
}

impl Operation for ServersRemove {
    const PATH: &'static str = "/api/v1/servers/remove";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::User;
    type Request = Request;
    type Outcome = Done;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Done, ControlError> {
        let Request { name, user, terms } = request;
        let spot = place_of(actor, &name, user)?;
        let full = server_name(&spot);
        let words = format!("remove the server `{}`", shown(&full));
        let editing = Editing { actor, operation: "servers_remove", terms: &terms, spot, words, narrows: true };
        clerk
            .edit_record(editing, |content, before| {
                if content.is_some_and(|content| !is_switch_only(content)) {
                    return Ok(None);
                }
                let servers = &before.loaded.input.servers;
                let same = servers.iter().find(|known| registration_key(&known.name) == registration_key(&full));
                if let Some(known) = same {
                    refuse_shadowed(&format!("the server `{}`", shown(&known.name)), &known.origin)?;
                }
                let visible = servers.iter().filter(|known| actor.sees(known.owner.as_deref()));
                let help = or_nearest(&full, visible.map(|known| known.name.as_str()), "see `toolwarden servers list`");
                Err(not_there(format!("no server `{}` is stored", shown(&full)), &help))
            })
            .await
    }
}
