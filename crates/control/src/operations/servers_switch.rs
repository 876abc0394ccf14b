//! Switches a server off or on, wherever it is defined.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwarden_core::Layer;
use toolwarden_core::name::{registration_key, shown};
use toolwarden_core::records::{Kind as Sort, Place as Spot};
use toolwarden_policy::input::ServerInput;
use toolwarden_sources::records::{is_switch_only, server_name};

use crate::deciding::{Done, Terms};
use crate::editing::{Editing, not_there, table};
use crate::naming::or_nearest;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct ServersSwitch;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// As `servers list` shows it.
    pub name: String,
    pub enabled: bool,
    pub terms: Terms,
}

impl Operation for ServersSwitch {
    const PATH: &'static str = "/api/v1/servers/switch";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::User;
    type Request = Request;
    type Outcome = Done;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Done, ControlError> {
        let Request { name, enabled, terms } = request;
        let records = clerk.records().await?;
        // As it is stored, however it is written here; a user's own stands under their name.
        let is_same = |spot: &&Spot| registration_key(&server_name(spot)) == registration_key(&name);
        let all = || records.of(Sort::Server).map(|(spot, _)| spot).filter(is_same);
        let stored = all().find(|spot| !spot.owner.is_empty()).or_else(|| all().next());
        let spot = match stored {
            Some(spot) if spot.owner.is_empty() || spot.owner == actor.user => spot.clone(),
            // An admin's word stands beside the user's, so that the user cannot take it back.
            Some(spot) => Spot::of_house(Sort::Server, server_name(spot)),
            None => Spot::of_house(Sort::Server, name.as_str()),
        };
        // In the same words whether it is another's or nobody's: what is another's is not there for this one.
        if spot.owner != actor.user {
            actor.must_administer("servers that are not your own")?;
        }
        let words = format!("switch the server `{}` {}", shown(&name), if enabled { "on" } else { "off" });
        let editing = Editing { actor, operation: "servers_switch", terms: &terms, spot, words, narrows: !enabled };
        clerk
            .edit_record(editing, |content, before| {
                let servers = &before.loaded.input.servers;
                let known = servers.iter().find(|known| registration_key(&known.name) == registration_key(&name));
                if known.is_none() && content.is_none() && !before.is_blind {
                    let message = format!("no server is called `{}`", shown(&name));
                    let visible = servers.iter().filter(|known| actor.sees(known.owner.as_deref()));
                    let names = visible.map(|known| known.name.as_str());
                    return Err(not_there(message, &or_nearest(&name, names, "see `toolwarden servers list`")));
                }
                let is_stored = content.is_some_and(|content| !is_switch_only(content));
                let of_file = known.filter(|known| known.origin.layer != Layer::Settings);
                let is_off = |known: &&ServerInput| enabled && !known.enabled;
                if let Some(known) = of_file.filter(is_off).filter(|_| content.is_none()) {
                    let message = format!(
                        "the server `{}` is off at {}: switch it on there",
                        shown(&known.name),
                        shown(&known.origin.to_string())
                    );
                    return Err(ControlError::BadInput(message));
                }
                let is_admins = content.is_none_or(|content| content.get("enabled").is_none());
                if let Some(known) = known.filter(|known| is_off(known) && known.owner.is_some() && is_admins) {
                    let whose = if actor.is_admin() { "its owner" } else { "an admin" };
                    let message = format!("the server `{}` was switched off by {whose}", shown(&known.name));
                    return Err(ControlError::BadInput(message));
                }
                if !is_stored {
                    return Ok((!enabled).then(|| json!({ "enabled": false })));
                }
                let mut definition = table(content);
                match enabled {
                    true => definition.remove("enabled"),
                    false => definition.insert("enabled".to_owned(), false.into()),
                };
                Ok(Some(Value::Object(definition)))
            })
            .await
    }
}
