//! GATE-10: sliced rules answer like the whole set; rules are refused before they can mislead.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::{Just, ProptestConfig, Strategy, prop, prop_oneof, proptest};
use toolwarden_core::json::{Document, Limits};
use toolwarden_core::{Caller, Door, Layer, Origin};

use super::{Facts, Rules};
use crate::finding::Severity;
use crate::hosts::Address;
use crate::input::{Declared, RuleFile, ServerInput, ToolDefinition};
use crate::servers::Servers;

fn file(text: &str) -> RuleFile {
    RuleFile { origin: Origin::new(Layer::Config, "rules.cedar", 1, 1), text: text.to_owned() }
}

fn rules(text: &str) -> Rules {
    match Rules::compile(&[file(text)]) {
        Ok(rules) => rules,
        Err(findings) => unreachable!("{findings:?} {text}"),
    }
}

fn findings(text: &str, servers: &[ServerInput]) -> Vec<String> {
    let show = |finding: &crate::Finding| {
        format!("{} {} {}:{}", finding.severity.as_str(), finding.code, finding.origin.line, finding.message)
    };
    match Rules::compile(&[file(text)]) {
        Ok(rules) => rules.validate(&Servers::compile(servers)).iter().map(show).collect(),
        Err(findings) => findings.iter().map(show).collect(),
    }
}

fn issue_server() -> ServerInput {
    issue_server_taking(serde_json::json!({
        "type": "object",
        "properties": {"title": {"type": "string"}, "count": {"type": "integer"}, "weight": {"type": "number"}},
        "required": ["title"],
    }))
}

fn issue_server_taking(schema: serde_json::Value) -> ServerInput {
    ServerInput {
        catalog: Some(vec![ToolDefinition {
            name: "issue".to_owned(),
            description: None,
            input_schema: Some(schema),
            output_schema: None,
        }]),
        ..ServerInput::new("gh", Origin::record(Layer::Config, "test"), Declared::ByOperator)
    }
}

#[test]
fn gate_10_typed_by_the_tools_schema() {
    let typed = |condition: &str| {
        let text = format!("permit(principal, action, resource == Mcp::Tool::\"gh:issue\") when {{ {condition} }};");
        findings(&text, &[issue_server()])
    };
    assert!(typed("context.arguments.title like \"x*\"").is_empty());
    assert!(typed("context.arguments has count && context.arguments.count < 3").is_empty());
    for (condition, part) in [
        ("context.arguments.titel == \"x\"", "titel"),
        ("context.arguments.count < 3", "count"),
        ("context.arguments.title < 3", "type"),
        ("context.arguments.weight == 1", "weight"),
        ("context.arguments has weight && context.arguments.weight == \"1\"", "type"),
        ("principal.readonly", "readonly"),
    ] {
        let found = typed(condition).join("\n");
        assert!(found.starts_with("error rule_invalid") && found.contains(part), "{condition}: {found}");
    }
    // Without the definition the arguments cannot be checked, and that is said.
    let text =
        "permit(principal, action, resource == Mcp::Tool::\"gh:issue\") when { context.arguments.title == \"x\" };";
    let found = findings(text, &[]).join("\n");
    assert!(found.contains("warning rule_untyped"), "{found}");
    // A rule that only has the word in it looks at none.
    let text = "@id(\"arguments\") forbid(principal, action, resource) when { context.args.hasTag(\"/arguments\") };";
    assert_eq!(findings(text, &[]), Vec::<String>::new());
}

#[test]
fn gate_10_typed_as_deep_as_schemas_are_followed() {
    let object =
        |inner: serde_json::Value| serde_json::json!({"type": "object", "properties": {"p": inner}, "required": ["p"]});
    let list = |inner: serde_json::Value| serde_json::json!({"type": "array", "items": inner});
    let text = || serde_json::json!({"type": "string"});
    let typed = |schema: serde_json::Value, condition: &str| {
        let rule = format!("permit(principal, action, resource == Mcp::Tool::\"gh:issue\") when {{ {condition} }};");
        findings(&rule, &[issue_server_taking(schema)]).join("\n")
    };
    for (levels, is_followed) in [(1, true), (8, true), (9, false)] {
        let objects = typed(
            (0..levels).fold(text(), |inner, _| object(inner)),
            &format!("context.arguments{} == \"x\"", ".p".repeat(levels)),
        );
        let lists = typed(
            object((1..levels).fold(text(), |inner, _| list(inner))),
            "context.arguments.p == context.arguments.p",
        );
        for found in [objects, lists] {
            let is_refused = found.starts_with("error rule_invalid") && found.contains("not found");
            assert!(if is_followed { found.is_empty() } else { is_refused }, "{levels}: {found}");
        }
    }
}

