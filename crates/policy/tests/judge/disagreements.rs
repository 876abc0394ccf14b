//! Where judge and requirements once parted: one small example of each, so that it stays repaired.

use jiff::Timestamp;
use toolwarden_core::{Call, Caller, Decision, Door, Reason};
use toolwarden_policy::input::{
    ArgumentCondition, AutoRunMode, Declared, LimitsInput, ModeInput, RoleInput, Scope, ServerInput, ToolDefinition,
    ToolInput, UserInput,
};
use toolwarden_policy::shell::FileFacts;
use toolwarden_policy::{PolicySet, Query, Transport, is_visible};

use crate::ask::engine;
use crate::generate_calls::document;
use crate::generate_rules::{permit_all, print};
use crate::naive::{World, naive};
use crate::rule::{Effect, Rule, Who};
use crate::tape::{here, sourced};

fn server(name: &str, tool: &str) -> ServerInput {
    let config = ToolInput { scope: Some(Scope::Both), ..ToolInput::default() };
    ServerInput {
        tools: [(tool.to_owned(), config)].into(),
        catalog: Some(vec![ToolDefinition {
            name: tool.to_owned(),
            description: None,
            input_schema: None,
            output_schema: None,
        }]),
        ..ServerInput::new(name, here(), Declared::ByOperator)
    }
}

/// One permit for all, `db:get` (or another tool), and nobody asks.
fn world(server: ServerInput, rules: Vec<Rule>) -> World {
    let mut world = World { rules, ..World::default() };
    world.input.base.rules = print(&world.rules);
    world.input.base.auto_run.mode = AutoRunMode::RunEverything;
    world.input.local.user = "ann".to_owned();
    world.input.servers.push(server);
    world
}

fn role(name: &str, allow: &str) -> RoleInput {
    let allow = Some(vec![sourced(allow)]);
    RoleInput { name: sourced(name), scope: None, allow, disallow: None, conditions: Vec::new(), explain: None }
}

fn agent(role: &str) -> Caller {
    let mut caller = Caller::agent(role, Some("ann".to_owned()));
    (caller.context.task, caller.context.job) = (Some("t1".to_owned()), Some("t1".to_owned()));
    caller
}

fn ask(caller: Caller, call: Call, door: Door) -> Query {
    Transport::new(door, None).query(caller.into(), call, Timestamp::UNIX_EPOCH).with_files(FileFacts::as_written())
}

/// The engine gives what the naive evaluator and the page say.
fn expect(world: &World, query: &Query, decision: Decision, reason: Reason) {
    let policy = PolicySet::compile(&world.input);
    assert!(policy.is_ok(), "{:?}", policy.as_ref().err());
    let expected = naive(world, query);
    assert_eq!((expected.decision, expected.reason), (decision, reason));
    assert_eq!(policy.ok().map(|policy| engine(&policy, query)), Some(expected));
}

#[test]
fn core_6_own_tools_by_another_spelling_are_commands() {
    let world = world(server("db", "get"), vec![permit_all()]);
    let call = Call::mcp("Builtin", "Shell.Run", document("{\"command\":\"rm -rf /\"}"));
    let query = ask(Caller::local_person("ann"), call, Door::Decide);
    expect(&world, &query, Decision::Hold, Reason::DeleteProtection);
    let call = Call::mcp("builtin", "Shell.run", document("{\"command\":\"toolwarden allow '*:*'\"}"));
    let query = ask(Caller::local_person("ann"), call, Door::Decide);
    expect(&world, &query, Decision::Hold, Reason::SelfProtection);
}

#[test]
fn allow_8_a_look_alike_of_a_browser_stays_under_the_mcp_protection() {
    let mut world = world(server("Cursor-IDE-Browser", "get"), vec![permit_all()]);
    (world.input.base.auto_run.browser_protection, world.input.base.auto_run.mcp_protection) = (false, true);
    let query = ask(Caller::local_person("ann"), Call::mcp("Cursor-IDE-Browser", "get", None), Door::Mcp);
    expect(&world, &query, Decision::Hold, Reason::Protected);
}

#[test]
fn gate_5_rules_about_a_role_reach_its_alias() {
    let forbid = Rule { effect: Effect::Forbid, who: Who::Role("worker"), ..permit_all() };
    let world = world(server("db", "web.search"), vec![permit_all(), forbid]);
    let query = ask(agent("sandbox"), Call::mcp("db", "web.search", None), Door::Mcp);
    expect(&world, &query, Decision::Deny, Reason::RuleForbid);
}

