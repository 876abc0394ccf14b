//! One upstream server, its tools, and what calls of them by whoever asks would meet.

use serde::{Deserialize, Serialize};
use toolwarden_core::Call;
use toolwarden_core::name::shown;
use toolwarden_pins as pins;

use super::explain_again::explain;
use super::servers_list;
use crate::clerk::blocking;
use crate::naming::or_nearest;
use crate::place;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Remark, Role, ServerView, ToolView};

/// The operation.
#[derive(Debug)]
pub struct ServersShow;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub server: ServerView,
    pub tools: Vec<ToolView>,
    pub findings: Vec<Remark>,
}

impl Operation for ServersShow {
    const PATH: &'static str = "/api/v1/servers/show";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Policy;
    const FOR: Role = Role::Viewer;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let listed = servers_list::here(clerk, actor).await?;
        let names: Vec<String> = listed.servers.iter().map(|server| server.name.clone()).collect();
        let Some(server) = listed.servers.into_iter().find(|server| server.name == request.name) else {
            let message = format!("no server is called `{}`", shown(&request.name));
            let help = match names.as_slice() {
                [] => "no server is configured: add [servers.NAME] to toolwarden.toml".to_owned(),
                names => {
                    let all = format!("there are: {}", shown(&names.join(", ")));
                    or_nearest(&request.name, names.iter().map(String::as_str), &all)
                }
            };
            return Err(ControlError::NotFound { message, help });
        };
        let known = clerk.parts.servers.as_ref().map(|servers| servers.tools(&request.name)).unwrap_or_default();
        let (locations, user) = (clerk.parts.locations.clone(), actor.user.clone());
        let now = clerk.parts.clock.now();
        let store = clerk.records().await?;
        let tools = blocking(move || {
            // The server runs whatever the files say by now; then there are no hints.
            let opened = place::open(&locations, &[], &store).ok();
            let pins = pins::read(&locations, &request.name).ok();
            let hint = |(name, description): (String, Option<String>)| {
                let call = Call::mcp(request.name.as_str(), name.as_str(), None);
                let again = opened.as_ref().map(|opened| explain(opened, &locations, &user, call, pins.as_ref(), now));
                ToolView {
                    name,
                    description,
                    decision: again.as_ref().map(|again| again.decision.as_str().to_owned()),
                    reason: again.map(|again| again.reason.to_owned()),
                }
            };
            Ok(known.into_iter().map(hint).collect())
        })
        .await?;
        Ok(Outcome { server, tools, findings: listed.findings })
    }
}
