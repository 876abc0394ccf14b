//! What a hostile reader of the judge found, each as the smallest case that once passed.

use toolwarden_core::{Call, Door, Sourced};
use toolwarden_policy::input::{AdminInput, AutoRunMode, RoleInput, RuleFile, ToolDefinition, ToolInput};
use toolwarden_policy::{PolicyInput, PolicySet};

use crate::kit::{
    answer, arguments, asked_in, compile, files_allow, judged, judged_fetch, listing, origin, person, plain, server,
    sourced, with_tool,
};

fn everything() -> PolicyInput {
    let mut input = plain();
    input.base.auto_run.mode = AutoRunMode::RunEverything;
    input
}

fn shell(policy: &PolicySet, command: &str, directory: &str) -> String {
    let call = Call::shell(command, Some(directory.into()));
    let query = asked_in("/srv/space", &person(), call, Door::Explain);
    answer(policy, &query)
}

#[test]
fn self_1_a_relative_directory_hides_nothing() {
    let mut input = everything();
    input.base.protected_paths = vec!["/home/ada/.config/toolwarden".into(), "/srv/space/.roomodes".into()];
    let policy = compile(&input);
    for (command, directory) in [
        ("tee /home/ada/.config/toolwarden/toolwarden.toml", "."),
        ("echo x > /home/ada/.config/toolwarden/toolwarden.toml", "x"),
        ("tee .roomodes", "."),
        ("tee ../.roomodes", "sub"),
    ] {
        assert_eq!(shell(&policy, command, directory), "hold self_protection", "{command}");
    }
}

#[test]
fn shell_3_a_relative_name_is_only_what_it_is_in_the_workspace() {
    let mut input = plain();
    files_allow(&mut input, &[], &["./run.sh"]);
    let policy = compile(&input);
    assert_eq!(shell(&policy, "./run.sh", "/srv/space"), "allow allowlist_match");
    assert_eq!(shell(&policy, "./run.sh", "."), "allow allowlist_match");
    assert_eq!(shell(&policy, "./run.sh", "sub"), "hold not_in_allowlist");
    assert_eq!(shell(&policy, "./run.sh", "/tmp/evil"), "hold not_in_allowlist");
}

#[test]
fn allow_5_what_narrows_a_tool_ignores_case() {
    let mut input = everything();
    let narrowed = |tool: ToolInput| with_tool(listing(server("prod"), &["deploy"]), "Deploy", tool);
    for (tool, expected) in [
        (ToolInput { human_review: true, ..ToolInput::default() }, "hold human_review"),
        (ToolInput { requires_setting: Some("x.y".to_owned()), ..ToolInput::default() }, "deny setting_off"),
    ] {
        input.servers = vec![narrowed(tool)];
        assert_eq!(judged(&compile(&input), &person(), "prod", "deploy", None), expected);
    }
    let mut builtin = server("builtin");
    builtin.launch = toolwarden_policy::input::Launch::Nothing;
    input.servers = vec![with_tool(builtin, "Shell.Run", ToolInput { human_review: true, ..ToolInput::default() })];
    assert_eq!(shell(&compile(&input), "ls", "/srv/space"), "hold human_review");
}

#[test]
fn gate_12_a_number_beyond_the_checker_breaks_the_schema() {
    let mut input = everything();
    let schema = serde_json::json!({"type": "object", "properties": {"n": {"maximum": 10}}});
    let mut counting = server("s");
    counting.catalog = Some(vec![ToolDefinition { input_schema: Some(schema), ..ToolDefinition::named("count") }]);
    input.servers.push(counting);
    let policy = compile(&input);
    for (json, expected) in [
        (r#"{"n":9}"#, "allow run_everything"),
        (r#"{"n":11}"#, "deny schema_violation"),
        (r#"{"n":1e999}"#, "deny schema_violation"),
    ] {
        assert!(arguments(json).is_some());
        assert_eq!(judged(&policy, &person(), "s", "count", Some(json)), expected, "{json}");
    }
}

#[test]
fn gate_5_a_role_and_its_alias_cannot_both_be_defined() {
    let mut input = plain();
    for name in ["worker", "sandbox"] {
        input.base.roles.push(RoleInput {
            name: Sourced::new(name.to_owned(), origin(toolwarden_core::Layer::Config)),
            scope: None,
            allow: None,
            disallow: None,
            conditions: Vec::new(),
            explain: None,
        });
    }
    let codes =
        PolicySet::compile(&input).map_err(|refused| refused.0.iter().map(|finding| finding.code).collect::<Vec<_>>());
    assert_eq!(codes.err(), Some(vec!["role_twice"]));
}

#[test]
fn shell_1_denied_domains_in_every_writing() {
    let mut admin = AdminInput { enabled: true, allowed: sourced(&["ls"]), ..AdminInput::default() };
    admin.sandboxing.denied_domains =
        sourced(&["bücher.example", "https://evil.example", "evil2.example:443", "*.Wild.example."]);
    let mut input = everything();
    input.base.admin = Some(admin.clone());
    let policy = compile(&input);
    for url in [
        "https://bücher.example/x",
        "https://xn--bcher-kva.example",
        "https://evil.example",
        "https://a.evil2.example",
        "http://wild.example",
    ] {
        assert_eq!(judged_fetch(&policy, &person(), url), "deny domain_denied", "{url}");
    }
    admin.sandboxing.denied_domains = sourced(&["not a domain"]);
    input.base.admin = Some(admin);
    assert!(PolicySet::compile(&input).is_err());
}

#[test]
fn gate_10_rules_see_that_commands_are_not_all_known() {
    let mut input = everything();
    input.base.auto_run.delete_protection = false;
    let text = "forbid(principal, action, resource) when { context.commands.contains(\"curl\") || context.commands.contains(\"?\") };";
    input.base.rules.push(RuleFile { origin: origin(toolwarden_core::Layer::Config), text: text.to_owned() });
    let policy = compile(&input);
    for (command, expected) in [
        ("ls", "allow run_everything"),
        ("curl evil.example", "deny rule_forbid"),
        ("env -S 'curl evil.example'", "deny rule_forbid"),
        ("$X evil.example", "deny rule_forbid"),
        ("ls \"", "deny rule_forbid"),
    ] {
        assert_eq!(shell(&policy, command, "/srv/space"), expected, "{command}");
    }
}
