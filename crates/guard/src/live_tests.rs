//! What one server lists does not keep a policy from being in force.

use serde_json::json;
use toolwarden_core::{Layer, Origin};
use toolwarden_policy::input::{Declared, RuleFile, ServerInput, ToolDefinition};
use toolwarden_policy::{PolicyInput, PolicySet};

use super::{Live, Seen};

const RULE: &str = "permit(principal, action, resource);\n\
    forbid(principal, action, resource == Mcp::Tool::\"up:pay\") when { context.arguments.amount > 1000 };";

fn at() -> Origin {
    Origin::new(Layer::Config, "test", 1, 1)
}

fn servers() -> Vec<ServerInput> {
    ["up", "other"].map(|name| ServerInput::new(name, at(), Declared::ByOperator)).to_vec()
}

fn policy(version: u64, rules: &str) -> PolicySet {
    let mut input = PolicyInput { version, servers: servers(), ..PolicyInput::default() };
    input.base.rules.push(RuleFile { origin: at(), text: rules.to_owned() });
    match PolicySet::compile(&input) {
        Ok(policy) => policy,
        Err(refused) => unreachable!("{refused}"),
    }
}

/// `up:pay` as the rule needs it, or without the argument that it looks at.
fn seen(has_amount: bool) -> impl Fn(&str) -> Seen {
    move |server: &str| {
        let amount =
            json!({ "type": "object", "properties": { "amount": { "type": "integer" } }, "required": ["amount"] });
        let without = json!({ "type": "object", "properties": { "other": { "type": "string" } } });
        let (name, schema) = match (server, has_amount) {
            ("up", true) => ("pay", amount),
            ("up", false) => ("pay", without),
            _ => ("x", json!({ "type": "object" })),
        };
        let tool = ToolDefinition {
            name: name.to_owned(),
            description: None,
            input_schema: Some(schema),
            output_schema: None,
        };
        Seen { tools: vec![tool], is_same: true }
    }
}

fn knows(live: &Live, server: &str) -> bool {
    live.policy().servers().get(server).is_some_and(|server| server.listed)
}

#[test]
fn allow_12_a_policy_is_in_force_whatever_one_server_lists() {
    let live = Live::new(policy(1, RULE), servers());
    assert!(live.replace(&policy(2, RULE), servers(), seen(true), || {}).is_ok());
    assert!(knows(&live, "up") && knows(&live, "other"));
    let live = Live::new(policy(1, RULE), servers());
    assert!(live.preview(&policy(2, RULE), servers(), seen(false)).is_ok());
    assert!(live.replace(&policy(2, RULE), servers(), seen(false), || {}).is_ok());
    assert_eq!(live.policy().version(), 2);
    assert!(!knows(&live, "up"), "its tools are refused until the rule is repaired");
    assert!(knows(&live, "other"));
}

#[test]
fn gate_10_a_new_rule_that_fits_no_known_tool_is_refused() {
    let live = Live::new(policy(1, "permit(principal, action, resource);"), servers());
    assert!(live.replace(&policy(2, RULE), servers(), seen(false), || {}).is_err());
    assert_eq!(live.policy().version(), 1);
    assert!(live.replace(&policy(2, RULE), servers(), seen(true), || {}).is_ok());
}

#[test]
fn work_1_what_is_known_need_not_be_learned_again() {
    let live = Live::new(policy(1, "permit(principal, action, resource);"), servers());
    let tools = seen(true)("up").tools;
    assert!(!live.knows("up", &[]), "it has listed nothing yet");
    live.learn("up", &tools, || true);
    let before = live.snapshot();
    assert!(live.knows("up", &tools) && !live.knows("other", &tools) && !live.knows("nobody", &[]));
    live.learn("up", &tools, || true);
    assert!(std::sync::Arc::ptr_eq(&before, &live.snapshot()), "nothing was compiled");
    let other = seen(false)("up").tools;
    assert!(!live.knows("up", &other));
    live.learn("up", &other, || true);
    assert!(live.knows("up", &other) && !live.knows("up", &tools));
}