#[test]
fn gate_10_rules_that_cannot_be_used_are_refused() {
    for (text, part) in [
        ("permit(principal, action, resource)", "error rule_syntax"),
        ("permit(principal, action, resource);\nforbid(principal action, resource);", "error rule_syntax 2:"),
        ("permit(principal == ?principal, action, resource);", "rule_template"),
        ("@hold(\"x\") permit(principal, action, resource);", "rule_unusable"),
        ("permit(principal, action == Action::\"mcp.tools.invoke\", resource);", "rule_never_applies"),
        ("permit(principal in Team::\"x\", action, resource);", "error rule_invalid"),
        ("permit(principal == User::\"x\", action, resource);", "rule_"),
        ("permit(principal, action, resource in Mcp::Server::\"nowhere\");", "warning rule_matches_nothing"),
    ] {
        let found = findings(text, &[]).join("\n");
        assert!(found.contains(part), "{text}: {found}");
    }
}

#[test]
fn gate_10_rules_that_change_nothing_are_found() {
    let wide = "forbid(principal, action, resource in Mcp::Server::\"builtin\");\n";
    for (rule, shadowed) in [
        ("permit(principal is Agent, action, resource == Mcp::Tool::\"builtin:shell.run\");", true),
        ("permit(principal, action, resource == Mcp::Tool::\"built:shell.run\");", false),
        ("permit(principal is Agent, action, resource in Mcp::Server::\"builtin\");", true),
        (
            "forbid(principal, action, resource in Mcp::Server::\"builtin\") when { context.seen.contains(\"x\") };",
            true,
        ),
        ("@hold(\"x\") forbid(principal, action, resource in Mcp::Server::\"builtin\");", true),
        ("permit(principal, action, resource);", false),
    ] {
        let found = findings(&format!("{wide}{rule}"), &[]).join("\n");
        assert_eq!(found.contains("note rule_shadowed 2:"), shadowed, "{rule}: {found}");
        assert!(!found.contains("note rule_shadowed 1:"), "{rule}: {found}");
    }
    let twice = "permit(principal, action, resource);\npermit(principal, action, resource);";
    assert_eq!(findings(twice, &[]).len(), 1);
    for (rule, shadowed) in [
        ("permit(principal is Agent, action, resource in Mcp::Server::\"builtin\");", true),
        ("permit(principal is Agent in User::\"ada\", action, resource);", true),
        ("permit(principal == Agent::\"a\", action, resource);", true),
        ("permit(principal is Person, action, resource);", false),
        ("permit(principal is Person in User::\"ada\", action, resource);", false),
    ] {
        let found = findings(&format!("forbid(principal is Agent, action, resource);\n{rule}"), &[]).join("\n");
        assert_eq!(found.contains("note rule_shadowed 2:"), shadowed, "{rule}: {found}");
    }
    // Which of them comes first matters only where both say the same.
    for (rule, shadowed) in [
        ("forbid(principal is Agent, action, resource);", true),
        ("permit(principal, action, resource);", true),
        ("forbid(principal, action, resource) when { context.seen.contains(\"x\") };", true),
        ("forbid(principal, action, resource);", false),
    ] {
        let found = findings(&format!("{rule}\nforbid(principal, action, resource);"), &[]).join("\n");
        assert_eq!(found.contains("note rule_shadowed 1:"), shadowed, "{rule}: {found}");
    }
}

