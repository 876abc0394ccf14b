//! `servers`: the upstream servers, how they are doing, and their tools; adding, removing and switching them.

use anyhow::Result;
use serde::Serialize;
use serde_json::{Map, Value};
use toolwarden_control::operations::servers_show::Request;
use toolwarden_control::operations::{
    Nothing, ServersAdd, ServersList, ServersReload, ServersRemove, ServersShow, ServersSwitch, servers_add,
    servers_reload, servers_remove, servers_switch,
};
use toolwarden_control::{ServerView, ToolView};
use toolwarden_core::name::shown;

use crate::changed;
use crate::clerk::Desk;
use crate::output::{self, BadInput, Colour, Exit, coloured, in_one_line, remark_text};
use crate::table::{self, Cell, Last};
use toolwarden_cli::{ChangeArguments, Format, Places, ServerArguments, ServersCommand};

/// One server with its tools, as scripts read it.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    status: &'a str,
    detail: Option<&'a str>,
    reached_by: &'a str,
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools_refused: Option<&'a str>,
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
        ServersCommand::Add(arguments) => return add(&desk, arguments),
        ServersCommand::Remove { name, user, change, format } => {
            let request =
                servers_remove::Request { name: name.clone(), user: user.clone(), terms: changed::terms(change) };
            let done = desk.ask::<ServersRemove>(request)?;
            return changed::say(&done, &format!("server `{}` is removed", shown(name)), format.json.then_some(&done));
        }
        ServersCommand::Enable { name, change, format } => return switch(&desk, name, true, (change, *format)),
        ServersCommand::Disable { name, change, format } => return switch(&desk, name, false, (change, *format)),
        ServersCommand::Reload { name, format } => {
            let done = desk.ask::<ServersReload>(servers_reload::Request { name: name.clone() })?;
            let said = if done.ended { "is reached anew" } else { "has nothing open: no gateway runs" };
            if format.json {
                output::json(&done)?;
            } else {
                output::text(&format!("server `{}` {said}\n", shown(&done.name)))?;
            }
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
                    owner: server.owner.as_deref(),
                    tools_refused: server.tools_refused.as_deref(),
                    tools: &found.tools,
                })?;
            } else {
                output::text(&show(server, &found.tools))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn switch(desk: &Desk, name: &str, enabled: bool, (change, format): (&ChangeArguments, Format)) -> Result<Exit> {
    let request = servers_switch::Request { name: name.to_owned(), enabled, terms: changed::terms(change) };
    let done = desk.ask::<ServersSwitch>(request)?;
    let said = format!("server `{}` is {}", shown(name), if enabled { "on" } else { "off" });
    changed::say(&done, &said, format.json.then_some(&done))
}

fn add(desk: &Desk, arguments: &ServerArguments) -> Result<Exit> {
    let mut definition = match arguments.from.as_deref().map(changed::json_of).transpose()? {
        None => Map::new(),
        Some(Value::Object(whole)) => whole,
        Some(_) => return Err(BadInput("the definition of a server is a table".to_owned()).into()),
    };
    if let Some((command, rest)) = arguments.command.split_first() {
        definition.insert("command".to_owned(), command.as_str().into());
        definition.insert("args".to_owned(), rest.to_vec().into());
    }
    if let Some(url) = &arguments.url {
        definition.insert("url".to_owned(), url.as_str().into());
    }
    for (key, pairs, between) in [("headers", &arguments.header, ':'), ("env", &arguments.env, '=')] {
        let mut table = Map::new();
        for pair in pairs {
            let Some((name, value)) = pair.split_once(between) else {
                let name = shown(pair.split([':', '=']).next().unwrap_or_default()).into_owned();
                return Err(BadInput(format!("`{name}…` in {key} is not NAME{between}VALUE")).into());
            };
            table.insert(name.trim().to_owned(), value.trim().into());
        }
        if !table.is_empty() {
            definition.insert(key.to_owned(), Value::Object(table));
        }
    }
    if arguments.private_network {
        definition.insert("private_network".to_owned(), true.into());
    }
    if definition.is_empty() {
        return Err(BadInput("say how it is reached: --url URL, or a command after --".to_owned()).into());
    }
    let outcome = desk.ask::<ServersAdd>(servers_add::Request {
        name: arguments.name.clone(),
        user: arguments.user.clone(),
        definition,
        replace: arguments.replace,
        terms: changed::terms(&arguments.change),
    })?;
    let said = format!("server `{}` is added", shown(&outcome.name));
    if arguments.replace && outcome.done.changed && !outcome.done.dry_run {
        let name = shown(&outcome.name);
        output::remark(&format!(
            "where it was in use: nothing is started before `toolwarden tools diff {name}` was looked at and what waits accepted"
        ));
    }
    changed::say(&outcome.done, &said, arguments.format.json.then_some(&outcome))
}

fn list(servers: &[ServerView]) -> String {
    if servers.is_empty() {
        return "no server is configured: add [servers.NAME] to toolwarden.toml\n".to_owned();
    }
    let has_details = servers.iter().any(|server| server.detail.is_some());
    let row = |server: &ServerView| {
        let tools = match server.tools {
            _ if server.tools_refused.is_some() => "refused".to_owned(),
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
    // Servers of other gateways have the gateway in that place.
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
    if tools.is_empty() && server.tools_refused.is_none() {
        let why = match server.status.as_str() {
            "not running" => "start `toolwarden serve` and connect a client".to_owned(),
            "disabled" => "it is off".to_owned(),
            "error" => format!(
                "it could not be used; `toolwarden servers reload {}` tries again once that is repaired",
                shown(&server.name)
            ),
            _ => "it is asked when the first client wants them".to_owned(),
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
