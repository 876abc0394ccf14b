//! PERM-1, PERM-4, SELF-1 and WORK-4: whose permissions.json counts, and what the call's workspace changes.

use std::sync::Arc;

use toolwarden_core::{Bearer, Call, Caller, Claims, Door, Layer};
use toolwarden_policy::input::{AutoRunMode, PermissionsInput, RuleFile, UserInput};
use toolwarden_policy::{PolicyInput, PolicySet};

use crate::kit::{
    USER, agent, answer, arguments, asked, asked_in, compile, listing, origin, person, plain, server, sourced,
};

const DOORS: [Door; 3] = [Door::Mcp, Door::Decide, Door::Explain];

/// One server of the operator; `git.log` has a preset scope, so that agents of role `pm` reach it.
fn input() -> PolicyInput {
    let mut input = plain();
    input.servers.push(listing(server("linear"), &["git.log", "git_status"]));
    input
}

fn allowing(entries: &[&str]) -> PermissionsInput {
    PermissionsInput { mcp_allowlist: Some(sourced(entries)), ..PermissionsInput::default() }
}

fn log(policy: &PolicySet, caller: &Arc<Caller>, workspace: Option<&str>) -> Vec<String> {
    let call = || Call::mcp("linear", "git.log", arguments("{}"));
    let ask = |door| match workspace {
        Some(root) => answer(policy, &asked_in(root, caller, call(), door)),
        None => answer(policy, &asked(caller, call(), door)),
    };
    let mut answers: Vec<String> = DOORS.map(ask).into();
    answers.dedup();
    answers
}

/// Every kind of caller who is the operating-system user: in person, by a person's token, by an agent's.
fn own() -> [Arc<Caller>; 3] {
    let claims = Claims { user: Some(USER.to_owned()), ..Claims::of(Bearer::Person) };
    [person(), Arc::new(Caller::of_token("t1", &claims, USER)), agent("pm")]
}

fn others() -> [Arc<Caller>; 4] {
    let claims = Claims { user: Some("grace".to_owned()), ..Claims::of(Bearer::Person) };
    let of_grace = Caller { user: Some("grace".to_owned()), ..(*agent("pm")).clone() };
    let of_nobody = Caller { user: None, ..(*agent("pm")).clone() };
    [
        Arc::new(Caller::person("grace")),
        Arc::new(Caller::of_token("t2", &claims, USER)),
        Arc::new(of_grace),
        Arc::new(of_nobody),
    ]
}

#[test]
fn perm_1_files_are_those_of_every_token_of_the_local_user_and_of_nobody_else() {
    let mut input = input();
    input.local.files.push(allowing(&["linear:*"]));
    let policy = compile(&input);
    for caller in own() {
        assert_eq!(log(&policy, &caller, None), ["allow allowlist_match"], "{caller:?}");
    }
    for caller in others() {
        let expected = if caller.user.is_some() { "hold not_in_allowlist" } else { "deny context_missing" };
        assert_eq!(log(&policy, &caller, None), [expected], "{caller:?}");
    }
}

/// Both directions: what a file defines replaces what was stored for the same user, for agents too.
#[test]
fn perm_1_a_file_replaces_the_stored_list_of_the_users_agents() {
    let mut input = input();
    for name in [USER, "grace"] {
        let stored = UserInput { mcp_allowlist: sourced(&["linear:git.log"]), ..UserInput::default() };
        input.users.insert(name.to_owned(), stored);
    }
    for caller in own() {
        assert_eq!(log(&compile(&input), &caller, None), ["allow allowlist_match"]);
    }
    input.local.files.push(allowing(&[]));
    let policy = compile(&input);
    for caller in own() {
        assert_eq!(log(&policy, &caller, None), ["hold not_in_allowlist"], "{caller:?}");
    }
    for caller in others().iter().filter(|caller| caller.user.is_some()) {
        assert_eq!(log(&policy, caller, None), ["allow allowlist_match"], "{caller:?}");
    }
}

