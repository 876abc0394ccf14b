//! Small builders for policies and questions, so that tests read like the tables they check.

use std::sync::Arc;

use jiff::Timestamp;
use toolwarden_core::json::{Document, Limits};
use toolwarden_core::{Call, Caller, Door, Layer, Operation, Origin, Sourced, ToolIdentity};
use toolwarden_policy::input::{
    Declared, Launch, ModeInput, PermissionsInput, RuleFile, ServerInput, ToolDefinition, ToolInput,
};
use toolwarden_policy::shell::FileFacts;
use toolwarden_policy::{PolicyInput, PolicySet, Query, Transport, decide, shipped};

pub const USER: &str = "ada";

pub fn origin(layer: Layer) -> Origin {
    Origin::new(layer, "test", 1, 1)
}

pub fn sourced(texts: &[&str]) -> Vec<Sourced<String>> {
    texts.iter().map(|text| Sourced::new((*text).to_owned(), origin(Layer::Config))).collect()
}

/// The shipped rules and the local person, nothing else.
pub fn plain() -> PolicyInput {
    let mut input = PolicyInput { version: 1, ..PolicyInput::default() };
    input.local.user = USER.to_owned();
    input.base.rules.push(RuleFile {
        origin: Origin::new(Layer::Shipped, shipped::RULES_SOURCE, 1, 1),
        text: shipped::RULES.to_owned(),
    });
    input
}

pub fn server(name: &str) -> ServerInput {
    ServerInput {
        launch: Launch::Command { command: name.to_owned(), arguments: Vec::new() },
        ..ServerInput::new(name, origin(Layer::Config), Declared::ByOperator)
    }
}

pub fn listing(mut server: ServerInput, tools: &[&str]) -> ServerInput {
    let definition = |name: &&str| ToolDefinition {
        name: (*name).to_owned(),
        description: None,
        input_schema: None,
        output_schema: None,
    };
    server.catalog = Some(tools.iter().map(definition).collect());
    server
}

pub fn with_tool(mut server: ServerInput, name: &str, tool: ToolInput) -> ServerInput {
    server.tools.insert(name.to_owned(), tool);
    server
}

pub fn files_allow(input: &mut PolicyInput, mcp: &[&str], terminal: &[&str]) {
    input.local.files.push(PermissionsInput {
        mcp_allowlist: Some(sourced(mcp)),
        terminal_allowlist: Some(sourced(terminal)),
        ..PermissionsInput::default()
    });
}

pub fn mode(slug: &str) -> ModeInput {
    ModeInput::unrestricted(slug, slug, origin(Layer::UserFile))
}

pub fn tools(pairs: &[(&str, &str)]) -> Vec<Sourced<ToolIdentity>> {
    pairs
        .iter()
        .map(|(server, tool)| Sourced::new(ToolIdentity::new(*server, *tool), origin(Layer::UserFile)))
        .collect()
}

pub fn arguments(text: &str) -> Option<Arc<Document>> {
    Document::parse(text, Limits::DEFAULT).ok().map(Arc::new)
}

pub fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

pub fn person() -> Arc<Caller> {
    Arc::new(Caller::local_person(USER))
}

pub fn person_in(mode: &str) -> Arc<Caller> {
    Arc::new(Caller { mode: Some(mode.to_owned()), ..Caller::local_person(USER) })
}

/// An agent with everything its role needs.
pub fn agent(role: &str) -> Arc<Caller> {
    let mut caller = Caller::agent(role, Some(USER.to_owned()));
    caller.context.task = Some("T1".to_owned());
    caller.context.job = Some("J1".to_owned());
    Arc::new(caller)
}

pub fn compile(input: &PolicyInput) -> PolicySet {
    match PolicySet::compile(input) {
        Ok(policy) => policy,
        Err(refused) => unreachable!("{:#?}", refused.0),
    }
}

/// `decision reason` for a call to a tool.
pub fn judged(policy: &PolicySet, caller: &Arc<Caller>, server: &str, tool: &str, json: Option<&str>) -> String {
    let call = match Operation::from_reserved_name(tool) {
        Some(operation) => Call::operation(server, operation, json.and_then(arguments)),
        None => Call::mcp(server, tool, json.and_then(arguments)),
    };
    answer(policy, &asked(caller, call, Door::Explain))
}

pub fn judged_shell(policy: &PolicySet, caller: &Arc<Caller>, command: &str) -> String {
    answer(policy, &asked_in("/srv/space", caller, Call::shell(command, None), Door::Explain))
}

pub fn judged_fetch(policy: &PolicySet, caller: &Arc<Caller>, url: &str) -> String {
    answer(policy, &asked(caller, Call::fetch(url), Door::Explain))
}

/// A question at a door without a workspace.
pub fn asked(caller: &Arc<Caller>, call: Call, door: Door) -> Query {
    Transport::new(door, None).query(caller.clone(), call, now()).with_files(FileFacts::as_written())
}

/// The same in a workspace.
pub fn asked_in(workspace: &str, caller: &Arc<Caller>, call: Call, door: Door) -> Query {
    Transport::new(door, Some(workspace.into())).query(caller.clone(), call, now()).with_files(FileFacts::as_written())
}

pub fn answer(policy: &PolicySet, query: &Query) -> String {
    let verdict = decide(policy, query);
    let explanation = verdict.explanation();
    format!("{} {}", explanation.decision.as_str(), explanation.reason.code())
}
