//! Names without a server, `mcp_server_tool` and `mcp__server__tool`, against a search by hand (ALLOW-11).

use proptest::prelude::{any, prop_assert_eq, proptest};
use toolwarden_core::ToolIdentity;
use toolwarden_policy::input::{Declared, ServerInput, ToolDefinition};
use toolwarden_policy::{FlatName, PolicyInput, PolicySet, resolve_flat_name};

use crate::naive_names::same;
use crate::tape::{Tape, here};

const SERVERS: [&str; 5] = ["a", "a_b", "a__b", "B", "_"];
const TOOLS: [&str; 8] = ["c", "b_c", "b__c", "C", "_c", "d.e", "B_C", "D.e"];
const PIECES: [&str; 11] = ["_", "__", "a", "b", "B", "c", "C", "A", "d.e", "d.E", "D.E"];

fn server(name: &str, tape: &mut Tape<'_>) -> ServerInput {
    let listed = tape.texts(40, &TOOLS).into_iter();
    ServerInput {
        tools: [].into(),
        catalog: Some(
            listed
                .map(|name| ToolDefinition { name, description: None, input_schema: None, output_schema: None })
                .collect(),
        ),
        owner: tape.chance(20).then(|| tape.pick("bob", &["ann"]).to_owned()),
        ..ServerInput::new(name, here(), Declared::ByOperator)
    }
}

/// Every known tool whose flat name is this one in any ASCII case, except where its server has a tool
/// that fits letter by letter.
fn fitting(input: &PolicyInput, name: &str) -> Vec<ToolIdentity> {
    let mut known: Vec<ToolIdentity> = Vec::new();
    for server in input.servers.iter().filter(|server| server.owner.as_deref().is_none_or(|owner| owner == "bob")) {
        let listed = server.catalog.iter().flatten();
        known.extend(listed.map(|tool| ToolIdentity::new(server.name.as_str(), tool.name.as_str())));
    }
    known.extend(["shell.run", "web.fetch"].map(|tool| ToolIdentity::new("builtin", tool)));
    let mut found: Vec<ToolIdentity> = Vec::new();
    for line in ["_", "__"] {
        let flat = |tool: &ToolIdentity| format!("mcp{line}{}{line}{}", tool.server, tool.tool);
        let fits = |tool: &&ToolIdentity| name.starts_with("mcp_") && same(&flat(tool), name);
        let is_exact = |tool: &ToolIdentity| name.ends_with(&format!("{line}{}", tool.tool));
        for tool in known.iter().filter(fits) {
            let mut rivals = known.iter().filter(fits).filter(|rival| rival.server == tool.server);
            if (is_exact(tool) || !rivals.any(is_exact)) && !found.contains(tool) {
                found.push(tool.clone());
            }
        }
    }
    found
}

fn naive(input: &PolicyInput, name: &str) -> Option<ToolIdentity> {
    match fitting(input, name).as_slice() {
        [only] => Some(only.clone()),
        [] => {
            let parts = match name.strip_prefix("mcp__") {
                Some(rest) => rest.split_once("__"),
                None => name.strip_prefix("mcp_").and_then(|rest| rest.split_once('_')),
            };
            Some(parts.map_or(ToolIdentity::new("given", name), |(server, tool)| ToolIdentity::new(server, tool)))
        }
        _ => None,
    }
}

proptest! {
    #![proptest_config(crate::ask::cases(2_000))]

    #[test]
    fn allow_11_one_known_tool_or_a_split_or_nothing(tape in any::<[u8; 32]>(), names in any::<[[u8; 8]; 20]>()) {
        let mut tape = Tape::new(&tape);
        let mut input = PolicyInput::default();
        for name in SERVERS {
            if tape.chance(50) {
                input.servers.push(server(name, &mut tape));
            }
        }
        let policy = PolicySet::compile(&input);
        for (bytes, policy) in names.iter().zip(policy.iter().cycle()) {
            let mut tape = Tape::new(bytes);
            let mut name = tape.pick("mcp_", &["mcp__", "mcp__", "mcp"]).to_owned();
            (0..5).for_each(|_| name.push_str(tape.pick("", &PIECES)));
            let found = match resolve_flat_name(policy, &name, "given", Some("bob")) {
                FlatName::One(tool) => Some(tool),
                FlatName::Several(_) => None,
            };
            prop_assert_eq!(found, naive(&input, &name), "{}", name);
        }
    }
}
