//! GATE-10: which calls the head of a rule means, as a table written by hand.

use std::collections::BTreeSet;

use toolwarden_core::{Caller, Door, Layer, Origin, Reason};

use super::super::{Facts, Rules};
use crate::hosts::Address;
use crate::input::RuleFile;
use crate::verdict::Outcome;

/// Callers and tools, and which of them each principal and resource means.
const CALLERS: [&str; 4] = ["ada", "bob", "t1", "t2"];
const TOOLS: [&str; 4] = ["gh:issue", "gh:list", "mail:issue", "mail:send"];

const PRINCIPALS: [(&str, &[&str]); 10] = [
    ("principal", &["ada", "bob", "t1", "t2"]),
    ("principal is Person", &["ada", "bob"]),
    ("principal is Agent", &["t1", "t2"]),
    ("principal == Person::\"ada\"", &["ada"]),
    ("principal == Agent::\"t1\"", &["t1"]),
    ("principal == Agent::\"ada\"", &[]),
    ("principal in User::\"ada\"", &["ada", "t1"]),
    ("principal in Group::\"ops\"", &["bob", "t2"]),
    ("principal in Role::\"pm\"", &["t1"]),
    ("principal is Agent in User::\"ada\"", &["t1"]),
];
const RESOURCES: [(&str, &[&str]); 10] = [
    ("resource", &["gh:issue", "gh:list", "mail:issue", "mail:send"]),
    ("resource == Mcp::Tool::\"gh:issue\"", &["gh:issue"]),
    ("resource == Mcp::Tool::\"gh:send\"", &[]),
    ("resource in Mcp::Tool::\"gh:issue\"", &["gh:issue"]),
    ("resource in Mcp::Server::\"mail\"", &["mail:issue", "mail:send"]),
    ("resource in Mcp::Label::\"sends_out\"", &["mail:issue", "mail:send"]),
    ("resource is Mcp::Tool in Mcp::Server::\"gh\"", &["gh:issue", "gh:list"]),
    // What belongs to a call, and is not its tool; one label reads like a tool.
    ("resource == Mcp::Server::\"mail\"", &[]),
    ("resource == Mcp::Label::\"mail:send\"", &[]),
    ("resource in User::\"ada\"", &[]),
];

fn caller(name: &str) -> Caller {
    let mut caller = match name {
        "t1" => Caller::agent("pm", Some("ada".to_owned())),
        "t2" => Caller::agent("pa", Some("cleo".to_owned())),
        person => Caller::person(person),
    };
    if caller.is_agent() {
        caller.token.id = Some(name.to_owned());
    }
    if matches!(name, "bob" | "t2") {
        caller.groups = vec!["ops".to_owned()];
    }
    caller
}

fn outcome(rules: &Rules, name: &str, tool: &str) -> Outcome {
    let caller = caller(name);
    let (server, tool) = tool.split_once(':').unwrap_or_default();
    let labels: &[String] = if server == "mail" { &["sends_out", "mail:send"].map(str::to_owned) } else { &[] };
    let facts = Facts {
        caller: &caller,
        roles: [caller.role.as_deref(), None],
        mode: None,
        server,
        tool,
        labels,
        arguments: None,
        operation: "tools/call",
        commands: BTreeSet::new(),
        address: Address::None,
        time: jiff::Timestamp::UNIX_EPOCH,
        seen: &[],
        door: Door::Explain,
    };
    let (sliced, whole) = (rules.judge(&facts), rules.judge_unsliced(&facts));
    assert_eq!(sliced.outcome, whole.outcome, "{name} {server}:{tool}");
    sliced.outcome
}

#[test]
fn gate_10_each_head_means_the_calls_of_its_row() {
    for (principal, callers) in PRINCIPALS {
        for (resource, tools) in RESOURCES {
            // With and without a condition: rules without one are answered without Cedar.
            for condition in ["", " when { context.operation == \"tools/call\" }"] {
                let text = format!(
                    "permit (principal, action, resource);\nforbid ({principal}, action, {resource}){condition};"
                );
                let file = RuleFile { origin: Origin::new(Layer::Config, "rules.cedar", 1, 1), text: text.clone() };
                let Ok(rules) = Rules::compile(&[file]) else { unreachable!("{text}") };
                for name in CALLERS {
                    for tool in TOOLS {
                        let is_meant = callers.contains(&name) && tools.contains(&tool);
                        let expected = if is_meant { Outcome::Because(Reason::RuleForbid) } else { Outcome::Pass };
                        assert_eq!(outcome(&rules, name, tool), expected, "{name} {tool}: {text}");
                    }
                }
            }
        }
    }
}

/// Where several rules mean a call, each counts.
#[test]
fn gate_10_rules_of_all_heads_that_mean_a_call_count() {
    let text = "permit (principal in User::\"ada\", action, resource in Mcp::Server::\"gh\");\n\
                permit (principal is Person, action, resource == Mcp::Tool::\"mail:send\");\n\
                @hold(\"h\") forbid (principal == Agent::\"t1\", action, resource == Mcp::Tool::\"gh:list\");\n\
                forbid (principal in Group::\"ops\", action, resource in Mcp::Label::\"sends_out\");";
    let file = RuleFile { origin: Origin::new(Layer::Config, "rules.cedar", 1, 1), text: text.to_owned() };
    let Ok(rules) = Rules::compile(&[file]) else { unreachable!("{text}") };
    let because = Outcome::Because;
    for (name, tool, expected) in [
        ("ada", "gh:issue", Outcome::Pass),
        ("t1", "gh:issue", Outcome::Pass),
        ("t1", "gh:list", because(Reason::RuleHold)),
        ("t2", "gh:list", because(Reason::RuleNoPermit)),
        ("bob", "gh:issue", because(Reason::RuleNoPermit)),
        ("ada", "mail:send", Outcome::Pass),
        ("ada", "mail:issue", because(Reason::RuleNoPermit)),
        ("bob", "mail:send", because(Reason::RuleForbid)),
        ("t1", "mail:send", because(Reason::RuleNoPermit)),
    ] {
        assert_eq!(outcome(&rules, name, tool), expected, "{name} {tool}");
    }
}
