//! Which server and tool a call means: exact names at MCP doors, ASCII case forgiven elsewhere (CORE-6).

use toolwarden_core::{Door, Operation, Reason};
use toolwarden_policy::Query;
use toolwarden_policy::input::{PolicyInput, ServerInput};

use crate::naive::Case;

/// The names a call turned out to mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub server: String,
    pub tool: String,
    pub ambiguous: bool,
}

/// ALLOW-2.
pub fn is_valid(name: &str) -> bool {
    let bad = |character: char| {
        character.is_control()
            || matches!(character, ':' | '*' | '\u{2028}' | '\u{2029}' | '\u{200E}' | '\u{200F}' | '\u{061C}')
            || ('\u{202A}'..='\u{202E}').contains(&character)
            || ('\u{2066}'..='\u{2069}').contains(&character)
    };
    !name.trim().is_empty() && name.chars().count() <= 256 && !name.chars().any(bad)
}

pub fn same(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}

/// GATE-8: what one user installed is not there for anybody else.
pub fn is_there(server: &ServerInput, query: &Query) -> bool {
    server.owner.is_none() || server.owner == query.caller.user
}

pub fn known_servers(input: &PolicyInput, query: &Query) -> Vec<String> {
    let mut names = vec!["builtin".to_owned(), "custom-user-tools".to_owned()];
    for server in input.servers.iter().filter(|server| is_there(server, query)) {
        if !names.contains(&server.name) {
            names.push(server.name.clone());
        }
    }
    names
}

/// Tools somebody listed or configured for this server.
pub fn known_tools(input: &PolicyInput, query: &Query, server: &str) -> Vec<String> {
    let mut names = listed_tools(input, query, server);
    for definition in input.servers.iter().filter(|definition| definition.name == server && is_there(definition, query))
    {
        names.extend(definition.tools.keys().cloned());
    }
    names.sort();
    names.dedup();
    names
}

/// Tools this server lists.
pub fn listed_tools(input: &PolicyInput, query: &Query, server: &str) -> Vec<String> {
    let mut names = Vec::new();
    if server == "builtin" {
        names.extend(["shell.run".to_owned(), "web.fetch".to_owned()]);
    }
    for definition in input.servers.iter().filter(|definition| definition.name == server && is_there(definition, query))
    {
        names.extend(definition.catalog.iter().flatten().map(|tool| tool.name.clone()));
    }
    names
}

pub fn name(input: &PolicyInput, query: &Query) -> Named {
    let call = &query.call;
    let mut named = Named { server: call.server.to_string(), tool: call.tool.to_string(), ambiguous: false };
    if query.door == Door::Mcp {
        return named;
    }
    let known = known_servers(input, query);
    meant(&mut named.server, &known, &mut named.ambiguous);
    if call.requested_operation() == Operation::CallTool {
        meant(&mut named.tool, &known_tools(input, query, &named.server), &mut named.ambiguous);
    }
    named
}

/// Replaces a name by the one known name it differs from only in ASCII case.
fn meant(name: &mut String, known: &[String], ambiguous: &mut bool) {
    if known.contains(name) {
        return;
    }
    let fitting: Vec<&String> = known.iter().filter(|other| same(other, name)).collect();
    match fitting.as_slice() {
        [] => {}
        [one] => *name = (*one).clone(),
        _ => *ambiguous = true,
    }
}

pub fn gate(case: &Case<'_>) -> Option<Reason> {
    // ALLOW-11: a name without a server that several tools fit.
    if case.named.ambiguous || !case.query.several.is_empty() {
        return Some(Reason::NameAmbiguous);
    }
    let is_tool_call = case.query.call.requested_operation() == Operation::CallTool;
    (is_tool_call && case.named.tool.contains('/')).then_some(Reason::NameReserved)
}
