//! Random policies and questions over small alphabets, so that most stages decide often.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use toolwarden_core::Sourced;
use toolwarden_policy::input::{
    AdminInput, ApproversInput, AutoRunInput, AutoRunMode, BaseInput, LimitsInput, LocalInput, OwnProtections,
    PermissionsInput, PolicyInput, SandboxingControls, UserInput,
};
use toolwarden_policy::shell::FileFacts;
use toolwarden_policy::{Query, Transport};

use crate::generate_callers::{caller, caller_time};
use crate::generate_calls::{SHELL_ENTRIES, call, surrounded};
use crate::generate_modes::modes;
use crate::generate_roles::roles;
use crate::generate_rules::{print, rules};
use crate::generate_servers::servers;
use crate::naive::World;
use crate::tape::{Tape, here, sourced};

pub const ENTRIES: [&str; 28] = [
    "db:get",
    "db:*",
    "*:get",
    "*:*",
    "DB:GET",
    "db:db.read",
    "web:*",
    "web:api.call",
    "cursor-ide-browser:*",
    "ghost:get",
    "*:resources/read",
    "db:resources/read",
    "custom-user-tools:*",
    "builtin:*",
    "broken",
    "a:b:c",
    "db:g*",
    "*:bad:name",
    // Over arguments; the last ones are none.
    r#"db:get where {"/k":"free","/n":"free","/project_id":"free","/run_id":"free","/job_id":"free","/spot":{"path":"src"},"/task_id":"free"}"#,
    r#"db:get where {"/job_id":"free","/k":"free","/n":"free","/project_id":"free","/run_id":"free","/spot":{"path":"src"},"/table":"free","/task_id":"free"}"#,
    r#"db:get where {"/deep":"free","/job_id":"free","/k":{"equals":"v"},"/n":{"equals":7},"/project_id":"free","/run_id":"free","/table":"free","/task_id":"free"}"#,
    r#"web:api.call where {"/job_id":"free","/k":"free","/n":"free","/project_id":"free","/run_id":"free","/spot":{"host":"a.test"},"/table":"free","/task_id":"free"}"#,
    r#"db:db.read where {"/job_id":"free","/k":"free","/n":"free","/project_id":"free","/run_id":"free","/spot":{"branch":"src"},"/table":"free","/task_id":"free"}"#,
    r#"db:db.read where {"/deeper":"free","/job_id":"free","/k":"free","/n":"free","/project_id":"free","/run_id":"free","/spot/in":{"equals":5},"/table":"free","/task_id":"free"}"#,
    r#"db:get where {"/n":{"equals":7}}"#,
    r#"db:* where {"/n":{"equals":7}}"#,
    r#"db:get where {"/n":"free"}"#,
    r#"db:get where {"/n": {"equals":7}}"#,
];

const MODES: [AutoRunMode; 3] = [AutoRunMode::UseAllowlist, AutoRunMode::RunEverything, AutoRunMode::AskEveryTime];
const POLICY_BYTES: usize = 2365;
const QUERY_BYTES: usize = 80;

/// A policy with the rules it was printed from.
pub fn world() -> impl Strategy<Value = World> {
    vec(any::<u8>(), POLICY_BYTES).prop_map(|bytes| world_from(&mut Tape::new(&bytes)))
}

/// Between one and `most` questions.
pub fn queries(most: usize) -> impl Strategy<Value = Vec<Query>> {
    vec(query(), 1..=most)
}

pub fn query() -> impl Strategy<Value = Query> {
    vec(any::<u8>(), QUERY_BYTES).prop_map(|bytes| query_from(&mut Tape::new(&bytes)))
}

pub fn query_from(tape: &mut Tape<'_>) -> Query {
    let mut who = tape.section(32);
    let time = caller_time(&mut who);
    let caller = caller(&mut who, time);
    let mut what = tape.section(32);
    let (call, door) = call(&mut what);
    let ask = |transport: Transport| transport.query(caller.into(), call, time).with_files(FileFacts::as_written());
    surrounded(tape, door, ask)
}

pub fn world_from(tape: &mut Tape<'_>) -> World {
    let servers = servers(&mut tape.section(1300));
    let rules = rules(&mut tape.section(60), &servers);
    let base = BaseInput {
        git_configs: Vec::new(),
        auto_run: auto_run(&mut tape.section(32)),
        admin: admin(&mut tape.section(74)),
        modes: modes(&mut tape.section(4 * 64)),
        roles: roles(&mut tape.section(3 * 48)),
        rules: print(&rules),
        settings: settings(&mut tape.section(16)),
        protected_paths: vec!["/home/ann/.config/toolwarden".into()],
        secret_paths: Vec::new(),
        home: Some("/home/ann".into()),
        workspaces: vec!["/w".into(), "/home/ann/.config".into()],
        limits: LimitsInput::default(),
        approvers: approvers(&mut tape.section(16)),
    };
    let mut users = BTreeMap::new();
    for name in ["ann", "bob", "cid"] {
        let mut section = tape.section(60);
        if section.chance(85) {
            users.insert(name.to_owned(), user(&mut section));
        }
    }
    let local = local(&mut tape.section(165));
    World { input: PolicyInput { version: 7, base, servers, users, local }, rules }
}