/// What comparing two policies asks of each rule.
#[test]
fn gate_16_rules_that_can_fail_or_look_at_names_or_labels_are_known() {
    for (text, fails, by_label, by_name) in [
        ("permit(principal, action, resource == Mcp::Tool::\"a-b:t\");", false, false, false),
        ("forbid(principal, action, resource == Mcp::Tool::\"a-b:t\");", false, false, true),
        ("forbid(principal, action, resource in Mcp::Server::\"a\");", false, false, true),
        ("@id(\"labels\")\nforbid(principal, action, resource in Mcp::Label::\"out\");", false, false, false),
        ("permit(principal, action, resource in Mcp::Label::\"out\");", false, true, false),
        ("forbid(principal, action, resource);", false, false, false),
        (
            "forbid(principal, action, resource in Mcp::Label::\"out\") unless { resource in Mcp::Label::\"safe\" };",
            false,
            true,
            true,
        ),
        (
            "forbid(principal, action, resource in Mcp::Label::\"out\") when { context.seen.contains(\"x\") };",
            false,
            false,
            false,
        ),
        ("forbid(principal, action, resource) unless { resource.labels.contains(\"safe\") };", false, true, true),
        (
            "permit(principal, action, resource) when { resource[\"lab\\u{65}ls\"].contains(\"safe\") };",
            false,
            true,
            false,
        ),
        ("forbid(principal, action, resource) when { resource.name == \"t\" };", false, false, true),
        ("permit(principal, action, resource) when { context.operation == \"a-b\" };", false, false, false),
        ("permit(principal, action, resource) when { context.arguments.n > 3 };", true, false, false),
        ("permit(principal, action, resource) when { context.now > datetime(\"2030-01-01\") };", true, false, false),
        (
            "permit(principal, action, resource) when { context.now > context.now . offset (duration (\"1h\")) };",
            true,
            false,
            false,
        ),
        ("permit(principal, action, resource) when { 1 + 1 == 2 };", true, false, false),
    ] {
        let rules = rules(text);
        let [rule] = rules.all() else { unreachable!("one rule: {text}") };
        assert_eq!(rule.text(), text);
        let found = (rule.may_fail(), rule.may_open_by_label(), rule.forbids_by_name());
        assert_eq!(found, (fails, by_label, by_name), "{text}");
    }
}

#[test]
fn the_shipped_rules_are_valid() {
    let rules = rules(crate::shipped::RULES);
    let found = rules.validate(&Servers::compile(&[]));
    assert!(found.iter().all(|finding| finding.severity != Severity::Error), "{found:?}");
    assert_eq!(rules.all().iter().map(|rule| rule.origin.line).collect::<Vec<_>>(), [7, 12, 17]);
}

#[test]
fn work_2_rules_that_an_absent_argument_escapes_are_found() {
    let forbid =
        |condition: &str| format!("forbid(principal, action, resource == Mcp::Tool::\"gh:issue\") {condition};");
    let permit =
        |condition: &str| format!("permit(principal, action, resource == Mcp::Tool::\"gh:issue\") {condition};");
    for (text, is_escaped) in [
        (forbid("when { context.arguments has count && context.arguments.count > 3 }"), true),
        (
            forbid(
                "when { context.arguments.title like \"x*\" && context.arguments has count && context.arguments.count > 3 }",
            ),
            true,
        ),
        (forbid("when { context.arguments has count } when { context.arguments.count > 3 }"), true),
        (forbid("unless { !(context.arguments has count) || context.arguments.count < 3 }"), true),
        (forbid("when { if context.arguments has count then context.arguments.count > 3 else false }"), true),
        (forbid("when { context.args.hasTag(\"/count\") && context.args.getTag(\"/count\") == \"4\" }"), true),
        (forbid("when { context.arguments has count && [context.arguments.count, 7].contains(3) }"), true),
        (
            forbid(
                "when { if principal is Agent then context.arguments has count && context.arguments.count > 3 else context.arguments has count && context.arguments.count > 5 }",
            ),
            true,
        ),
        (
            forbid(
                "when { if principal is Agent then context.arguments has count && context.arguments.count > 3 else true }",
            ),
            false,
        ),
        (permit("when { !(context.arguments has count) || context.arguments.count < 3 }"), true),
        // The schema requires it; its absence is forbidden; only its presence counts; or a missing one denies.
        (forbid("when { context.arguments has title && context.arguments.title like \"x*\" }"), false),
        (forbid("when { !(context.arguments has count) || context.arguments.count > 3 }"), false),
        (forbid("when { if context.arguments has count then context.arguments.count > 3 else true }"), false),
        (forbid("when { context.arguments has count }"), false),
        (permit("when { context.arguments has count && context.arguments.count < 3 }"), false),
        (permit("when { !(context.arguments has count) }"), false),
        (forbid("when { context.arguments.title == \"x\" }"), false),
    ] {
        let found = findings(&text, &[issue_server()]).join("\n");
        assert_eq!(found.contains("warning rule_escaped_by_absence"), is_escaped, "{text}: {found}");
    }
    let untyped = forbid("when { context.arguments has title && context.arguments.title like \"x*\" }");
    assert!(findings(&untyped, &[]).join("\n").contains("rule_escaped_by_absence"), "no schema requires it");
}