#[test]
fn gate_5_restrictions_of_a_role_reach_every_server() {
    let undeclared = |tool| ServerInput { declared: Declared::ByWorkspace, ..server("db", tool) };
    let mut conditional = world(undeclared("db.write"), vec![permit_all()]);
    conditional.input.base.roles.push(role("pa", "db:db.write"));
    let query = ask(agent("pa"), Call::mcp("db", "db.write", None), Door::Mcp);
    expect(&conditional, &query, Decision::Deny, Reason::RoleCondition);

    let mut configured = conditional.clone();
    let arguments = [("table".to_owned(), vec!["findings".to_owned()])].into();
    let condition = ArgumentCondition { tool: sourced("db.write"), arguments };
    configured.input.base.roles.iter_mut().for_each(|role| role.conditions.push(condition.clone()));
    let call = Call::mcp("db", "db.write", document("{\"table\":\"users\"}"));
    expect(&configured, &ask(agent("pa"), call, Door::Mcp), Decision::Deny, Reason::RoleCondition);

    let mut own_task = world(undeclared("artifact.get"), vec![permit_all()]);
    own_task.input.base.roles.push(role("worker", "db:artifact.*"));
    let call = Call::mcp("db", "artifact.get", document("{\"task_id\":\"another\"}"));
    expect(&own_task, &ask(agent("worker"), call, Door::Mcp), Decision::Deny, Reason::TaskIdMismatch);

    let mut task_tool = world(undeclared("api.call"), vec![permit_all()]);
    task_tool.input.base.roles.push(role("worker", "db:api.call"));
    let query = ask(agent("worker"), Call::mcp("db", "api.call", None), Door::Mcp);
    expect(&task_tool, &query, Decision::Deny, Reason::TaskToolMissing);
}

#[test]
fn core_1_default_availability_stands_before_servers() {
    let off = ServerInput { default_enabled: false, ..server("db", "get") };
    let mut world = world(off, vec![permit_all()]);
    let elsewhere = Some(vec![sourced("web")]);
    world
        .input
        .base
        .modes
        .push(ModeInput { allowed_servers: elsewhere, ..ModeInput::unrestricted("m1", "m1", here()) });
    let mut caller = Caller::local_person("ann");
    caller.mode = Some("m1".to_owned());
    let query = ask(caller, Call::mcp("db", "get", None), Door::Mcp);
    expect(&world, &query, Decision::Deny, Reason::ModeServerOptIn);
}

#[test]
fn allow_12_what_the_local_person_took_away_is_gone() {
    let mut before = world(server("db", "get"), vec![permit_all()]);
    before.input.base.auto_run.mode = AutoRunMode::UseAllowlist;
    let query = ask(Caller::local_person("ann"), Call::mcp("db", "get", None), Door::Mcp);
    let mut listed = before.clone();
    let user = UserInput { mcp_allowlist: vec![sourced("db:get")], ..UserInput::default() };
    listed.input.users.insert("ann".to_owned(), user);
    let after = PolicySet::compile(&listed.input).map(|policy| policy.with_user(8, "ann", &UserInput::default()));
    let without_list = after.ok().map(|policy| engine(&policy, &query).decision);

    let mut always = before.clone();
    always.input.servers.iter_mut().for_each(|server| server.always_allow.push(sourced("get")));
    let after = PolicySet::compile(&always.input).and_then(|policy| policy.with_servers(8, &before.input.servers));
    let without_always = after.ok().map(|policy| engine(&policy, &query).decision);
    assert_eq!((without_list, without_always), (Some(Decision::Hold), Some(Decision::Hold)));
}

#[test]
fn mode_5_visibility_does_not_look_at_arguments() {
    let small = LimitsInput { request_bytes: Some(10), ..LimitsInput::default() };
    let world = world(ServerInput { limits: small, ..server("db", "get") }, vec![permit_all()]);
    let call = Call::mcp("db", "get", document("{\"k\":\"much too long\"}"));
    let query = ask(Caller::local_person("ann"), call, Door::Mcp);
    let policy = PolicySet::compile(&world.input);
    assert_eq!(policy.ok().map(|policy| is_visible(&policy, &query)), Some(true));
}

#[test]
fn gate_5_rules_about_a_role_reach_its_alias_for_persons() {
    let forbid = Rule { effect: Effect::Forbid, who: Who::Role("worker"), ..permit_all() };
    let world = world(server("db", "get"), vec![permit_all(), forbid]);
    let mut caller = Caller::person("ann");
    caller.role = Some("sandbox".to_owned());
    let query = ask(caller, Call::mcp("db", "get", None), Door::Mcp);
    expect(&world, &query, Decision::Deny, Reason::RuleForbid);
}

#[test]
fn allow_5_restrictions_of_a_role_ignore_case() {
    let mut world = world(server("db", "DB.Write"), vec![permit_all()]);
    world.input.base.roles.push(role("pa", "db:*"));
    let query = ask(agent("pa"), Call::mcp("db", "DB.Write", None), Door::Mcp);
    expect(&world, &query, Decision::Deny, Reason::RoleCondition);
}
