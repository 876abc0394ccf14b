//! Records of the store, read like the sections of the config they could stand in.

use serde::de::DeserializeOwned;
use toolwarden_core::records::Place as Spot;
use toolwarden_core::{Layer, name};
use toolwarden_policy::input::{AdminInput, Declared, ModeInput, RoleInput, Scope};

use super::config;
use super::known::Section;
use super::server::ServerDefinition;
use crate::records::{StoredTool, label, server_name};
use crate::report::{Reading, Report};
use crate::tree::{Key, Node, Place, Value};

/// A record of ours that is a plain structure. One that does not fit was written by another version.
pub(crate) fn plain<T: DeserializeOwned + Default>(spot: &Spot, content: &serde_json::Value) -> Reading<T> {
    let mut report = Report::strict(&label(spot), Layer::Settings);
    match T::deserialize(content) {
        Ok(value) => report.finish(value, false),
        Err(error) => {
            report.error(Place::default(), "record_refused", error.to_string());
            report.finish(T::default(), true)
        }
    }
}

pub(crate) fn mode(spot: &Spot, content: &serde_json::Value) -> Reading<Option<ModeInput>> {
    one(spot, content, config::read_modes)
}

pub(crate) fn role(spot: &Spot, content: &serde_json::Value) -> Reading<Option<RoleInput>> {
    one(spot, content, config::read_roles)
}

/// A server of the house counts as the operator's; one of a user is that user's alone, and its name begins with theirs.
pub(crate) fn server(spot: &Spot, content: &serde_json::Value) -> Reading<Option<ServerDefinition>> {
    if spot.owner.is_empty() {
        return one(spot, content, |report, table| config::read_servers(report, Declared::ByOperator, table));
    }
    let mut reading = one(spot, content, |report, table| config::read_servers(report, Declared::ByUser, table));
    let said = what_users_say(spot, content);
    reading.broken |= said.broken;
    reading.findings.extend(said.findings);
    if reading.broken {
        // It is refused alone, and nobody else's policy with it.
        reading.value = None;
    }
    if let Some(server) = &mut reading.value {
        server.input.owner = Some(spot.owner.clone());
        server.input.limits.in_flight = Some(MOST_IN_FLIGHT);
    }
    reading
}

/// Calls of one user's server on their way at the same time: places are everybody's.
const MOST_IN_FLIGHT: u64 = 64;

/// How a server is reached and which of its tools are for agents is its owner's to say; how far the gateway goes for it
/// is the operator's.
fn what_users_say(spot: &Spot, content: &serde_json::Value) -> Reading<()> {
    const OF_SERVERS: [&str; 7] = ["url", "headers", "type", "transport", "tools", "enabled", "private_network"];
    const OF_TOOLS: [&str; 4] = ["enabled", "scope", "review", "labels"];
    let mut report = Report::strict(&label(spot), Layer::Settings);
    let mut refuse = |place: Place, key: &str, known: &[&str]| {
        let message = format!("`{}` is not for a user's own server", name::shown(key));
        report.error(place, "not_for_users", message);
        report.help(format!("there are {}", known.join(", ")));
    };
    let Node { value: Value::Table(entries), .. } = Node::from_json(content) else { return report.finish((), false) };
    let said = |name: &str| entries.iter().find(|(key, _)| key.text == name).map(|(_, node)| &node.value);
    let is_near = matches!(said("private_network"), Some(Value::Bool(true)));
    let is_far = matches!(said("url"), Some(Value::String(url)) if url.starts_with("https://"));
    for (key, value) in &entries {
        if !OF_SERVERS.contains(&key.text.as_str()) {
            refuse(key.place, &key.text, &OF_SERVERS);
        }
        let Value::Table(tools) = &value.value else { continue };
        for (_, tool) in tools.iter().filter(|_| key.text == "tools") {
            let Value::Table(said) = &tool.value else { continue };
            for (key, _) in said.iter().filter(|(key, _)| !OF_TOOLS.contains(&key.text.as_str())) {
                refuse(key.place, &key.text, &OF_TOOLS);
            }
        }
    }
    if said("url").is_some() && !is_near && !is_far {
        report.error(Place::default(), "not_public", "a user's own server is reached by https, at a public address");
        report.help("an admin can add it with --private-network");
    }
    let broken = report.has_errors();
    report.finish((), broken)
}

/// `{"enabled": false}`: whether a server that is defined elsewhere is on.
pub(crate) fn switch(spot: &Spot, content: &serde_json::Value) -> Reading<bool> {
    let mut report = Report::strict(&label(spot), Layer::Settings);
    let mut enabled = true;
    for (key, value) in report.table(&spot.name, &Node::from_json(content)) {
        match key.text.as_str() {
            "enabled" => enabled = report.boolean("enabled", value) == Some(true),
            // A client's whole file.
            "mcpServers" | "servers" => {
                let message = format!("`{}` holds several servers, and one is asked for here", key.text);
                report.error(key.place, "unknown_key", message);
                report.help(
                    "give what stands there under the server's name, such as {\"command\": \"npx\", \"args\": []}",
                );
            }
            unknown if !Section::Server.names().contains(&unknown) => {
                report.unknown_key(key, &Section::Server.names());
            }
            _ => {
                report.error(key.place, "no_launch", "the server has neither a command nor a URL");
                report.help("give one of them");
            }
        }
    }
    let broken = report.has_errors();
    report.finish(enabled, broken)
}

/// Switch and scope of a tool. A bare name has no scope: scopes are of one server's tool.
pub(crate) fn tool(spot: &Spot, content: &serde_json::Value) -> Reading<StoredTool> {
    let mut reading = plain::<StoredTool>(spot, content);
    let mut report = Report::strict(&label(spot), Layer::Settings);
    let (server, tool) = spot.name.split_once(':').map_or((None, &*spot.name), |(server, tool)| (Some(server), tool));
    for part in server.into_iter().chain([tool]) {
        // `server:*` is every tool of a server.
        if part != "*"
            && let Err(fault) = name::check_written(part)
        {
            report.error(Place::default(), "invalid_name", format!("`{}` names no tool: {fault}", name::shown(part)));
        }
    }
    if let Some(scope) = &reading.value.scope {
        if Scope::parse(scope).is_none() {
            report.error(Place::default(), "unknown_value", format!("`{}` is no scope", name::shown(scope)));
            report.help("sandbox, pm or both");
        }
        if server.is_none_or(|server| server == "*") || tool == "*" {
            report.error(Place::default(), "no_server", "a scope is of one tool of one server: write SERVER:TOOL");
        }
    }
    let broken = report.has_errors();
    reading.findings.extend(report.finish((), broken).findings);
    reading.broken |= broken;
    reading
}

pub(crate) fn admin(spot: &Spot, content: &serde_json::Value) -> Reading<AdminInput> {
    super::admin::read_node(&label(spot), &Node::from_json(content))
}

/// Reads a section of the config that holds only this record.
fn one<T>(
    spot: &Spot,
    content: &serde_json::Value,
    read: impl FnOnce(&mut Report, &Node) -> Vec<T>,
) -> Reading<Option<T>> {
    let mut report = Report::strict(&label(spot), Layer::Settings);
    let key = Key { text: server_name(spot), place: Place::default() };
    let table = Node { value: Value::Table(vec![(key, Node::from_json(content))]), place: Place::default() };
    let found = read(&mut report, &table).pop();
    let broken = report.has_errors();
    report.finish(found, broken)
}