#[test]
fn work_2_rules_that_an_absent_part_of_the_context_escapes_are_found() {
    let forbid = |condition: &str| format!("forbid(principal, action, resource) {condition};");
    let permit = |condition: &str| format!("permit(principal, action, resource) {condition};");
    for name in ["mode", "host", "url", "scheme", "task_id", "project_id", "run_id", "job_id", "session_id", "token_id"]
    {
        for (text, is_escaped) in [
            (forbid(&format!("when {{ context has {name} && context.{name} == \"x\" }}")), true),
            (forbid(&format!("when {{ context has {name} }} when {{ context.{name} != \"x\" }}")), true),
            (forbid(&format!("unless {{ !(context has {name}) || context.{name} == \"x\" }}")), true),
            (permit(&format!("when {{ !(context has {name}) || context.{name} == \"x\" }}")), true),
            (forbid(&format!("when {{ !(context has {name}) || context.{name} == \"x\" }}")), false),
            (forbid(&format!("when {{ if context has {name} then context.{name} == \"x\" else true }}")), false),
            (forbid(&format!("when {{ context has {name} }}")), false),
            (forbid(&format!("when {{ context.{name} == \"x\" }}")), false),
            (permit(&format!("when {{ context has {name} && context.{name} == \"x\" }}")), false),
        ] {
            let found = findings(&text, &[]).join("\n");
            assert_eq!(found.contains("warning rule_escaped_by_absence"), is_escaped, "{text}: {found}");
        }
    }
    let port = forbid("when { context has port && context.port == 22 }");
    assert!(findings(&port, &[]).join("\n").contains("rule_escaped_by_absence"));
    // What every call has cannot be left out.
    let always = forbid("when { context has door && context.door == \"mcp\" }");
    assert!(!findings(&always, &[]).join("\n").contains("rule_escaped_by_absence"));
}

/// What the documentation shows to be copied into a guard must be valid, and not be escaped by leaving something out.
#[test]
fn work_2_the_documentation_shows_no_guard_that_absence_escapes() {
    let text = include_str!("../../../docs/rules.md");
    let spans = text.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('`').skip(1).step_by(2));
    let guards = spans.filter(|span| span.contains("hasTag(") || span.contains(" has "));
    let rules: Vec<String> =
        guards.map(|guard| format!("forbid(principal, action, resource) when {{ {guard} }};")).collect();
    assert!(rules.len() >= 2, "{rules:?}");
    for rule in rules {
        let found = findings(&rule, &[]).join("\n");
        assert!(!found.contains("rule_escaped_by_absence") && !found.contains("error"), "{rule}: {found}");
    }
    // Of the whole rules, one is shown as what not to do.
    let blocks = text.split("```cedar\n").skip(1).filter_map(|rest| rest.split("```").next());
    let shown: Vec<&str> = blocks.filter(|block| block.contains(" has ")).collect();
    let escaped = |block: &&str| findings(block, &[]).join("\n").contains("rule_escaped_by_absence");
    let is_meant = |block: &&str| block.contains("// escaped by");
    assert_eq!(shown.iter().map(escaped).collect::<Vec<_>>(), shown.iter().map(is_meant).collect::<Vec<_>>());
    assert!(shown.iter().any(escaped) && !shown.iter().all(escaped), "{shown:?}");
}

/// What a finding advises must be valid where the schema knows the argument.
#[test]
fn work_2_the_form_that_is_advised_is_valid() {
    let rule =
        |guard: &str| format!("forbid(principal, action, resource == Mcp::Tool::\"gh:issue\") when {{ {guard} }};");
    let escaped = rule("context.arguments has count && context.arguments.count > 3");
    let found = findings(&escaped, &[issue_server()]).join("\n");
    assert!(found.contains("rule_escaped_by_absence"), "{found}");
    let advised = rule("if context.arguments has count then context.arguments.count > 3 else true");
    assert_eq!(findings(&advised, &[issue_server()]), Vec::<String>::new());
}

const SERVERS: [&str; 3] = ["a", "b", "a:b"];
const TOOLS: [&str; 3] = ["t", "u", "b:t"];

