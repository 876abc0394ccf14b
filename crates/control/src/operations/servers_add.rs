//! Adds an upstream server to the store, or changes one that is stored: the house's, or a user's own (GATE-8).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolwarden_core::Layer;
use toolwarden_core::name::{SERVER_NAMES, is_server_name, registration_key, shown};
use toolwarden_core::records::{Kind as Sort, Place as Spot};
use toolwarden_sources::records::{is_switch_only, server_name};

use crate::deciding::{Done, Terms};
use crate::editing::{Editing, refuse_shadowed};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct ServersAdd;

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub name: String,
    /// Whose it is; none = everybody's.
    pub user: Option<String>,
    /// With the keys of `[servers.NAME]`.
    pub definition: Map<String, Value>,
    /// Put it in the place of one that is stored under that name.
    pub replace: bool,
    pub terms: Terms,
}

/// Variables and headers are secrets.
impl std::fmt::Debug for Request {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Request").field("name", &self.name).field("user", &self.user).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// The name by which clients and policies know it.
    pub name: String,
    pub done: Done,
}

impl Operation for ServersAdd {
    const PATH: &'static str = "/api/v1/servers/add";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::User;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let Request { name, user, mut definition, replace, terms } = request;
        let spot = place_of(actor, &name, user)?;
        check_name(&name)?;
        // A command runs as this process does: whoever may start one may do everything.
        if definition.contains_key("command") {
            actor.must_administer("servers that are started by a command")?;
        }
        if !spot.owner.is_empty() {
            refuse_grants(actor, &definition)?;
        }
        let full = server_name(&spot);
        let words = format!("add the server `{}`", shown(&full));
        let owner = (!spot.owner.is_empty()).then(|| spot.owner.clone());
        let editing = Editing { actor, operation: "servers_add", terms: &terms, spot, words, narrows: false };
        let done = clerk
            .edit_record(editing, |content, before| {
                let servers = &before.loaded.input.servers;
                let same = servers.iter().find(|known| registration_key(&known.name) == registration_key(&full));
                if let Some(known) = same.filter(|known| known.origin.layer != Layer::Settings) {
                    refuse_shadowed(&format!("the server `{}`", shown(&known.name)), &known.origin)?;
                }
                // Two records of one name would be two servers for the judge to confuse.
                if same.is_some_and(|known| known.name != full || known.owner != owner) {
                    let message = format!("another server is called `{}`, or as good as that", shown(&full));
                    return Err(ControlError::BadInput(message));
                }
                if content.is_some_and(|content| !is_switch_only(content)) && !replace {
                    let message =
                        format!("there is a server `{}` already; `--replace` puts this one in its place", shown(&full));
                    return Err(ControlError::BadInput(message));
                }
                // A server that was switched off under this name stays off.
                if let Some(off) = content.and_then(|content| content.get("enabled")) {
                    definition.entry("enabled").or_insert_with(|| off.clone());
                }
                Ok(Some(Value::Object(definition)))
            })
            .await?;
        Ok(Outcome { name: full, done })
    }
}

/// A server's name is a part of addresses, entries and file names, so a new one is plain.
fn check_name(name: &str) -> Result<(), ControlError> {
    if is_server_name(name) {
        return Ok(());
    }
    Err(ControlError::BadInput(format!("`{}` is no name for a server: {}", shown(name), SERVER_NAMES)))
}

/// A user's own is for that user, or for an admin, to change; the house's is for admins.
pub(super) fn place_of(actor: &Actor, name: &str, user: Option<String>) -> Result<Spot, ControlError> {
    match user {
        Some(user) => {
            actor.must_be(&user, "servers of others")?;
            Ok(Spot::of_user(Sort::Server, user, name))
        }
        None => {
            actor.must_administer("servers of the whole house")?;
            Ok(Spot::of_house(Sort::Server, name))
        }
    }
}

const PRIVATE: &str = "private_network";

/// What only an admin says of a user's server; what nobody says of one is refused where it is read.
fn refuse_grants(actor: &Actor, definition: &Map<String, Value>) -> Result<(), ControlError> {
    if definition.contains_key(PRIVATE) {
        actor.must_administer("servers of users near this machine")?;
    }
    Ok(())
}
