//! `servers list` and `servers show`: the upstream servers, how they are doing, and their tools.

use anyhow::Result;
use serde::Serialize;
use toolwarden_control::operations::servers_show::Request;
use toolwarden_control::operations::{Nothing, ServersList, ServersShow};
use toolwarden_control::{ServerView, ToolView};
use toolwarden_core::name::shown;

use crate::clerk::Desk;
use crate::cli::{Places, ServersCommand};
use crate::output::{self, Colour, Exit, coloured, remark_text};

/// How much of a tool's description is shown in a list.
const LONGEST_DESCRIPTION: usize = 60;

/// One server with its tools, as scripts read it.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    status: &'a str,
    detail: Option<&'a str>,
    reached_by: &'a str,
    source: &'a str,
    tools: &'a [ToolView],
}

pub fn run(places: &Places, command: &ServersCommand) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    match command {
        ServersCommand::List { format } => {
            let listed = desk.ask::<ServersList>(Nothing {})?;
            listed.findings.iter().for_each(|finding| output::remark(&remark_text(finding)));
            if format.json { output::json(&listed.servers)? } else { output::text(&list(&listed.servers))? }
        }
        ServersCommand::Show { name, format } => {
            let found = desk.ask::<ServersShow>(Request { name: name.clone() })?;
            found.findings.iter().for_each(|finding| output::remark(&remark_text(finding)));
            let server = &found.server;
            if format.json {
                output::json(&Shown {
                    name: &server.name,
                    status: &server.status,
                    detail: server.detail.as_deref(),
                    reached_by: &server.reached_by,
                    source: &server.source,
                    tools: &found.tools,
                })?;
            } else {
                output::text(&show(server, &found.tools))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn list(servers: &[ServerView]) -> String {
    if servers.is_empty() {
        return "no server is configured: add [servers.NAME] to toolwarden.toml\n".to_owned();
    }
    let name_width = servers.iter().map(|server| shown(&server.name).chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for server in servers {
        let tools = match server.tools {
            0 => "no tools listed yet".to_owned(),
            1 => "1 tool".to_owned(),
            more => format!("{more} tools"),
        };
        let detail = server.detail.as_deref().map(|detail| format!("  {}", shown(detail))).unwrap_or_default();
        let name = shown(&server.name);
        let (status, source) = (status(server, 11), shown(&server.source));
        text.push_str(&format!("{name:<name_width$}  {status}  {tools:<19}  {source}{detail}\n"));
    }
    text
}

fn status(server: &ServerView, width: usize) -> String {
    let padded = format!("{:<width$}", server.status);
    match server.status.as_str() {
        "connected" => coloured(&padded, Colour::Green),
        "error" => coloured(&padded, Colour::Red),
        _ => coloured(&padded, Colour::Dim),
    }
}

fn show(server: &ServerView, tools: &[ToolView]) -> String {
    let mut text = format!("{}: {}", shown(&server.name), status(server, 0));
    if let Some(detail) = &server.detail {
        text.push_str(&format!(", {}", shown(detail)));
    }
    text.push_str(&format!("\nconfigured in {}, reached by {}\n", shown(&server.source), server.reached_by));
    if tools.is_empty() {
        let why = match server.status.as_str() {
            "not running" => "start `toolwarden serve` and connect a client",
            "disabled" => "it is off",
            _ => "it is asked when the first client wants them",
        };
        text.push_str(&format!("no tools listed yet: {why}\n"));
    }
    let width = tools.iter().map(|tool| shown(&tool.name).chars().count()).max().unwrap_or(0);
    for tool in tools {
        let name = shown(&tool.name);
        let decision = tool.decision.as_deref().unwrap_or("?");
        let colour = match decision {
            "allow" => Colour::Green,
            "deny" => Colour::Red,
            _ => Colour::Yellow,
        };
        let decision = coloured(&format!("{decision:<5}"), colour);
        let reason = tool.reason.as_deref().unwrap_or_default();
        let description = tool.description.as_deref().map(|all| shorten(&shown(all))).unwrap_or_default();
        text.push_str(&format!("  {name:<width$}  {decision}  {reason:<20}  {description}\n"));
    }
    text
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= LONGEST_DESCRIPTION {
        return text.to_owned();
    }
    let kept: String = text.chars().take(LONGEST_DESCRIPTION - 1).collect();
    format!("{}…", kept.trim_end())
}
