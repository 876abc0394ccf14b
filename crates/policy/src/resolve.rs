//! From the names a caller gave to the server and tool that are meant (CORE-6, ALLOW-11).

use toolwarden_core::{Door, Operation, ToolIdentity};

use crate::query::Query;
use crate::servers::{Found, Server, Tool};
use crate::set::PolicySet;

/// What became of a call's names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolved<'a> {
    /// As known, or as given where unknown.
    pub(crate) server_name: &'a str,
    pub(crate) tool_name: &'a str,
    pub(crate) server: Option<&'a Server>,
    /// Whether somebody listed or configured the tool. Resources, prompts and completion are of
    /// every server.
    pub(crate) tool_known: bool,
    pub(crate) ambiguous: bool,
}

pub(crate) fn resolve<'a>(policy: &'a PolicySet, query: &'a Query) -> Resolved<'a> {
    let (server_given, tool_given) = (&*query.call.server, &*query.call.tool);
    // Only the doors that judge what a client executes forgive a difference in case.
    let forgiving = query.door != Door::Mcp;
    let user = query.caller.user.as_deref();
    let (server_name, server_ambiguous) = choose(policy.servers().find(server_given, user), server_given, forgiving);
    let server = policy.servers().get_for(server_name, user).map(AsRef::as_ref);
    if query.call.requested_operation() != Operation::CallTool {
        let tool_known = server.is_some();
        return Resolved { server_name, tool_name: tool_given, server, tool_known, ambiguous: server_ambiguous };
    }
    let found = server.map_or(Found::Unknown, |server| server.find_tool(tool_given));
    let (tool_name, tool_ambiguous) = choose(found, tool_given, forgiving);
    // At MCP doors only what the server lists exists; elsewhere a config makes a tool known, too.
    let exists = |tool: &Tool| query.door != Door::Mcp || tool.definition.is_some();
    let tool_known = server.and_then(|server| server.tool(tool_name)).is_some_and(exists);
    Resolved { server_name, tool_name, server, tool_known, ambiguous: server_ambiguous || tool_ambiguous }
}

fn choose<'a>(found: Found<'a>, given: &'a str, forgiving: bool) -> (&'a str, bool) {
    match found {
        Found::Known(known) if forgiving || known == given => (known, false),
        Found::Ambiguous if forgiving => (given, true),
        Found::Known(_) | Found::Ambiguous | Found::Unknown => (given, false),
    }
}

/// What a name given without a server means (ALLOW-11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlatName {
    One(ToolIdentity),
    /// Several known tools fit: the call is denied.
    Several(Vec<ToolIdentity>),
}

/// Resolves `mcp_server_tool` and `mcp__server__tool`, for doors that give no server. Only servers count that the
/// user knows (GATE-8).
#[must_use]
pub fn resolve_flat_name(policy: &PolicySet, name: &str, fallback_server: &str, user: Option<&str>) -> FlatName {
    let mut fitting: Vec<ToolIdentity> = Vec::new();
    for (prefix, separator) in [("mcp__", "__"), ("mcp_", "_")] {
        let Some(rest) = name.strip_prefix(prefix) else { continue };
        for server in policy.servers().sorted().into_iter().filter(|server| server.is_for(user)) {
            let tool = strip_folded(rest, &server.name).and_then(|rest| rest.strip_prefix(separator));
            for tool in tool.map(|tool| server.tools_spelt(tool)).unwrap_or_default() {
                let identity = ToolIdentity::new(&*server.name, tool);
                if !fitting.contains(&identity) {
                    fitting.push(identity);
                }
            }
        }
    }
    match fitting.len() {
        0 => FlatName::One(split(name, fallback_server)),
        1 => FlatName::One(fitting.swap_remove(0)),
        _ => FlatName::Several(fitting),
    }
}

fn strip_folded<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn split(name: &str, fallback_server: &str) -> ToolIdentity {
    let parts = match name.strip_prefix("mcp__") {
        Some(rest) => rest.split_once("__"),
        None => name.strip_prefix("mcp_").and_then(|rest| rest.split_once('_')),
    };
    match parts {
        Some((server, tool)) => ToolIdentity::new(server, tool),
        None => ToolIdentity::new(fallback_server, name),
    }
}
