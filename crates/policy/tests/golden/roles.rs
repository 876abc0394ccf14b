//! GATE-4 to GATE-7 and GATE-11 as a table: role × tool × arguments → decision.

use std::fmt::Write;

use toolwarden_core::Sourced;
use toolwarden_policy::PolicyInput;
use toolwarden_policy::input::{ArgumentCondition, AutoRunMode, Declared, RoleInput, Scope, ToolInput};

use crate::kit::{agent, compile, judged, listing, origin, person, plain, server, sourced, with_tool};

const TOOLS: [&str; 28] = [
    "artifact.get",
    "artifact.put",
    "artifact.list",
    "skills.list",
    "skills.get",
    "skills.delete",
    "web.fetch",
    "web.search",
    "api.call",
    "help.topic",
    "db.read",
    "db.write",
    "db.tasks.list",
    "node.status",
    "sandbox.create",
    "sandbox.exec",
    "sandbox.allowed_images.add",
    "sandbox.allowed_images.list",
    "model.list",
    "connector.invoke",
    "git.push",
    "git.pr.create",
    "DB.read",
    "dbx",
    "unscoped.tool",
    "sandboxed.tool",
    "resources/read",
    "prompts/get",
];

/// What arguments a call carries.
const CLASSES: [(&str, Option<&str>); 4] = [
    ("none", None),
    ("own task", Some(r#"{"task_id":"T1"}"#)),
    ("other task", Some(r#"{"task_id":"T2"}"#)),
    ("findings", Some(r#"{"task_id":"T1","table":"findings"}"#)),
];

fn policy() -> PolicyInput {
    let mut input = plain();
    // Everything that is authorized runs, so that the table shows authorization alone.
    input.base.auto_run.mode = AutoRunMode::RunEverything;
    let mut gateway = listing(server("gw"), &TOOLS.map(|tool| if tool.contains('/') { "other" } else { tool }));
    gateway = with_tool(gateway, "sandboxed.tool", ToolInput { scope: Some(Scope::Sandbox), ..ToolInput::default() });
    input.servers.push(gateway);
    let mut workspace = listing(server("ws"), &["db.read", "web.fetch"]);
    workspace.declared = Declared::ByWorkspace;
    input.servers.push(workspace);
    input.base.roles.push(RoleInput {
        name: Sourced::new("auditor".to_owned(), origin(toolwarden_core::Layer::Config)),
        scope: Some(Scope::Pm),
        allow: Some(sourced(&["db.*", "ws:db.*", "gw:resources/read", "unscoped.tool", "sandboxed.tool"])),
        disallow: Some(sourced(&["DB.WRITE"])),
        conditions: Vec::new(),
        explain: Some(true),
    });
    input
}

fn table(input: &PolicyInput, roles: &[&str]) -> String {
    let policy = compile(input);
    let mut table = String::new();
    for role in roles {
        let caller = if *role == "person" { person() } else { agent(role) };
        let _ = writeln!(table, "\n{role}");
        for tool in TOOLS {
            let answers: Vec<String> =
                CLASSES.iter().map(|(_, json)| judged(&policy, &caller, "gw", tool, *json)).collect();
            let same = answers.iter().all(|answer| Some(answer) == answers.first());
            if same {
                let _ = writeln!(table, "  {tool:<28} any arguments  {}", answers.first().cloned().unwrap_or_default());
            } else {
                for ((class, _), answer) in CLASSES.iter().zip(answers) {
                    let _ = writeln!(table, "  {tool:<28} {class:<14} {answer}");
                }
            }
        }
    }
    table
}

#[test]
fn gate_5_role_tool_arguments_table() {
    insta::assert_snapshot!(
        "roles",
        table(&policy(), &["worker", "sandbox", "pm", "pa", "auditor", "person", "nobody"])
    );
}

#[test]
fn gate_5_patterns_without_a_server_reach_operators_servers_only() {
    let policy = compile(&policy());
    assert_eq!(judged(&policy, &agent("pm"), "ws", "db.read", None), "deny role_not_allowed");
    assert_eq!(judged(&policy, &agent("worker"), "ws", "web.fetch", None), "deny role_not_allowed");
    // A pattern that names the server reaches it, but the preset scope does not.
    assert_eq!(judged(&policy, &agent("auditor"), "ws", "db.read", None), "deny scope_missing");
}

#[test]
fn gate_5_pa_writes_findings_once_configured() {
    let mut input = policy();
    input.base.roles.push(RoleInput {
        name: Sourced::new("pa".to_owned(), origin(toolwarden_core::Layer::Config)),
        scope: None,
        allow: None,
        disallow: None,
        conditions: vec![ArgumentCondition {
            tool: Sourced::new("db.write".to_owned(), origin(toolwarden_core::Layer::Config)),
            arguments: [("table".to_owned(), vec!["findings".to_owned()])].into(),
        }],
        explain: None,
    });
    let policy = compile(&input);
    let pa = agent("pa");
    for (json, expected) in [
        (Some(r#"{"table":"findings"}"#), "allow run_everything"),
        (Some(r#"{"table":"tasks"}"#), "deny role_condition"),
        (Some(r#"{"table":["findings"]}"#), "deny role_condition"),
        (Some("{}"), "deny role_condition"),
        (None, "deny role_condition"),
    ] {
        assert_eq!(judged(&policy, &pa, "gw", "db.write", json), expected, "{json:?}");
    }
    assert_eq!(judged(&policy, &pa, "gw", "db.read", None), "allow run_everything");
}

#[test]
fn gate_6_a_setting_opens_allowed_images() {
    let mut input = policy();
    let key = "agents.project_manager.sandbox.allow_add_to_allowed_images";
    for (value, expected) in [
        (serde_json::Value::Bool(true), "allow run_everything"),
        (serde_json::Value::Bool(false), "deny setting_off"),
        (serde_json::Value::from("true"), "deny setting_off"),
    ] {
        input.base.settings.insert(key.to_owned(), Sourced::new(value, origin(toolwarden_core::Layer::Config)));
        let policy = compile(&input);
        assert_eq!(judged(&policy, &agent("pm"), "gw", "sandbox.allowed_images.add", None), expected);
        assert_eq!(judged(&policy, &agent("pm"), "gw", "sandbox.allowed_images.list", None), "allow run_everything");
    }
}

#[test]
fn gate_5_api_call_needs_to_be_among_the_task_tools() {
    let policy = compile(&policy());
    let mut caller = (*agent("worker")).clone();
    caller.token.task_tools = vec!["api.call".to_owned()];
    assert_eq!(judged(&policy, &caller.into(), "gw", "api.call", None), "allow run_everything");
}

#[test]
fn gate_3_roles_need_their_context() {
    let policy = compile(&policy());
    let mut worker = (*agent("worker")).clone();
    worker.context.job = None;
    assert_eq!(judged(&policy, &worker.into(), "gw", "web.fetch", None), "deny context_missing");
    let mut pm = (*agent("pm")).clone();
    pm.user = None;
    assert_eq!(judged(&policy, &pm.into(), "gw", "web.fetch", None), "deny context_missing");
    // A worker without a user is authorized, but nothing runs by itself for it (CORE-7).
    let mut userless = (*agent("worker")).clone();
    userless.user = None;
    assert_eq!(judged(&policy, &userless.into(), "gw", "web.search", None), "hold no_user");
}

#[test]
fn gate_11_task_scoped_tools() {
    let mut input = policy();
    let scoped = ToolInput {
        scope: Some(Scope::Both),
        task_scoped: vec!["task_id".to_owned(), "project_id".to_owned()],
        ..ToolInput::default()
    };
    input.servers.push(with_tool(server("scoped"), "git.push", scoped));
    let policy = compile(&input);
    let mut bound = (*agent("pm")).clone();
    bound.context.project = Some("P1".to_owned());
    let mut unbound = bound.clone();
    unbound.context = toolwarden_core::Context::default();
    for (caller, json, expected) in [
        (&bound, r#"{"task_id":"T1","project_id":"P1"}"#, "allow run_everything"),
        (&bound, r#"{"task_id":"T1"}"#, "deny task_id_missing"),
        (&bound, r#"{"task_id":"T1","project_id":"P2"}"#, "deny task_id_mismatch"),
        (&bound, r#"{"task_id":1,"project_id":"P1"}"#, "deny task_id_mismatch"),
        (&bound, r#"{"task_id":"T1","project_id":"P1","job_id":"J2"}"#, "deny task_id_mismatch"),
        (&unbound, r#"{"task_id":"T9","project_id":"P9"}"#, "allow run_everything"),
        (&unbound, "{}", "deny task_id_missing"),
    ] {
        assert_eq!(judged(&policy, &caller.clone().into(), "scoped", "git.push", Some(json)), expected, "{json}");
    }
}

#[test]
fn gate_9_a_switched_off_tool_is_off_for_everyone() {
    for (key, value) in [
        ("mcp.tools.disabled", serde_json::json!(["WEB.fetch"])),
        ("mcp.tools.disabled", serde_json::json!(["gw:web.FETCH"])),
        ("mcp.tool.web.fetch.enabled", serde_json::json!(false)),
        ("mcp.tool.gw:web.fetch.enabled", serde_json::json!(false)),
        // As the tool is called behind the common door, and as people write it.
        ("mcp.tools.disabled", serde_json::json!(["gw__web.fetch"])),
        ("mcp.tools.disabled", serde_json::json!(["GW__web_fetch"])),
        ("mcp.tools.disabled", serde_json::json!(["gw.web.fetch"])),
        ("mcp.tool.gw.web.fetch.enabled", serde_json::json!(false)),
        ("mcp.tool.gw__web.fetch.enabled", serde_json::json!(false)),
    ] {
        let mut input = policy();
        input.base.settings.insert(key.to_owned(), Sourced::new(value, origin(toolwarden_core::Layer::Config)));
        let policy = compile(&input);
        for caller in [person(), agent("pm"), agent("worker")] {
            assert_eq!(judged(&policy, &caller, "gw", "web.fetch", None), "deny tool_disabled", "{key}");
        }
    }
}
