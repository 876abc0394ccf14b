//! The least that would still permit what a mode, a role or a token used; where nothing was used, what the names of
//! tools suggest (MODE-10).

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwarden_core::name::shown;
use toolwarden_core::{Call, Caller, Decision, Door, Layer, Stage};
use toolwarden_policy::{Transport, decide};
use toolwarden_sources::records::mode_content;
use toolwarden_store::index::{Filter, Used};

use crate::editing::not_there;
use crate::naming::or_nearest;
use crate::naming::sounds_dangerous;
use crate::place::Opened;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct ModesSuggest;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// One of these three; none of them = every mode, by the names of tools.
    pub mode: Option<String>,
    pub role: Option<String>,
    pub token: Option<String>,
    /// Not what was used before.
    pub since: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// What was used, and how often.
    pub used: Vec<Used>,
    /// For a mode: its definition with the least it needs.
    pub definition: Option<Value>,
    /// For a role or token: the least it needs, as patterns for `roles set --allow`.
    pub allow: Vec<String>,
    /// What the mode permits now and would not any more, `server:tool`.
    pub no_longer: Vec<String>,
    /// By the names of tools alone: what open modes should not have.
    pub by_name: Vec<ByName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByName {
    pub mode: String,
    pub disallow_tools: Vec<String>,
}

impl Operation for ModesSuggest {
    const PATH: &'static str = "/api/v1/modes/suggest";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::IndexAndPolicy;
    const FOR: Role = Role::Auditor;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let opened = clerk.opened((*clerk.records().await?).clone()).await?;
        let Request { mode, role, token, since } = request;
        if [&mode, &role, &token].into_iter().flatten().count() > 1 {
            return Err(ControlError::BadInput("one mode, one role or one token".to_owned()));
        }
        if let Some(slug) = mode.as_ref().filter(|slug| opened.policy.base().modes.get(slug).is_none()) {
            let message = format!("there is no mode `{}`", shown(slug));
            let modes = opened.policy.base().modes.sorted();
            let slugs = modes.iter().map(|mode| mode.slug.as_str());
            return Err(not_there(message, &or_nearest(slug, slugs, "see `toolwarden modes list`")));
        }
        if mode.is_none() && role.is_none() && token.is_none() {
            let slugs: Vec<String> = opened.policy.base().modes.sorted().iter().map(|mode| mode.slug.clone()).collect();
            let by_name = slugs.iter().filter_map(|slug| by_name(&opened, slug, clerk.parts.clock.now())).collect();
            return Ok(Outcome { by_name, ..Outcome::default() });
        }
        let filter = Filter { mode: mode.clone(), role, token, since, ..Filter::default() };
        let (index, _) = clerk.index().await?;
        let used = index.used(&filter).await?;
        let now = clerk.parts.clock.now();
        Ok(match mode {
            Some(slug) if used.is_empty() => {
                Outcome { by_name: by_name(&opened, &slug, now).into_iter().collect(), ..Outcome::default() }
            }
            Some(slug) => least(&opened, &slug, used, now),
            None => Outcome { allow: used.iter().map(name).collect(), used, ..Outcome::default() },
        })
    }
}

fn name(used: &Used) -> String {
    format!("{}:{}", used.server, used.tool)
}

/// The mode as it is, with lists of what was used in the place of its own.
fn least(opened: &Opened, slug: &str, used: Vec<Used>, now: Timestamp) -> Outcome {
    let written = opened.loaded.input.base.modes.iter().rfind(|mode| mode.slug == slug);
    let mut definition = written.map_or_else(|| json!({}), mode_content);
    let mut servers: Vec<&str> = used.iter().map(|used| used.server.as_str()).collect();
    servers.dedup();
    let tools: Vec<String> = used.iter().map(name).collect();
    let no_longer = permitted(opened, slug, now).into_iter().filter(|tool| !tools.contains(tool)).collect();
    if let Value::Object(keys) = &mut definition {
        keys.insert("allowed_servers".to_owned(), servers.into());
        keys.insert("allowed_tools".to_owned(), tools.into());
        keys.remove("disallowed_servers");
        keys.remove("disallowed_tools");
    }
    Outcome { used, definition: Some(definition), no_longer, ..Outcome::default() }
}

/// Tools that were seen of servers and that the mode lets through.
fn permitted(opened: &Opened, slug: &str, now: Timestamp) -> Vec<String> {
    let mut found = Vec::new();
    let transport = Transport::new(Door::Explain, opened.loaded.input.local.workspace.clone());
    for server in &opened.loaded.input.servers {
        for tool in server.catalog.iter().flatten() {
            let mut caller = Caller::local_person(opened.loaded.input.local.user.as_str());
            caller.mode = Some(slug.to_owned());
            let call = Call::mcp(server.name.as_str(), tool.name.as_str(), None);
            let query = transport.query(Arc::new(caller), call, now);
            let verdict = decide(&opened.policy, &query);
            let explanation = verdict.explanation();
            if !(explanation.decision == Decision::Deny && explanation.stage == Stage::Mode) {
                found.push(format!("{}:{}", server.name, tool.name));
            }
        }
    }
    found
}

/// What sounds as if it could hardly be undone and is permitted all the same; none where there is nothing.
fn by_name(opened: &Opened, slug: &str, now: Timestamp) -> Option<ByName> {
    let is_workspaces = |layer| layer == Layer::WorkspaceFile;
    let modes = &opened.loaded.input.base.modes;
    if modes.iter().any(|mode| mode.slug == slug && is_workspaces(mode.origin.layer)) {
        return None;
    }
    let tools = permitted(opened, slug, now).into_iter();
    let dangerous = |entry: &String| entry.split_once(':').is_some_and(|(_, tool)| sounds_dangerous(tool));
    let disallow_tools: Vec<String> = tools.filter(dangerous).collect();
    (!disallow_tools.is_empty()).then(|| ByName { mode: slug.to_owned(), disallow_tools })
}
