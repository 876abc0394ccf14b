//! Ready-made modes, filled in with the tools that were seen: a start for one's own (MODE-9).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwarden_core::name::shown;

use crate::editing::not_there;
use crate::naming::{sounds_dangerous, sounds_reading};
use crate::place::Opened;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct ModesTemplate;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// None = all of them.
    pub name: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub templates: Vec<Template>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Template {
    pub name: String,
    pub about: String,
    /// With the keys of `[modes.SLUG]`.
    pub definition: Value,
}

impl Operation for ModesTemplate {
    const PATH: &'static str = "/api/v1/modes/template";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Policy;
    const FOR: Role = Role::Viewer;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let opened = clerk.opened((*clerk.records().await?).clone()).await?;
        let mut templates = all(&opened, actor);
        if let Some(name) = &request.name {
            let names: Vec<String> = templates.iter().map(|one| one.name.clone()).collect();
            templates.retain(|one| one.name == *name);
            if templates.is_empty() {
                let message = format!("there is no template `{}`", shown(name));
                return Err(not_there(message, &format!("there are: {}", names.join(", "))));
            }
        }
        Ok(Outcome { templates })
    }
}

fn all(opened: &Opened, actor: &Actor) -> Vec<Template> {
    let fits = |wanted: fn(&str) -> bool| -> Vec<String> {
        let servers = opened.loaded.input.servers.iter().filter(|server| actor.sees(server.owner.as_deref()));
        let tools = servers.flat_map(|server| server.catalog.iter().flatten().map(|tool| (&server.name, &tool.name)));
        tools.filter(|(_, tool)| wanted(tool)).map(|(server, tool)| format!("{server}:{tool}")).collect()
    };
    let template = |name: &str, about: &str, definition: Value| Template {
        name: name.to_owned(),
        about: about.to_owned(),
        definition,
    };
    vec![
        template(
            "read-only",
            "only tools that sound as if they read, of those that were seen; no commands",
            json!({"name": "Read only", "groups": ["read", "mcp"], "allowed_tools": fits(sounds_reading)}),
        ),
        template(
            "careful",
            "everything but tools that sound as if what they do could hardly be undone",
            json!({"name": "Careful", "disallowed_tools": fits(sounds_dangerous)}),
        ),
        template(
            "offline",
            "no tools of servers at all",
            json!({"name": "Offline", "groups": ["read", "edit", "command"]}),
        ),
        template("closed", "no server, until one is allowed", json!({"name": "Closed", "allowed_servers": []})),
    ]
}
