//! Policies of a given size, for the benchmarks, and the programs they start.

pub mod proxies;

use std::fmt::Write;
use std::sync::Arc;

use jiff::Timestamp;
use toolwarden_core::json::{Document, Limits};
use toolwarden_core::{Call, Caller, Door, Layer, Origin, Sourced, ToolIdentity};
use toolwarden_policy::input::{
    Declared, ModeInput, PermissionsInput, RoleInput, RuleFile, Scope, ServerInput, ToolDefinition,
};
use toolwarden_policy::{PolicyInput, PolicySet, Query, Transport, shipped};

pub const USER: &str = "ada";

fn origin() -> Origin {
    Origin::new(Layer::Config, "bench", 1, 1)
}

fn sourced(text: String) -> Sourced<String> {
    Sourced::new(text, origin())
}

/// The shipped rules and one server with `tools` listed tools.
#[must_use]
pub fn plain(tools: usize) -> PolicyInput {
    let mut input = PolicyInput { version: 1, ..PolicyInput::default() };
    input.local.user = USER.to_owned();
    input.base.rules.push(RuleFile { origin: origin(), text: shipped::RULES.to_owned() });
    input.servers.push(server("files", tools));
    input
}

fn server(name: &str, tools: usize) -> ServerInput {
    let definition = |index| ToolDefinition {
        name: format!("db.tool_{index}"),
        description: None,
        input_schema: None,
        output_schema: None,
    };
    ServerInput {
        catalog: Some((0..tools.max(8)).map(definition).collect()),
        ..ServerInput::new(name, origin(), Declared::ByOperator)
    }
}

/// A permissions.json with `entries` entries, the last of which matches the question.
#[must_use]
pub fn with_entries(entries: usize) -> PolicyInput {
    let mut input = plain(8);
    let mut list: Vec<_> = (1..entries).map(|index| sourced(format!("server_{index}:tool_{index}"))).collect();
    list.push(sourced("files:db.tool_7".to_owned()));
    input.local.files.push(PermissionsInput { mcp_allowlist: Some(list), ..PermissionsInput::default() });
    input
}

/// A mode whose lists have `entries` entries each.
#[must_use]
pub fn with_mode(entries: usize) -> PolicyInput {
    let mut input = with_entries(10);
    let tool = |index| Sourced::new(ToolIdentity::new(format!("server_{index}"), "tool"), origin());
    let mut allowed: Vec<_> = (1..entries).map(|index| sourced(format!("server_{index}"))).collect();
    allowed.push(sourced("files".to_owned()));
    input.base.modes.push(ModeInput {
        allowed_servers: Some(allowed),
        disallowed_tools: (0..entries).map(tool).collect(),
        ..ModeInput::unrestricted("bench", "Bench", origin())
    });
    input
}

/// A role with `entries` patterns.
#[must_use]
pub fn with_role(entries: usize) -> PolicyInput {
    let mut input = with_entries(10);
    let mut allow: Vec<_> = (1..entries).map(|index| sourced(format!("ns{index}.*"))).collect();
    allow.push(sourced("db.*".to_owned()));
    input.base.roles.push(RoleInput {
        name: sourced("bench".to_owned()),
        scope: Some(Scope::Pm),
        allow: Some(allow),
        disallow: Some((0..entries).map(|index| sourced(format!("deny{index}.*"))).collect()),
        conditions: Vec::new(),
        explain: None,
    });
    input
}

/// `rules` Cedar rules with conditions, three of which apply to the question.
#[must_use]
pub fn with_rules(rules: usize) -> PolicyInput {
    let mut input = with_entries(10);
    let mut text = String::new();
    for index in 3..rules.max(3) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "forbid(principal, action, resource == Mcp::Tool::\"s{index}:t\") when {{ context.args.hasTag(\"/x\") }};"
        );
    }
    text.push_str("forbid(principal, action, resource == Mcp::Tool::\"files:db.tool_7\") when { context.seen.contains(\"never\") };\n");
    text.push_str("forbid(principal, action, resource in Mcp::Server::\"files\") when { principal.groups.contains(\"banned\") };\n");
    text.push_str(
        "forbid(principal in User::\"ada\", action, resource) when { context has mode && context.mode == \"none\" };\n",
    );
    input.base.rules.push(RuleFile { origin: origin(), text });
    input
}

/// Compiles, or ends the benchmark with the reason.
///
/// # Panics
/// The generated policy is not valid.
#[must_use]
#[expect(clippy::panic, reason = "a benchmark of an invalid policy measures nothing")]
pub fn compile(input: &PolicyInput) -> PolicySet {
    PolicySet::compile(input).unwrap_or_else(|refused| panic!("{:?}", refused.0))
}

/// The question every benchmark asks.
#[must_use]
pub fn question(caller: Caller) -> Query {
    let arguments = Document::parse(r#"{"path":"/srv/data","limit":10}"#, Limits::DEFAULT).ok().map(Arc::new);
    Transport::new(Door::Mcp, None).query(
        Arc::new(caller),
        Call::mcp("files", "db.tool_7", arguments),
        Timestamp::UNIX_EPOCH,
    )
}

/// The local person, in a mode where one is given.
#[must_use]
pub fn person(mode: Option<&str>) -> Caller {
    Caller { mode: mode.map(str::to_owned), ..Caller::local_person(USER) }
}
