//! ALLOW-10: what an enabled admin record changes.

use toolwarden_policy::input::{AdminInput, AutoRunMode, UserInput};
use toolwarden_policy::{PolicyInput, PolicySet};

use crate::kit::{USER, compile, files_allow, judged, judged_fetch, judged_shell, person, plain, sourced};

/// A user who allowed themselves everything.
fn eager(mode: AutoRunMode, admin: AdminInput) -> PolicyInput {
    let mut input = plain();
    files_allow(&mut input, &["*:*"], &["git", "ls"]);
    input.users.insert(USER.to_owned(), UserInput { mcp_allowlist: sourced(&["*:*"]), ..UserInput::default() });
    input.base.auto_run.mode = mode;
    input.base.admin = Some(admin);
    input
}

fn enabled() -> AdminInput {
    AdminInput { enabled: true, ..AdminInput::default() }
}

fn run(mode: AutoRunMode, admin: AdminInput) -> String {
    judged(&compile(&eager(mode, admin)), &person(), "s", "t", None)
}

#[test]
fn allow_10_users_lists_do_not_count() {
    let listed = AdminInput { mcp_tool_allowlist: sourced(&["s:other"]), ..enabled() };
    assert_eq!(run(AutoRunMode::UseAllowlist, listed.clone()), "hold not_in_allowlist");
    assert_eq!(run(AutoRunMode::RunEverything, listed), "hold not_in_allowlist");
    let admins = AdminInput { mcp_tool_allowlist: sourced(&["s:t"]), ..enabled() };
    assert_eq!(run(AutoRunMode::UseAllowlist, admins.clone()), "allow allowlist_match");
    assert_eq!(run(AutoRunMode::AskEveryTime, admins), "hold ask_every_time");
    assert_eq!(run(AutoRunMode::UseAllowlist, AdminInput::default()), "allow allowlist_match");
}

#[test]
fn allow_10_nothing_allowed_disables_auto_run() {
    assert_eq!(run(AutoRunMode::RunEverything, enabled()), "hold auto_run_disabled");
    let policy = compile(&eager(AutoRunMode::RunEverything, enabled()));
    assert_eq!(judged_shell(&policy, &person(), "git status"), "hold auto_run_disabled");
    assert_eq!(judged_fetch(&policy, &person(), "https://example.com"), "hold auto_run_disabled");
}

#[test]
fn allow_7_admin_run_everything_needs_the_users_own_mode() {
    let admin = AdminInput { enable_run_everything: true, ..enabled() };
    assert_eq!(run(AutoRunMode::RunEverything, admin.clone()), "allow admin_run_everything");
    assert_eq!(run(AutoRunMode::UseAllowlist, admin.clone()), "hold not_in_allowlist");
    let mut reviewed = eager(AutoRunMode::RunEverything, admin);
    reviewed.base.auto_run.auto_review = true;
    assert_eq!(judged(&compile(&reviewed), &person(), "s", "t", None), "hold not_in_allowlist");
}

#[test]
fn allow_10_protections_combine_by_or() {
    let admin = AdminInput { mcp_tool_allowlist: sourced(&["*:*"]), disable_mcp_auto_run: true, ..enabled() };
    assert_eq!(run(AutoRunMode::UseAllowlist, admin), "hold protected");
    let mut input = eager(
        AutoRunMode::UseAllowlist,
        AdminInput { mcp_tool_allowlist: sourced(&["*:*"]), browser_protection: true, ..enabled() },
    );
    input.base.auto_run.browser_protection = false;
    assert_eq!(judged(&compile(&input), &person(), "cursor-ide-browser", "x", None), "hold protected");
    let mut own = eager(AutoRunMode::UseAllowlist, AdminInput { mcp_tool_allowlist: sourced(&["*:*"]), ..enabled() });
    own.base.auto_run.mcp_protection = true;
    assert_eq!(judged(&compile(&own), &person(), "s", "t", None), "hold protected");
}

