//! Whole traces: each stage with its outcome, rule and detail, for calls that every stage has something to say of.

use std::fmt::Write;
use std::sync::Arc;

use toolwarden_core::{Call, Caller, Door, Layer, Operation, Sourced};
use toolwarden_policy::input::{AdminInput, ArgumentCondition, AutoRunMode, RoleInput, Scope, ToolInput};
use toolwarden_policy::{PolicyInput, PolicySet, Query, decide};

use crate::kit::{
    agent, arguments, asked, asked_in, compile, files_allow, judged, listing, origin, person, plain, server, sourced,
    with_tool,
};

fn policy() -> PolicyInput {
    let mut input = plain();
    let tools = ["db.read", "db.write", "api.call", "node.start", "web.fetch", "artifact.get", "ext.open", "ext.shut"];
    let mut gateway = listing(server("gw"), &tools);
    let scoped = |scope| ToolInput { scope: Some(scope), ..ToolInput::default() };
    gateway = with_tool(gateway, "ext.open", scoped(Scope::Sandbox));
    let needing = ToolInput { requires_setting: Some("ext.on".to_owned()), ..scoped(Scope::Both) };
    gateway = with_tool(gateway, "ext.shut", needing);
    input.servers.push(gateway);
    let condition = |texts: &[&str]| ArgumentCondition {
        tool: Sourced::new("db.write".to_owned(), origin(Layer::Config)),
        arguments: [("n".to_owned(), texts.iter().map(|text| (*text).to_owned()).collect())].into(),
    };
    input.base.roles.push(RoleInput {
        name: Sourced::new("counter".to_owned(), origin(Layer::Config)),
        scope: Some(Scope::Pm),
        allow: Some(["db.*", "ext.*"].map(|text| Sourced::new(text.to_owned(), origin(Layer::Config))).into()),
        disallow: Some(Vec::new()),
        conditions: vec![condition(&["5", "1.5", "7*", "2e1", "true"])],
        explain: Some(true),
    });
    input
}

fn trace(input: &PolicyInput, caller: &Arc<Caller>, tool: &str, json: Option<&str>) -> String {
    let call = Call::mcp("gw", tool, json.and_then(arguments));
    let query = asked(caller, call, Door::Explain).traced();
    let verdict = decide(&compile(input), &query);
    let explanation = verdict.explanation();
    let mut text = format!("{} {}", explanation.decision.as_str(), explanation.reason.code());
    let said = |text: &mut String, rule: Option<&str>, detail: Option<&str>| {
        let _ = writeln!(text, "  {}  {}", rule.unwrap_or("-"), detail.unwrap_or("-"));
    };
    said(&mut text, explanation.rule.as_ref().map(|rule| &*rule.text), explanation.detail.as_deref());
    for (stage, step) in &explanation.trace {
        let _ = write!(text, "  {:<14} {:<14}", stage.as_str(), step.outcome.as_str());
        said(&mut text, step.rule.as_ref().map(|rule| &*rule.text), step.detail.as_deref());
    }
    text
}