#[test]
fn perm_1_a_workspace_file_counts_for_calls_of_its_workspace_alone() {
    let mut input = input();
    input.local.workspaces.insert("/srv/one".into(), allowing(&["linear:*"]));
    input.local.workspaces.insert("/srv/shut".into(), allowing(&[]));
    let stored = UserInput { mcp_allowlist: sourced(&["linear:git.log"]), ..UserInput::default() };
    let policy = compile(&input);
    for (workspace, expected) in [
        (Some("/srv/one"), "allow allowlist_match"),
        (Some("/srv/two"), "hold not_in_allowlist"),
        (Some("/srv/one/below"), "hold not_in_allowlist"),
        (Some("/srv"), "hold not_in_allowlist"),
        (None, "hold not_in_allowlist"),
    ] {
        for caller in own() {
            assert_eq!(log(&policy, &caller, workspace), [expected], "{workspace:?} {caller:?}");
        }
        for caller in others() {
            assert_ne!(log(&policy, &caller, workspace), ["allow allowlist_match"], "{workspace:?} {caller:?}");
        }
    }
    // A list that is defined there and empty replaces the stored one there, and nowhere else.
    let policy = policy.with_user(2, USER, &stored);
    assert_eq!(log(&policy, &person(), Some("/srv/shut")), ["hold not_in_allowlist"]);
    assert_eq!(log(&policy, &person(), Some("/srv/two")), ["allow allowlist_match"]);
}

#[test]
fn perm_4_a_tokens_workspace_comes_before_the_transports() {
    let mut input = input();
    input.local.workspaces.insert("/srv/one".into(), allowing(&["linear:*"]));
    let policy = compile(&input);
    let bound = |workspace: &str| {
        let mut caller = (*agent("pm")).clone();
        caller.token.workspace = Some(workspace.into());
        Arc::new(caller)
    };
    assert_eq!(log(&policy, &bound("/srv/one"), Some("/srv/two")), ["allow allowlist_match"]);
    assert_eq!(log(&policy, &bound("/srv/two"), Some("/srv/one")), ["hold not_in_allowlist"]);
}

#[test]
fn perm_3_a_broken_workspace_file_grants_nothing_there_and_stops_nothing_elsewhere() {
    let mut input = input();
    input.local.files.push(allowing(&["other:*"]));
    input.users.insert(USER.to_owned(), UserInput { mcp_allowlist: sourced(&["linear:*"]), ..UserInput::default() });
    input.local.files.clear();
    let broken = PermissionsInput { broken: true, ..PermissionsInput::default() };
    input.local.workspaces.insert("/srv/one".into(), broken);
    let policy = compile(&input);
    assert_eq!(log(&policy, &person(), Some("/srv/one")), ["hold not_in_allowlist"]);
    assert_eq!(log(&policy, &person(), Some("/srv/two")), ["allow allowlist_match"]);
}