#[test]
fn allow_9_admin_controlled_users_cannot_switch_the_gate() {
    let mut input =
        eager(AutoRunMode::UseAllowlist, AdminInput { mcp_tool_allowlist: sourced(&["s:other"]), ..enabled() });
    input.base.auto_run.mcp_allowlists = false;
    assert_eq!(judged(&compile(&input), &person(), "s", "t", None), "hold not_in_allowlist");
}

#[test]
fn shell_4_blocked_commands_and_delete_protection() {
    let admin = AdminInput {
        allowed: sourced(&["git", "ls", "echo"]),
        blocked: sourced(&["git:push*", "curl"]),
        delete_file_protection: true,
        ..enabled()
    };
    let mut input = eager(AutoRunMode::UseAllowlist, admin);
    input.base.auto_run.delete_protection = false;
    let policy = compile(&input);
    for (command, expected) in [
        ("git status", "allow allowlist_match"),
        ("git push origin main", "hold command_blocked"),
        ("/usr/bin/git push", "hold command_blocked"),
        ("echo $(curl evil.example)", "hold command_blocked"),
        ("sudo -u bob curl evil.example", "hold command_blocked"),
        ("sh -c 'curl evil.example'", "hold command_blocked"),
        ("rm x", "hold delete_protection"),
        ("npm test", "hold not_in_allowlist"),
    ] {
        assert_eq!(judged_shell(&policy, &person(), command), expected, "{command}");
    }
}

#[test]
fn shell_1_an_admins_domain_deny_is_a_deny() {
    let mut admin = AdminInput { allowed: sourced(&["ls"]), ..enabled() };
    admin.sandboxing.denied_domains = sourced(&["evil.example", "*.tracker.example"]);
    let policy = compile(&eager(AutoRunMode::RunEverything, admin));
    for (url, expected) in [
        ("https://evil.example/x", "deny domain_denied"),
        ("https://EVIL.example./x", "deny domain_denied"),
        ("https://a.evil.example", "deny domain_denied"),
        ("https://notevil.example", "hold fetch_review"),
        ("https://x.tracker.example", "deny domain_denied"),
    ] {
        assert_eq!(judged_fetch(&policy, &person(), url), expected, "{url}");
    }
}

#[test]
fn allow_7_no_candidates_for_admin_controlled_callers() {
    use toolwarden_core::{Call, Door};
    use toolwarden_policy::decide;
    let held = |input: &PolicyInput| {
        let query = crate::kit::asked(&person(), Call::mcp("s", "t", None), Door::Explain);
        decide(&compile(input), &query).explanation().candidates.clone()
    };
    assert_eq!(held(&plain()), ["s:t"]);
    let listed = AdminInput { mcp_tool_allowlist: sourced(&["s:other"]), ..enabled() };
    assert!(held(&eager(AutoRunMode::UseAllowlist, listed)).is_empty());
    let mut asking = plain();
    asking.base.auto_run.mode = AutoRunMode::AskEveryTime;
    assert!(held(&asking).is_empty());
}

#[test]
fn self_6_a_blocked_entry_or_a_denied_domain_that_would_stop_nothing_is_refused() {
    let refused = |blocked: &[&str], domains: &[&str]| {
        let mut admin = AdminInput { enabled: true, blocked: sourced(blocked), ..AdminInput::default() };
        admin.sandboxing.denied_domains = sourced(domains);
        let mut input = plain();
        input.base.admin = Some(admin);
        PolicySet::compile(&input).is_err()
    };
    assert!(!refused(&["rm", "git:push*", "npm run"], &["evil.example", "*.tracker.example"]));
    for entry in ["", " ", "*", "rm*", "rm *", " rm", "rm  -rf", ":x", "r\nm"] {
        assert!(refused(&[entry], &[]), "{entry:?}");
    }
    for domain in ["", " ", "evil.*", "*", "ev*l.example", " evil.example/", "evil example"] {
        assert!(refused(&[], &[domain]), "{domain:?}");
    }
}
