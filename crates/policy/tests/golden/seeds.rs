//! Every example of seeds 000 and 004 with the outcome REQUIREMENTS.md gives it (001 is in `modes`,
//! 002 in `roles`).

use toolwarden_core::{Caller, Sourced};
use toolwarden_policy::PolicyInput;
use toolwarden_policy::input::{AutoRunMode, PermissionsInput, UserInput};

use crate::kit::{
    agent, compile, files_allow, judged, judged_fetch, judged_shell, listing, origin, person, plain, server, sourced,
};

/// Seed 004's permissions.json.
fn seed_004() -> PolicyInput {
    let mut input = plain();
    files_allow(&mut input, &["github:create_issue", "linear:*"], &["git", "npm:install*", "ls"]);
    input
}

#[test]
fn seed_000_entries() {
    for (entry, server, tool, expected) in [
        ("server:tool", "server", "tool", "allow allowlist_match"),
        ("server:tool", "server", "other", "hold not_in_allowlist"),
        ("server:*", "server", "other", "allow allowlist_match"),
        ("*:tool", "elsewhere", "tool", "allow allowlist_match"),
        ("*:*", "any", "thing", "allow allowlist_match"),
        ("not an entry", "server", "tool", "hold not_in_allowlist"),
        ("server:*", "server", "bad*name", "hold invalid_name"),
        ("*:*", "server", "bad:name", "hold invalid_name"),
    ] {
        let mut input = plain();
        files_allow(&mut input, &[entry], &[]);
        assert_eq!(judged(&compile(&input), &person(), server, tool, None), expected, "{entry} {server}:{tool}");
    }
}

#[test]
fn seed_000_modes() {
    let run = |mode, entries: &[&str]| {
        let mut input = plain();
        input.base.auto_run.mode = mode;
        files_allow(&mut input, entries, &[]);
        judged(&compile(&input), &person(), "server", "tool", None)
    };
    assert_eq!(run(AutoRunMode::AskEveryTime, &["*:*"]), "hold ask_every_time");
    assert_eq!(run(AutoRunMode::UseAllowlist, &["server:tool"]), "allow allowlist_match");
    assert_eq!(run(AutoRunMode::UseAllowlist, &[]), "hold not_in_allowlist");
    assert_eq!(run(AutoRunMode::RunEverything, &[]), "allow run_everything");
    for (alias, mode) in [("yolo", AutoRunMode::UseAllowlist), ("full_yolo", AutoRunMode::RunEverything)] {
        assert_eq!(AutoRunMode::parse(alias), Some(mode));
    }
}

#[test]
fn seed_000_browser_servers() {
    let run = |protection, mode, server: &str| {
        let mut input = plain();
        input.base.auto_run.browser_protection = protection;
        input.base.auto_run.mode = mode;
        judged(&compile(&input), &person(), server, "navigate", None)
    };
    for server in ["cursor-browser-extension", "cursor-ide-browser"] {
        assert_eq!(run(true, AutoRunMode::RunEverything, server), "hold protected");
        assert_eq!(run(false, AutoRunMode::AskEveryTime, server), "allow browser_exempt");
    }
    // The protection covers any spelling, the exemption only the exact one.
    assert_eq!(run(true, AutoRunMode::RunEverything, "Cursor-IDE-Browser"), "hold protected");
    assert_eq!(run(false, AutoRunMode::AskEveryTime, "Cursor-IDE-Browser"), "hold ask_every_time");
}

#[test]
fn seed_000_protection_and_gate() {
    let mut input = plain();
    files_allow(&mut input, &["*:*"], &[]);
    input.base.auto_run.mcp_protection = true;
    assert_eq!(judged(&compile(&input), &person(), "s", "t", None), "hold protected");
    input.base.auto_run.mcp_allowlists = false;
    assert_eq!(judged(&compile(&input), &person(), "s", "t", None), "hold protected");
    input.base.auto_run.mcp_protection = false;
    // ALLOW-6: a default is nobody's choice.
    assert_eq!(judged(&compile(&input), &person(), "s", "t", None), "hold allowlist_gate_off");
    input.base.auto_run.mode_is_chosen = true;
    assert_eq!(judged(&compile(&input), &person(), "s", "t", None), "allow gate_off_auto_run");
    input.base.auto_run.mode = AutoRunMode::AskEveryTime;
    assert_eq!(judged(&compile(&input), &person(), "s", "t", None), "hold allowlist_gate_off");
    assert_eq!(judged(&compile(&input), &person(), "s", "b:d", None), "hold invalid_name");
    assert_eq!(judged(&compile(&input), &person(), "cursor-ide-browser", "x", None), "hold protected");
}

#[test]
fn seed_004_mcp_examples() {
    let policy = compile(&seed_004());
    for (server, tool, expected) in [
        ("github", "create_issue", "allow allowlist_match"),
        ("GITHUB", "CREATE_ISSUE", "allow allowlist_match"),
        ("github", "delete_repo", "hold not_in_allowlist"),
        ("linear", "list_issues", "allow allowlist_match"),
        ("custom-user-tools", "your_tool_name", "hold not_in_allowlist"),
        ("linear", "resources/read", "allow allowlist_match"),
        ("github", "resources/read", "hold not_in_allowlist"),
        ("github", "prompts/get", "allow never_held"),
        ("github", "completion/complete", "allow never_held"),
    ] {
        assert_eq!(judged(&policy, &person(), server, tool, None), expected, "{server}:{tool}");
    }
    let mut input = plain();
    files_allow(&mut input, &["*:read_file", "custom-user-tools:your_tool_name"], &[]);
    let policy = compile(&input);
    assert_eq!(judged(&policy, &person(), "any", "read_file", None), "allow allowlist_match");
    assert_eq!(judged(&policy, &person(), "custom-user-tools", "your_tool_name", None), "allow allowlist_match");
}