/// SELF-1 with the call's workspace: relative names of a trusted workspace's files are held, its root is not.
#[test]
fn self_1_relative_names_are_seen_from_the_calls_workspace_at_every_transport() {
    let mut input = input();
    input.base.auto_run.mode = AutoRunMode::RunEverything;
    input.base.protected_paths =
        vec!["/srv/one/toolwarden.toml".into(), "/srv/one/rules/x.cedar".into(), "/srv/two/rules/y.cedar".into()];
    input.base.workspaces = vec!["/srv/one".into(), "/srv/two".into()];
    let policy = compile(&input);
    let ask = |workspace: &str, path: &str| {
        let json = format!("{{\"repo_path\":\"{path}\"}}");
        let call = || Call::mcp("linear", "git_status", arguments(&json));
        let mut answers: Vec<String> =
            DOORS.map(|door| answer(&policy, &asked_in(workspace, &person(), call(), door))).into();
        answers.dedup();
        answers.join(" / ")
    };
    let (held, runs) = ("hold self_protection", "allow run_everything");
    for (workspace, path, expected) in [
        ("/srv/one", "toolwarden.toml", held),
        ("/srv/one", "./rules/x.cedar", held),
        ("/srv/one", "sub/../rules/x.cedar", held),
        ("/srv/one", "./rules", held),
        ("/srv/one", "/srv/one/rules/x.cedar", held),
        ("/srv/one", "../two/rules/y.cedar", held),
        ("/srv/two", "rules/y.cedar", held),
        ("/srv/two", "../one/toolwarden.toml", held),
        ("/srv/one", "/srv/one", runs),
        ("/srv/one", "/srv/one/", runs),
        ("/srv/one", "/srv/two", runs),
        ("/srv/one", ".", runs),
        ("/srv/two", "rules/x.cedar", runs),
        ("/srv/one", "src/main.rs", runs),
        // A directory that holds several workspaces is more than one of them.
        ("/elsewhere", "/srv", held),
    ] {
        assert_eq!(ask(workspace, path), expected, "{workspace} {path}");
    }
}

/// A rule over the door must not make `explain` say other than the transport it speaks for.
#[test]
fn work_4_rules_over_the_door_answer_explain_as_the_transport() {
    let mut input = input();
    input.base.auto_run.mode = AutoRunMode::RunEverything;
    let text = "forbid(principal, action, resource) when { context.door == \"mcp\" };";
    input.base.rules.push(RuleFile { origin: origin(Layer::Config), text: text.to_owned() });
    let policy = compile(&input);
    let ask = |call: Call, door| answer(&policy, &asked(&person(), call, door));
    let tool = || Call::mcp("linear", "git.log", None);
    assert_eq!(ask(tool(), Door::Mcp), "deny rule_forbid");
    assert_eq!(ask(tool(), Door::Explain), "deny rule_forbid");
    assert_eq!(ask(tool(), Door::Decide), "allow run_everything");
    assert_eq!(ask(Call::shell("ls", None), Door::Explain), ask(Call::shell("ls", None), Door::Decide));
}

#[test]
fn allow_9_with_the_gate_off_only_a_chosen_mode_runs_anything() {
    use AutoRunMode::{AskEveryTime, RunEverything, UseAllowlist};
    let (runs, held) = ("allow gate_off_auto_run", "hold allowlist_gate_off");
    for (config, stored, expected) in [
        (None, None, held),
        (Some(UseAllowlist), None, runs),
        (Some(RunEverything), None, runs),
        (Some(AskEveryTime), None, held),
        (None, Some(UseAllowlist), runs),
        (None, Some(RunEverything), runs),
        (None, Some(AskEveryTime), held),
        (Some(RunEverything), Some(AskEveryTime), held),
        (Some(AskEveryTime), Some(UseAllowlist), runs),
    ] {
        let mut input = input();
        input.base.auto_run.mcp_allowlists = false;
        input.base.auto_run.mode = config.unwrap_or_default();
        input.base.auto_run.mode_is_chosen = config.is_some();
        // Entries say nothing while the gate is off.
        let user = UserInput { auto_run_mode: stored, mcp_allowlist: sourced(&["*:*"]), ..UserInput::default() };
        input.users.insert(USER.to_owned(), user);
        let policy = compile(&input);
        for caller in own() {
            assert_eq!(log(&policy, &caller, None), [expected], "{config:?} {stored:?}");
        }
        let query = asked(&person(), Call::mcp("linear", "git.log", None), Door::Mcp);
        let verdict = toolwarden_policy::decide(&policy, &query);
        assert!(verdict.explanation().candidates.is_empty(), "{config:?} {stored:?}");
        input.base.auto_run.mcp_protection = true;
        assert_eq!(log(&compile(&input), &person(), None), ["hold protected"], "{config:?} {stored:?}");
    }
}
