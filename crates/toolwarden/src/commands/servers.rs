//! `servers list` and `servers show`: the upstream servers, how they are doing, and their tools.

use anyhow::Result;
use serde::Serialize;
use toolwarden_control::operations::servers_show::Request;
use toolwarden_control::operations::{Nothing, ServersList, ServersShow};
use toolwarden_control::{ServerView, ToolView};
use toolwarden_core::name::shown;

use crate::clerk::Desk;
use crate::cli::{Places, ServersCommand};
use crate::output::{self, Colour, Exit, coloured, in_one_line, remark_text};
use crate::table::{self, Cell, Last};

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
    let has_details = servers.iter().any(|server| server.detail.is_some());
    let row = |server: &ServerView| {
        let tools = match server.tools {
            0 => "no tools listed yet".to_owned(),
            1 => "1 tool".to_owned(),
            more => format!("{more} tools"),
        };
        let mut cells = vec![
            Cell::plain(shown(&server.name)),
            Cell::in_colour(server.status.as_str(), colour_of(&server.status)),
            Cell::plain(tools),
            Cell::plain(shown(&server.source)),
        ];
        cells.extend(has_details.then(|| Cell::plain(shown(server.detail.as_deref().unwrap_or_default()))));
        cells
    };
    let mut headings = vec!["NAME", "STATUS", "TOOLS", "CONFIGURED IN"];
    headings.extend(has_details.then_some("DETAIL"));
    table::text(&headings, servers.iter().map(row).collect(), Last::Whole)
}

fn colour_of(status: &str) -> Colour {
    match status {
        "connected" => Colour::Green,
        "error" => Colour::Red,
        _ => Colour::Dim,
    }
}

fn show(server: &ServerView, tools: &[ToolView]) -> String {
    let mut text = format!("{}: {}", shown(&server.name), coloured(&server.status, colour_of(&server.status)));
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
    let row = |tool: &ToolView| {
        let decision = tool.decision.as_deref().unwrap_or("?");
        let colour = match decision {
            "allow" => Colour::Green,
            "deny" => Colour::Red,
            _ => Colour::Yellow,
        };
        vec![
            Cell::plain(format!("  {}", shown(&tool.name))),
            Cell::in_colour(decision, colour),
            Cell::plain(tool.reason.as_deref().unwrap_or_default()),
            Cell::plain(tool.description.as_deref().map(in_one_line).unwrap_or_default()),
        ]
    };
    if !tools.is_empty() {
        let headings = ["  TOOL", "DECISION", "REASON", "DESCRIPTION"];
        text.push_str(&table::text(&headings, tools.iter().map(row).collect(), Last::Cut));
    }
    text
}