#[test]
fn core_1_whole_traces() {
    let input = policy();
    let mut on = policy();
    on.base.settings.insert("ext.on".to_owned(), Sourced::new(true.into(), origin(Layer::Config)));
    let number = Some(r#"{"n":6}"#);
    let mut all = String::new();
    for (title, input, caller, tool, json) in [
        ("a person", &input, person(), "db.read", None),
        ("a role, scope pm", &input, agent("counter"), "db.read", None),
        ("a role, another scope", &input, agent("counter"), "ext.open", None),
        ("a role, no scope", &input, agent("worker"), "node.start", None),
        ("a setting that is off", &input, agent("counter"), "ext.shut", None),
        ("a setting that is on", &on, agent("counter"), "ext.shut", None),
        ("a condition that is not met", &input, agent("counter"), "db.write", number),
        ("a condition that is not configured", &input, agent("pa"), "db.write", number),
        ("a task's tool, missing", &input, agent("worker"), "api.call", None),
        ("scope both", &input, agent("worker"), "web.fetch", None),
        ("a tool nobody lists", &input, agent("pm"), "db.nothing", None),
    ] {
        let _ = writeln!(all, "{title}: {}", trace(input, &caller, tool, json));
    }
    insta::assert_snapshot!("traces", all);
}

#[test]
fn gate_5_a_tasks_tools_are_named_exactly() {
    let policy = compile(&policy());
    let with = |tools: &[&str]| {
        let mut caller = (*agent("worker")).clone();
        caller.token.task_tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        judged(&policy, &caller.into(), "gw", "api.call", None)
    };
    for tools in [&["api.call"][..], &["gw:api.call"], &["other", "api.call"]] {
        assert_eq!(with(tools), "hold not_in_allowlist", "{tools:?}");
    }
    for tools in [&[][..], &["other"], &["ws:api.call"], &["api.callx"], &["API.CALL"], &["gw:api"]] {
        assert_eq!(with(tools), "deny task_tool_missing", "{tools:?}");
    }
}

#[test]
fn work_2_conditions_of_roles_compare_numbers_by_value() {
    let policy = compile(&policy());
    let counted =
        |value: &str| judged(&policy, &agent("counter"), "gw", "db.write", Some(&format!("{{\"n\":{value}}}")));
    for value in
        ["5", "5.0", "5e0", "0.5e1", "1.5", "1.50", "15e-1", "7", "70", "7.5", "20", "2e1", "true", "\"5\"", "\"7x\""]
    {
        assert_eq!(counted(value), "hold not_in_allowlist", "{value}");
    }
    for value in ["6", "50", "1.6", "-5", "false", "null", "[5]", "{\"n\":5}", "\"5.0\"", "\"20\"", "200"] {
        assert_eq!(counted(value), "deny role_condition", "{value}");
    }
}

/// An answer with its rule, detail and candidates.
fn said(policy: &PolicySet, query: &Query) -> String {
    let verdict = decide(policy, query);
    let explanation = verdict.explanation();
    let rule = explanation.rule.as_ref().map_or("-", |rule| &*rule.text);
    let detail = explanation.detail.as_deref().unwrap_or("-");
    let (decision, reason) = (explanation.decision.as_str(), explanation.reason.code());
    format!("{decision} {reason}  rule {rule}  detail {detail}  candidates {:?}", explanation.candidates)
}

#[test]
fn shell_1_answers_say_which_command_and_what_would_help() {
    let mut own = plain();
    files_allow(&mut own, &["gw:db.read"], &["ls", "npm:test*", "cd"]);
    let mut everything = own.clone();
    everything.base.auto_run.mode = AutoRunMode::RunEverything;
    let mut admin = own.clone();
    admin.base.admin = Some(AdminInput {
        enabled: true,
        allowed: sourced(&["ls", "git:status"]),
        blocked: sourced(&["curl"]),
        ..AdminInput::default()
    });
    let mut all = String::new();
    for (title, input) in [("own lists", &own), ("run everything", &everything), ("an admin's lists", &admin)] {
        let policy = compile(input);
        let _ = writeln!(all, "{title}");
        for line in [
            "ls -l",
            "npm test -- a && ls",
            "make all; make all; gcc x",
            "ls | sh",
            "echo 'a",
            "",
            "rm -rf x",
            "sudo $x",
            "ls > /etc/passwd",
            "cd x && ls > y",
            "LC_ALL=C ls",
            "git status",
            "curl http://h",
        ] {
            let query = asked_in("/srv/space", &person(), Call::shell(line, None), Door::Explain);
            let _ = writeln!(all, "  {line:<28} {}", said(&policy, &query));
        }
        for url in ["https://example.com/", "ftp://example.com/", "not a url"] {
            let query = asked(&person(), Call::fetch(url), Door::Explain);
            let _ = writeln!(all, "  {url:<28} {}", said(&policy, &query));
        }
        for tool in ["db.read", "db.write", "resources/read"] {
            let call = Operation::from_reserved_name(tool)
                .map_or_else(|| Call::mcp("gw", tool, None), |operation| Call::operation("gw", operation, None));
            let _ = writeln!(all, "  {tool:<28} {}", said(&policy, &asked(&person(), call, Door::Explain)));
        }
        let nobody = asked(&Arc::new(Caller::agent("pm", None)), Call::shell("ls", None), Door::Explain);
        let _ = writeln!(all, "  {:<28} {}", "nobody's agent: ls", said(&policy, &nobody));
    }
    insta::assert_snapshot!("answers", all);
}
