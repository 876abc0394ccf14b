//! Random servers: declared by different people, off, conflicting, with catalogs and tool settings.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolwarden_policy::input::{Declared, Launch, LimitsInput, Scope, ServerInput, ToolDefinition, ToolInput};

use crate::generate_calls::TOOLS;
use crate::tape::{Tape, here};

const DECLARED: [(&str, u32); 8] = [
    ("db", 95),
    ("web", 80),
    ("cursor-ide-browser", 60),
    ("Cursor-IDE-Browser", 12),
    ("DB", 5),
    ("\u{ff44}b", 2),
    ("builtin", 50),
    ("custom-user-tools", 40),
];

pub fn servers(tape: &mut Tape<'_>) -> Vec<ServerInput> {
    let mut servers = Vec::new();
    for (name, percent) in DECLARED {
        let mut section = tape.section(160);
        if section.chance(percent) {
            servers.push(server(name, &mut section));
        }
    }
    if tape.chance(4) {
        let again: Vec<ServerInput> = servers.iter().take(1).cloned().collect();
        servers.extend(
            again.into_iter().map(|server| ServerInput { launch: Launch::Url("https://b.test".into()), ..server }),
        );
    }
    servers
}

fn server(name: &str, tape: &mut Tape<'_>) -> ServerInput {
    let own = name == "builtin" || name == "custom-user-tools";
    let declared = tape.pick(
        Declared::ByOperator,
        &[Declared::ByOperator, Declared::ByOperator, Declared::ByWorkspace, Declared::ByUser],
    );
    let owner = tape.chance(18).then(|| tape.pick("bob", &["ann", "bob", "cid", "eve"]).to_owned());
    let enabled = !tape.chance(5);
    let default_enabled = !tape.chance(10);
    let labels = tape.texts(15, &["reads_untrusted", "sends_out"]);
    let limits = limits(tape);
    let disabled_tools = tape.list(2, &TOOLS);
    let always_allow = tape.list(5, &["get", "DB.READ", "api.call", "*", "bad:name"]);
    let catalog = tape.chance(92).then(|| catalog(tape)).filter(|_| !own);
    let mut tools = BTreeMap::new();
    for tool in TOOLS.iter().chain(&["resources/read", "prompts/get", "shell.run"]) {
        if tape.chance(if tool.contains('/') || own { 60 } else { 35 }) {
            tools.insert((*tool).to_owned(), tool_input(tape, catalog.as_deref(), tool));
        }
    }
    ServerInput {
        name: name.to_owned(),
        origin: here(),
        declared: if own { Declared::ByOperator } else { declared },
        owner: owner.filter(|_| !own),
        enabled,
        default_enabled: default_enabled || own,
        launch: if own { Launch::Nothing } else { Launch::Url(format!("https://{name}.test")) },
        labels,
        limits,
        tools,
        disabled_tools,
        always_allow,
        catalog,
    }
}

fn limits(tape: &mut Tape<'_>) -> LimitsInput {
    LimitsInput {
        request_bytes: tape.chance(6).then(|| tape.pick(100, &[40])),
        depth: tape.chance(6).then(|| tape.pick(3, &[1])),
        ..LimitsInput::default()
    }
}

fn tool_input(tape: &mut Tape<'_>, catalog: Option<&[ToolDefinition]>, tool: &str) -> ToolInput {
    let shape = tape.byte();
    let mut input = ToolInput {
        scope: tape.chance(80).then(|| tape.pick(Scope::Both, &[Scope::Pm, Scope::Sandbox, Scope::Both])),
        ..ToolInput::default()
    };
    match shape {
        100..=111 => input.enabled = Some(tape.chance(40)),
        112..=150 => input.task_scoped = tape.texts(50, &["task_id", "run_id", "job_id", "project_id"]),
        151..=165 => input.requires_setting = Some("feature.x".to_owned()),
        166..=180 => input.human_review = true,
        181..=220 => input.labels = tape.texts(60, &["sends_out", "reads_private"]),
        221..=240 => input.limits = limits(tape),
        _ => {}
    }
    let schema =
        catalog.into_iter().flatten().find(|listed| listed.name == tool).and_then(|tool| tool.input_schema.as_ref());
    let properties = schema.and_then(|schema| schema.get("properties"));
    if schema.is_some() && properties.is_none_or(|properties| properties.get("task_id").is_none()) {
        // Marking a tool whose schema lacks the field is an error (GATE-11).
        input.task_scoped.clear();
    }
    input
}

fn catalog(tape: &mut Tape<'_>) -> Vec<ToolDefinition> {
    let mut listed = Vec::new();
    for tool in TOOLS {
        let percent = if tool.chars().any(|letter| letter.is_ascii_uppercase()) { 8 } else { 75 };
        if tape.chance(percent) {
            let input_schema = schema(tape);
            listed.push(ToolDefinition { name: tool.to_owned(), description: None, input_schema, output_schema: None });
        }
    }
    listed
}

fn schema(tape: &mut Tape<'_>) -> Option<Value> {
    let ids = ["task_id", "run_id", "job_id", "project_id"];
    let mut properties = serde_json::Map::new();
    properties.insert("n".to_owned(), json!({ "type": "integer" }));
    properties.insert("k".to_owned(), json!({ "type": "string" }));
    properties.insert("table".to_owned(), json!({}));
    match tape.byte() {
        0..=147 => None,
        // A schema nobody can use.
        148..=150 => Some(json!({ "type": "objekt", "properties": properties })),
        151..=175 => Some(json!({ "type": "object" })),
        176..=190 => Some(json!({ "type": "object", "properties": properties })),
        other => {
            properties.extend(ids.map(|id| (id.to_owned(), json!({ "type": "string" }))));
            let mut schema = json!({ "type": "object", "properties": properties });
            if let (Some(schema), 230..) = (schema.as_object_mut(), other) {
                schema.insert("required".to_owned(), json!(["n"]));
                schema.insert("additionalProperties".to_owned(), json!(other % 2 == 0));
            }
            Some(schema)
        }
    }
}
