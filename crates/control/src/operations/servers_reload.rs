//! Ends what is open with a server, which is started or reached anew when somebody needs it.

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;

use super::servers_list::here;
use crate::editing::not_there;
use crate::naming::or_nearest;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role, ServerView};

/// The operation.
#[derive(Debug)]
pub struct ServersReload;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub name: String,
    /// False where no gateway runs, so that there is nothing to end.
    pub ended: bool,
}

impl Operation for ServersReload {
    const PATH: &'static str = "/api/v1/servers/reload";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let name = request.name;
        let Some(servers) = &clerk.parts.servers else {
            let known = here(clerk, actor).await?.servers;
            let is_known = known.iter().any(|server| server.name == name);
            return if is_known { Ok(Outcome { name, ended: false }) } else { Err(unknown(&name, &known)) };
        };
        let words = format!("reload the server `{}`", shown(&name));
        let known = servers.list();
        if !known.iter().any(|server| server.name == name) {
            clerk.nothing_changed(actor, "servers_reload", &words).await?;
            return Err(unknown(&name, &known));
        }
        clerk.record(actor, "servers_reload", &words).await?;
        if !servers.restart(&name) {
            clerk.nothing_changed(actor, "servers_reload", &words).await?;
            return Err(unknown(&name, &known));
        }
        Ok(Outcome { name, ended: true })
    }
}

fn unknown(name: &str, known: &[ServerView]) -> ControlError {
    let names = known.iter().map(|server| server.name.as_str());
    let help = or_nearest(name, names, "see `toolwarden servers list`");
    not_there(format!("no server is called `{}`", shown(name)), &help)
}