#[test]
fn seed_004_terminal_examples() {
    let policy = compile(&seed_004());
    for (command, expected) in [
        ("git status", "allow allowlist_match"),
        ("git diff", "allow allowlist_match"),
        ("git push", "allow allowlist_match"),
        ("npm install", "allow allowlist_match"),
        ("npm install --save-dev foo", "allow allowlist_match"),
        ("npm publish", "hold not_in_allowlist"),
        ("npm test", "hold not_in_allowlist"),
        ("ls -la", "allow allowlist_match"),
        ("curl https://example.com", "hold not_in_allowlist"),
        ("rm -rf dist", "hold delete_protection"),
        ("GIT status", "hold not_in_allowlist"),
        ("git status && npm publish", "hold not_in_allowlist"),
        ("git status; ls", "allow allowlist_match"),
        ("", "hold command_unparsable"),
        ("git status \"", "hold command_unparsable"),
    ] {
        assert_eq!(judged_shell(&policy, &person(), command), expected, "{command}");
    }
    let mut tight = plain();
    files_allow(&mut tight, &[], &["git:status", "git:diff"]);
    let policy = compile(&tight);
    for (command, expected) in [
        ("git status", "allow allowlist_match"),
        ("git diff", "allow allowlist_match"),
        ("git status -s", "hold not_in_allowlist"),
        ("git push", "hold not_in_allowlist"),
    ] {
        assert_eq!(judged_shell(&policy, &person(), command), expected, "{command}");
    }
}

#[test]
fn shell_1_fetch_has_no_allowlist() {
    let mut input = plain();
    files_allow(&mut input, &["*:*"], &["curl"]);
    for (mode, url, expected) in [
        (AutoRunMode::UseAllowlist, "https://example.com", "hold fetch_review"),
        (AutoRunMode::AskEveryTime, "https://example.com", "hold ask_every_time"),
        (AutoRunMode::RunEverything, "https://example.com", "allow run_everything"),
        (AutoRunMode::RunEverything, "file:///etc/passwd", "hold url_unparsable"),
        (AutoRunMode::RunEverything, "not a url", "hold url_unparsable"),
    ] {
        input.base.auto_run.mode = mode;
        assert_eq!(judged_fetch(&compile(&input), &person(), url), expected, "{url}");
    }
}

#[test]
fn perm_2_files_replace_settings_even_when_empty() {
    let mut input = plain();
    let stored = UserInput { mcp_allowlist: sourced(&["s:t"]), ..UserInput::default() };
    input.users.insert(crate::kit::USER.to_owned(), stored);
    assert_eq!(judged(&compile(&input), &person(), "s", "t", None), "allow allowlist_match");
    input.local.files.push(PermissionsInput { terminal_allowlist: Some(Vec::new()), ..PermissionsInput::default() });
    assert_eq!(judged(&compile(&input), &person(), "s", "t", None), "allow allowlist_match");
    input.local.files.push(PermissionsInput { mcp_allowlist: Some(Vec::new()), ..PermissionsInput::default() });
    assert_eq!(judged(&compile(&input), &person(), "s", "t", None), "hold not_in_allowlist");
}

#[test]
fn perm_1_files_are_the_local_users_alone() {
    let mut input = seed_004();
    input.servers.push(listing(server("github"), &["create_issue"]));
    let policy = compile(&input);
    let other = Caller::person("grace").into();
    assert_eq!(judged(&policy, &other, "github", "create_issue", None), "hold not_in_allowlist");
    // An agent of the same user has them.
    let mut input = seed_004();
    input.servers.push(listing(server("linear"), &["git.log"]));
    assert_eq!(judged(&compile(&input), &agent("pm"), "linear", "git.log", None), "allow allowlist_match");
}

#[test]
fn perm_3_a_broken_file_grants_nothing_and_defines_every_key() {
    let mut input = plain();
    input
        .users
        .insert(crate::kit::USER.to_owned(), UserInput { mcp_allowlist: sourced(&["*:*"]), ..UserInput::default() });
    input.local.files.push(PermissionsInput { broken: true, ..PermissionsInput::default() });
    assert_eq!(judged(&compile(&input), &person(), "s", "t", None), "hold not_in_allowlist");
}

#[test]
fn mode_7_always_allow_belongs_to_the_settings_layer() {
    let mut input = plain();
    let mut opted_in = server("git");
    opted_in.always_allow = vec![Sourced::new("git_status".to_owned(), origin(toolwarden_core::Layer::Settings))];
    input.servers.push(opted_in);
    assert_eq!(judged(&compile(&input), &person(), "git", "git_status", None), "allow allowlist_match");
    assert_eq!(judged(&compile(&input), &person(), "git", "git_reset", None), "hold not_in_allowlist");
    files_allow(&mut input, &[], &[]);
    assert_eq!(judged(&compile(&input), &person(), "git", "git_status", None), "hold not_in_allowlist");
}

#[test]
fn allow_5_twins_are_not_reached_by_each_others_grant() {
    let mut input = plain();
    input.servers.push(listing(server("s"), &["Drop", "drop", "read"]));
    files_allow(&mut input, &["s:drop", "s:READ"], &[]);
    let policy = compile(&input);
    assert_eq!(judged(&policy, &person(), "s", "drop", None), "allow allowlist_match");
    assert_eq!(judged(&policy, &person(), "s", "Drop", None), "hold not_in_allowlist");
    assert_eq!(judged(&policy, &person(), "s", "read", None), "allow allowlist_match");
}
