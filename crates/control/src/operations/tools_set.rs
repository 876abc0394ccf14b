//! Switches a tool off or on for everyone (GATE-9), or says which side of the house may use it (GATE-7).

use serde::{Deserialize, Serialize};
use toolwarden_core::call::{FETCH_TOOL, SHELL_TOOL};
use toolwarden_core::name::{registration_key, shown};
use toolwarden_core::records::{Kind as Sort, Place as Spot};
use toolwarden_core::{BUILTIN_SERVER, Origin};
use toolwarden_policy::input::ServerInput;
use toolwarden_policy::{Settings, names_tool};
use toolwarden_sources::records::{StoredTool, label};

use crate::deciding::{Done, Terms};
use crate::editing::Editing;
use crate::place::Opened;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Remark, Role};

/// The operation.
#[derive(Debug)]
pub struct ToolsSet;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// `SERVER:TOOL`; a bare name is that tool on every server, and `SERVER:*` every tool of a server.
    pub tool: String,
    pub enabled: Option<bool>,
    /// `sandbox`, `pm`, `both`; `none` takes back what was set.
    pub scope: Option<String>,
    pub terms: Terms,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// As it is written down.
    pub tool: String,
    pub enabled: bool,
    pub scope: Option<String>,
    /// What else keeps it off, though it was switched on here.
    pub still_off_by: Vec<String>,
    pub done: Done,
}

impl Operation for ToolsSet {
    const PATH: &'static str = "/api/v1/tools/set";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::User;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        if request.enabled.is_none() && request.scope.is_none() {
            return Err(ControlError::BadInput("say whether the tool is on, or its scope".to_owned()));
        }
        let narrows = request.enabled == Some(false) && request.scope.is_none();
        let before = match clerk.opened((*clerk.records().await?).clone()).await {
            Err(_) if narrows => Opened::blind()?,
            opened => opened?,
        };
        let tool = as_registered(&before, &request.tool);
        // Of their own server users say the scope (GATE-8); the switch is an admin's (GATE-9).
        if request.enabled.is_some() || !is_own(&before, &tool, actor) {
            actor.must_administer("switches of tools, and tools of servers that are not your own,")?;
        }
        let spot = Spot::of_house(Sort::Tool, tool.as_str());
        let words = words(&request, &tool);
        let mut kept = StoredTool::default();
        let editing =
            Editing { actor, operation: "tools_set", terms: &request.terms, spot: spot.clone(), words, narrows };
        let mut done = clerk
            .edit_record(editing, |content, _| {
                let read = content.map(|content| serde_json::from_value(content.clone())).transpose();
                kept = read.map_err(|error| ControlError::BadInput(error.to_string()))?.unwrap_or_default();
                if let Some(enabled) = request.enabled {
                    kept.enabled = (!enabled).then_some(false);
                }
                if let Some(scope) = &request.scope {
                    kept.scope = (scope != "none").then(|| scope.clone());
                }
                let content = serde_json::to_value(&kept).map_err(|error| ControlError::BadInput(error.to_string()))?;
                Ok((!kept.says_nothing()).then_some(content))
            })
            .await?;
        // The whole policy may have said so already.
        if !done.findings.iter().any(|finding| finding.code == "unknown_tool") {
            done.findings.extend(unknown_tool(&before, &tool, "counts"));
        }
        let own = label(&spot);
        let mut still_off_by: Vec<String> =
            if request.enabled == Some(true) { offs(&before, &tool) } else { Vec::new() };
        still_off_by.retain(|source| *source != own);
        Ok(Outcome { tool, enabled: kept.enabled != Some(false), scope: kept.scope, still_off_by, done })
    }
}

fn words(request: &Request, tool: &str) -> String {
    let tool = shown(tool);
    let mut said = Vec::new();
    said.extend(request.enabled.map(|on| format!("switch `{tool}` {}", if on { "on" } else { "off" })));
    said.extend(request.scope.as_ref().map(|scope| format!("scope of `{tool}`: {}", shown(scope))));
    said.join(", ")
}