fn principal_scope() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("principal"),
        Just("principal is Person"),
        Just("principal is Agent"),
        Just("principal == Agent::\"tok\""),
        Just("principal == Person::\"ada\""),
        Just("principal in Role::\"pm\""),
        Just("principal in User::\"ada\""),
        Just("principal in Group::\"ops\""),
        Just("principal is Agent in Group::\"ops\""),
        Just("principal is Person in Role::\"pm\""),
    ]
}

fn resource_scope() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("resource".to_owned()),
        Just("resource is Mcp::Tool".to_owned()),
        prop::sample::select(&SERVERS[..]).prop_map(|server| format!("resource in Mcp::Server::\"{server}\"")),
        (prop::sample::select(&SERVERS[..]), prop::sample::select(&TOOLS[..]))
            .prop_map(|(server, tool)| format!("resource == Mcp::Tool::\"{server}:{tool}\"")),
        prop::sample::select(&["out", "in"][..]).prop_map(|label| format!("resource in Mcp::Label::\"{label}\"")),
    ]
}

fn condition() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => Just(""),
        1 => Just("when { context.args.hasTag(\"/k\") && context.args.getTag(\"/k\") == \"v\" }"),
        1 => Just("when { context.arguments has n && context.arguments.n > 2 }"),
        1 => Just("when { context.arguments.n > 2 }"),
        1 => Just("when { context.seen.contains(\"x\") }"),
        1 => Just("when { resource.name == \"t\" }"),
        1 => Just("unless { principal.groups.contains(\"ops\") }"),
        1 => Just("when { context has mode && context.mode == \"m\" }"),
    ]
}

fn rule() -> impl Strategy<Value = String> {
    let effect = prop_oneof![4 => Just("permit"), 2 => Just("forbid"), 1 => Just("@hold(\"h\") forbid")];
    (effect, principal_scope(), resource_scope(), condition()).prop_map(|(effect, principal, resource, condition)| {
        format!("{effect} ({principal}, action, {resource}) {condition};")
    })
}

fn caller() -> impl Strategy<Value = Caller> {
    let groups = prop_oneof![Just(Vec::new()), Just(vec!["ops".to_owned()])];
    (prop_oneof![Just(true), Just(false)], groups, prop_oneof![Just("pm"), Just("pa")]).prop_map(
        |(agent, groups, role)| {
            let mut caller = if agent { Caller::agent(role, Some("ada".to_owned())) } else { Caller::person("ada") };
            caller.groups = groups;
            caller.token.id = agent.then(|| "tok".to_owned());
            caller
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn gate_10_sliced_rules_answer_like_the_whole_set(
        texts in prop::collection::vec(rule(), 0..12),
        callers in prop::collection::vec(caller(), 3),
        arguments in prop_oneof![
            Just("{}"), Just(r#"{"k":"v"}"#), Just(r#"{"k":"v","n":3}"#), Just(r#"{"n":1}"#), Just(r#"{"n":3e0}"#),
            Just(r#"{"n":2.5}"#), Just(r#"{"n":null}"#), Just(r#"{"k":[]}"#), Just(r#"{"k":"v","m":1e99}"#),
        ],
        seen in prop_oneof![Just(Vec::new()), Just(vec!["x".to_owned()])],
        mode in prop_oneof![Just(None), Just(Some("m"))],
        labels in prop_oneof![Just(Vec::new()), Just(vec!["out".to_owned()])],
    ) {
        let rules = rules(&texts.join("\n"));
        let document = Document::parse(arguments, Limits::DEFAULT).ok().map(Arc::new);
        for caller in &callers {
            for (server, tool) in SERVERS.iter().flat_map(|server| TOOLS.map(|tool| (*server, tool))) {
                let facts = Facts {
                    caller, roles: [caller.role.as_deref(), None], mode, server, tool, labels: &labels,
                    arguments: document.as_ref().map(|document| document.root()),
                    operation: "tools/call", commands: BTreeSet::new(), address: Address::None,
                    time: jiff::Timestamp::UNIX_EPOCH, seen: &seen, door: Door::Explain,
                };
                let (sliced, whole) = (rules.judge(&facts), rules.judge_unsliced(&facts));
                assert_eq!(sliced.outcome, whole.outcome, "{}", texts.join("\n"));
                // Hidden means refused, whatever the arguments.
                if !rules.may_pass(&facts) {
                    assert!(sliced.denies(), "hidden but {sliced:?}");
                }
            }
        }
    }
}
