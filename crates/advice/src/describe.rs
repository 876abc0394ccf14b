//! The prompt text of what a caller may use, for clients that build prompts (MODE-5).
//!
//! Everything in it comes from servers and is shown escaped: a tool's words must not pass as ours.

use std::fmt::Write;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use toolwarden_core::name::shown;
use toolwarden_core::{BUILTIN_SERVER, CUSTOM_TOOLS_SERVER, Call, Caller, Operation};

use toolwarden_policy::input::ToolDefinition;
use toolwarden_policy::servers::Server;
use toolwarden_policy::{PolicySet, Transport, is_visible};

/// Servers and tools a caller may use, as prompt text.
#[must_use]
pub fn describe(policy: &PolicySet, transport: &Transport, caller: &Arc<Caller>, time: Timestamp) -> String {
    let visible = |call: Call| is_visible(policy, &transport.query(caller.clone(), call, time));
    let mut tools = String::new();
    let mut resources = String::new();
    for server in policy.servers().sorted() {
        if matches!(&*server.name, BUILTIN_SERVER | CUSTOM_TOOLS_SERVER) {
            continue;
        }
        let usable: Vec<&ToolDefinition> = server
            .listed_tools()
            .into_iter()
            .filter(|tool| visible(Call::mcp(server.name.clone(), tool.name.as_str(), None)))
            .collect();
        describe_server(&mut tools, server, &usable, visible(unlisted(server)));
        if visible(Call::operation(server.name.clone(), Operation::ReadResource, None)) {
            let _ = writeln!(resources, "- {}", shown(&server.name));
        }
    }
    format!("{}\n{}", tools_section(&tools), resources_section(&resources))
}

/// A question about a server whose tools are not known: would it pass as a whole?
fn unlisted(server: &Server) -> Call {
    Call::operation(server.name.clone(), Operation::GetPrompt, None)
}

fn tools_section(tools: &str) -> String {
    if tools.is_empty() {
        return "## use_mcp_tool\n\nNo MCP servers or tools are available in this mode.\n".to_owned();
    }
    format!(
        "## use_mcp_tool\n\nUse a tool of an MCP server. Only these servers and tools are available:\n\n{tools}\n\
         Parameters:\n- server_name: the server's name\n- tool_name: the tool's name\n- arguments: a JSON object with the tool's arguments\n"
    )
}

fn resources_section(resources: &str) -> String {
    if resources.is_empty() {
        return "## access_mcp_resource\n\nNo MCP servers are available for reading resources in this mode.\n"
            .to_owned();
    }
    format!(
        "## access_mcp_resource\n\nRead a resource of an MCP server. Only these servers are available:\n\n{resources}\n\
         Parameters:\n- server_name: the server's name\n- uri: the resource's URI\n"
    )
}

fn describe_server(text: &mut String, server: &Server, tools: &[&ToolDefinition], reachable: bool) {
    // Writing to a string cannot fail.
    if tools.is_empty() {
        if !server.listed && reachable {
            let _ = writeln!(text, "### Server \"{}\"\n(its tools are not known yet)\n", shown(&server.name));
        }
        return;
    }
    let _ = writeln!(text, "### Server \"{}\"", shown(&server.name));
    for tool in tools {
        let description = tool.description.as_deref().map(|words| format!(": {}", one_line(words))).unwrap_or_default();
        let _ = writeln!(text, "- {}{description}", shown(&tool.name));
        for parameter in parameters(tool.input_schema.as_ref()) {
            let _ = writeln!(text, "  - {parameter}");
        }
    }
    text.push('\n');
}

/// White space of any kind becomes one space, so that a description cannot begin a line of its own.
fn one_line(words: &str) -> String {
    let joined = words.split_whitespace().collect::<Vec<_>>().join(" ");
    shown(&joined).into_owned()
}

fn parameters(schema: Option<&Value>) -> Vec<String> {
    let Some(schema) = schema else { return Vec::new() };
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties
        .map(|(name, property)| {
            let kind = property.get("type").and_then(Value::as_str).unwrap_or("any");
            let need = if required.contains(&name.as_str()) { "required" } else { "optional" };
            let words =
                property.get("description").and_then(Value::as_str).map(|words| format!(": {}", one_line(words)));
            format!("{} ({}, {need}){}", shown(name), shown(kind), words.unwrap_or_default())
        })
        .collect()
}
