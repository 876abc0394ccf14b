//! WORK-4: the same question gets the same answer at every transport, apart from what CORE-6 names.

use jiff::Timestamp;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use toolwarden_core::{CallKind, Door, Operation, Reason};
use toolwarden_policy::{Query, Transport};

use crate::ask::{cases, compile, engine};
use crate::generate::{queries, world};
use crate::naive::World;
use crate::naive_names::{known_servers, listed_tools};

/// The same call of the same caller in the same workspace, by another way.
fn by(door: Door, query: &Query) -> Query {
    let transport = Transport::new(door, query.workspace().map(Into::into));
    let asked = transport.query(query.caller.clone(), query.call.clone(), query.time);
    asked.with_definition(query.definition).with_seen(query.seen.clone()).with_launcher(query.launcher)
}

/// CORE-6 makes no difference: the names are spelt as the server and its list spell them.
fn is_listed(world: &World, query: &Query) -> bool {
    let (server, tool) = (query.call.server.to_string(), query.call.tool.to_string());
    let is_tool = query.call.requested_operation() == Operation::CallTool;
    known_servers(&world.input, query).contains(&server)
        && (!is_tool || listed_tools(&world.input, query, &server).contains(&tool))
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn work_4_every_transport_answers_a_listed_call_alike(world in world(), queries in queries(40)) {
        let policy = compile(&world)?;
        for query in queries.iter().filter(|query| is_listed(&world, query)) {
            let explained = engine(&policy, &by(Door::Explain, query));
            for door in [Door::Mcp, Door::Decide] {
                prop_assert_eq!(&engine(&policy, &by(door, query)), &explained, "{:?} {:?}", door, query);
            }
        }
    }

    /// The differences themselves: an MCP transport knows no such tool; persons are answered alike elsewhere.
    #[test]
    fn core_6_names_nobody_listed_differ_only_as_named(world in world(), queries in queries(40)) {
        let policy = compile(&world)?;
        let unlisted = |query: &&Query| !is_listed(&world, query) && matches!(query.call.kind, CallKind::Mcp { .. });
        for query in queries.iter().filter(unlisted) {
            let [mcp, decide, explain] = [Door::Mcp, Door::Decide, Door::Explain].map(|door| engine(&policy, &by(door, query)));
            prop_assert!(mcp.decision == toolwarden_core::Decision::Deny, "{:?} {:?}", mcp, query);
            let is_unknown = decide.reason == Reason::UnknownTool && query.caller.is_agent();
            prop_assert!(is_unknown || decide == explain, "{:?} {:?} {:?}", decide, explain, query);
        }
    }

    /// A query is bound to its transport: nothing a caller says changes the workspace, but for its own token.
    #[test]
    fn work_4_the_workspace_is_the_tokens_or_the_transports(queries in queries(20)) {
        for query in &queries {
            let elsewhere = Transport::new(query.door, Some("/transport".into()));
            let asked = elsewhere.query(query.caller.clone(), query.call.clone(), Timestamp::UNIX_EPOCH);
            let expected = query.caller.token.workspace.clone().unwrap_or_else(|| "/transport".into());
            prop_assert_eq!(asked.workspace(), Some(expected.as_path()));
        }
    }
}