fn approvers(tape: &mut Tape<'_>) -> ApproversInput {
    ApproversInput {
        second_person: tape.list(4, &["db:get", "*:db.read", "WEB:*", "builtin:shell.run"]),
        ..ApproversInput::default()
    }
}

fn auto_run(tape: &mut Tape<'_>) -> AutoRunInput {
    AutoRunInput {
        mode: tape.pick(AutoRunMode::UseAllowlist, &MODES),
        mode_is_chosen: tape.chance(50),
        auto_review: tape.chance(25),
        ask: tape.list(5, &["db:get", "*:db.read", "DB:API.CALL", "web:*", "builtin:shell.run", "db:resources/read"]),
        mcp_protection: tape.chance(12),
        browser_protection: !tape.chance(50),
        delete_protection: !tape.chance(40),
        default_mode: tape.chance(12).then(|| sourced(tape.pick("m1", &["code", "ghost-mode", "m2"]))),
        require_mode: tape.chance(6),
        mcp_allowlists: !tape.chance(12),
        sandbox_resolves: tape.chance(40),
        ..AutoRunInput::default()
    }
}

fn admin(tape: &mut Tape<'_>) -> Option<AdminInput> {
    tape.chance(35).then(|| AdminInput {
        enabled: !tape.chance(20),
        allowed: tape.list(15, &SHELL_ENTRIES),
        // Those that are none are refused: they would block nothing.
        blocked: tape
            .list(10, &SHELL_ENTRIES)
            .into_iter()
            .filter(|entry| !["", "*"].contains(&&*entry.value))
            .collect(),
        disable_mcp_auto_run: tape.chance(15),
        delete_file_protection: tape.chance(40),
        enable_run_everything: tape.chance(40),
        mcp_tool_allowlist: if tape.chance(80) { tape.list(12, &ENTRIES) } else { Vec::new() },
        browser_protection: tape.chance(30),
        sandboxing: SandboxingControls {
            required: false,
            denied_domains: tape.list(50, &["evil.test", "Example.COM"]),
        },
    })
}

/// Matches many of the calls that are made.
const OVER_TASK: &str = r#"db:get where {"/args":"free","/arguments":"free","/big":"free","/command":"free","/deep":"free","/deeper":"free","/job_id":"free","/k":"free","/n":"free","/path":"free","/project_id":"free","/run_id":"free","/spot":"free","/table":"free","/task_id":{"equals":"t1"}}"#;

pub(crate) fn own_protections(tape: &mut Tape<'_>) -> OwnProtections {
    let mut one = || tape.chance(20).then(|| tape.chance(50));
    OwnProtections { mcp: one(), browser: one(), delete: one() }
}

fn user(tape: &mut Tape<'_>) -> UserInput {
    let over_arguments = if tape.chance(40) { vec![sourced(OVER_TASK)] } else { Vec::new() };
    UserInput {
        auto_run_mode: tape.chance(50).then(|| tape.pick(AutoRunMode::UseAllowlist, &MODES)),
        protections: own_protections(tape),
        mcp_allowlist: [tape.list(10, &ENTRIES), over_arguments].concat(),
        terminal_allowlist: tape.list(25, &SHELL_ENTRIES),
        blocks: tape
            .list(4, &["db:get", "DB:Api.Call", "*:db.read", "web:*", "builtin:web.fetch", "db:resources/read"]),
    }
}

fn local(tape: &mut Tape<'_>) -> LocalInput {
    let files = permissions(tape).into_iter().collect();
    let mut workspaces = BTreeMap::new();
    for root in ["/w", "/v"] {
        workspaces.extend(permissions(tape).map(|file| (root.into(), file)));
    }
    LocalInput { user: "ann".to_owned(), files, workspaces, workspace: None }
}

fn permissions(tape: &mut Tape<'_>) -> Option<PermissionsInput> {
    tape.chance(35).then(|| PermissionsInput {
        mcp_allowlist: tape.maybe_list(60, 12, &ENTRIES),
        terminal_allowlist: tape.maybe_list(50, 25, &SHELL_ENTRIES),
        allow_instructions: None,
        block_instructions: None,
        broken: tape.chance(15),
    })
}

fn settings(tape: &mut Tape<'_>) -> BTreeMap<String, Sourced<serde_json::Value>> {
    let mut settings = BTreeMap::new();
    let mut set = |key: &str, value: serde_json::Value| {
        settings.insert(key.to_owned(), Sourced::new(value, here()));
    };
    if tape.chance(30) {
        let names = tape
            .some(15, &["db:get", "api.call", "GET", "Web:Db.Read", "builtin:shell.run", "resources/read", "DB__get"]);
        set("mcp.tools.disabled", serde_json::json!(names));
    }
    for key in
        ["mcp.tool.db.read.enabled", "mcp.tool.WEB.FETCH.enabled", "mcp.tool.db:get.enabled", "mcp.tool.Db.get.enabled"]
    {
        if tape.chance(10) {
            let value = tape.chance(60);
            set(key, serde_json::json!(!value));
        }
    }
    for key in ["feature.x", "agents.project_manager.sandbox.allow_add_to_allowed_images"] {
        if tape.chance(60) {
            set(key, serde_json::json!(tape.chance(70)));
        }
    }
    settings
}