/// The server's name as it is registered, where it is written in another way; a server nobody knows yet as written.
pub(super) fn as_registered(opened: &Opened, written: &str) -> String {
    let Some((server, tool)) = written.split_once(':') else { return written.to_owned() };
    let servers = &opened.loaded.input.servers;
    let same = servers.iter().find(|known| registration_key(&known.name) == registration_key(server));
    format!("{}:{tool}", same.map_or(server, |known| &known.name))
}

/// A name that no server is known to have may be a slip, and what is said of it does nothing.
pub(super) fn unknown_tool(opened: &Opened, tool: &str, does: &str) -> Option<Remark> {
    let (server, name) = tool.split_once(':').map_or((None, tool), |(server, name)| (Some(server), name));
    let is_builtin = matches!(server, None | Some(BUILTIN_SERVER)) && [SHELL_TOOL, FETCH_TOOL].contains(&name);
    let mut servers = opened.loaded.input.servers.iter().filter(|known| server.is_none_or(|of| known.name == of));
    // Of a server that was not reached yet nobody knows what it lists.
    let may_have = |known: &ServerInput| {
        let listed = known.catalog.as_ref();
        let is_it = |listed: &str| match server {
            Some(_) => listed.eq_ignore_ascii_case(name),
            None => names_tool(name, &known.name, listed),
        };
        listed.is_none_or(|listed| name == "*" || listed.iter().any(|tool| is_it(&tool.name)))
    };
    if opened.is_blind || is_builtin || server == Some("*") || servers.any(may_have) {
        return None;
    }
    let message = format!("no server is known to have `{}`: it {does} once one has", shown(tool));
    Some(Remark::warning("unknown_tool", "tools", message))
}

fn is_own(opened: &Opened, tool: &str, actor: &Actor) -> bool {
    let Some((server, _)) = tool.split_once(':') else { return false };
    let found = opened.loaded.input.servers.iter().find(|known| known.name == server);
    found.is_some_and(|known| known.owner.as_deref() == Some(actor.user.as_str()))
}

/// The tools that a name is about: `SERVER:TOOL`, or every known tool that a bare name names.
fn meant(opened: &Opened, written: &str) -> Vec<(String, String)> {
    if let Some((server, tool)) = written.split_once(':') {
        return vec![(server.to_owned(), tool.to_owned())];
    }
    let servers = opened.loaded.input.servers.iter();
    let known = servers.flat_map(|server| {
        let listed = server.catalog.iter().flatten().map(|tool| tool.name.as_str());
        let tools = listed.chain(server.tools.keys().map(String::as_str));
        tools.filter(|tool| names_tool(written, &server.name, tool)).map(|tool| (server.name.clone(), tool.to_owned()))
    });
    known.collect()
}

/// Everything else that switches a tool off, in whichever words.
fn offs(opened: &Opened, written: &str) -> Vec<String> {
    let meant = meant(opened, written);
    let input = &opened.loaded.input;
    let mut found: Vec<&Origin> = Vec::new();
    for (server, tool) in &meant {
        let known = input.servers.iter().filter(|known| known.name == *server);
        for known in known {
            let said = known.tools.iter().filter(|(name, _)| name.eq_ignore_ascii_case(tool));
            let off = said.filter(|(_, input)| input.enabled == Some(false));
            found.extend(off.filter_map(|(_, input)| input.origin.as_ref()));
            let listed = known.disabled_tools.iter().filter(|name| name.value.eq_ignore_ascii_case(tool));
            found.extend(listed.map(|name| &name.origin));
        }
    }
    let mut sources: Vec<String> = found.into_iter().map(ToString::to_string).collect();
    let names_it = |text: &str| {
        let of_bare = !written.contains(':') && text.eq_ignore_ascii_case(written);
        of_bare || meant.iter().any(|(server, tool)| switches(text, server, tool))
    };
    let named = Settings::written_off(&input.base.settings);
    sources.extend(named.iter().filter(|name| names_it(&name.value)).map(|name| name.origin.to_string()));
    sources.sort();
    sources.dedup();
    sources
}

/// Whether what a setting switches off is this tool.
fn switches(text: &str, server: &str, tool: &str) -> bool {
    match text.split_once(':') {
        None => names_tool(text, server, tool),
        Some((of, name)) => {
            (of == "*" || of.eq_ignore_ascii_case(server)) && (name == "*" || name.eq_ignore_ascii_case(tool))
        }
    }
}
