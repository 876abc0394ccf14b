//! `trust` and workspace files: nothing that comes with a workspace grants before a person said so.

use crate::house::House;

fn workspace() -> House {
    let house = House::new();
    house
        .write("space/.cursor/permissions.json", "{\"mcpAllowlist\": [\"evil:*\"], \"terminalAllowlist\": [\"curl\"]}");
    house
}

#[test]
fn perm_4_untrusted_files_grant_nothing() {
    let house = workspace();
    assert_eq!(house.decision(&["explain", "evil:x"]), "hold not_in_allowlist");
    assert_eq!(house.decision(&["explain", "--shell", "curl x"]), "hold not_in_allowlist");
    // They define no keys either: the stored list still counts.
    house.run(&["allow", "mine:x"]);
    assert_eq!(house.decision(&["explain", "mine:x"]), "allow allowlist_match");
    assert_eq!(house.decision(&["explain", "evil:x", "--trust-workspace"]), "allow allowlist_match");
}

/// `allowlist` shows what `explain` counts: the file of a trusted workspace, and that it replaces the stored list.
#[test]
fn perm_2_the_list_shows_the_file_of_the_workspace() {
    let house = workspace();
    assert_eq!(house.run(&["allow", "mine:x"]).code, 0);
    assert_eq!(house.run(&["trust", "."]).code, 0);
    assert_eq!(house.decision(&["explain", "evil:x"]), "allow allowlist_match");
    let rows = house.json(&["allowlist"]);
    let counts = |entry: &str| {
        let rows = rows.as_array().into_iter().flatten();
        let mut found = rows.filter(|row| row.get("entry").and_then(serde_json::Value::as_str) == Some(entry));
        found.next().and_then(|row| row.get("counts")?.as_bool())
    };
    assert_eq!([counts("evil:*"), counts("curl"), counts("mine:x")], [Some(true), Some(true), Some(false)], "{rows}");
}

#[test]
fn perm_4_trust_covers_the_content_that_was_seen() {
    let house = workspace();
    let trusted = house.shown(&["trust", "."]);
    assert_eq!(house.decision(&["explain", "evil:x"]), "allow allowlist_match");
    house.write("space/.cursor/permissions.json", "{\"mcpAllowlist\": [\"worse:*\"]}");
    assert_eq!(house.decision(&["explain", "worse:x"]), "hold not_in_allowlist");
    assert_eq!(house.decision(&["explain", "evil:x"]), "allow allowlist_match");
    let lint = house.shown(&["lint"]);
    let listed = house.shown(&["trust", "--list"]);
    let removed = house.shown(&["trust", "--remove", "."]);
    assert_eq!(house.decision(&["explain", "evil:x"]), "hold not_in_allowlist");
    insta::assert_snapshot!("trust", [trusted, lint, listed, removed].join("\n"));
}

#[test]
fn gate_16_trusting_says_what_it_newly_allows_and_what_it_takes_away() {
    let house = workspace();
    assert_eq!(house.run(&["allow", "mine:x"]).code, 0);
    let trusted = house.run(&["trust", "."]);
    assert_eq!(trusted.code, 0, "{}", trusted.err);
    let says = |what: &str, entry: &str| trusted.out.lines().any(|line| line.starts_with(what) && line.contains(entry));
    assert!(says("newly allowed there: ", "evil:*") && says("newly allowed there: ", "curl"), "{}", trusted.out);
    assert!(says("no longer counts there: ", "mine:x"), "{}", trusted.out);
    // Once more changes nothing.
    let again = house.run(&["trust", "."]);
    assert!(again.code == 0 && !again.out.contains("allowed there"), "{}", again.out);
    // A config that was not even read before.
    let house = House::new();
    house.write("space/toolwarden.toml", "[auto_run]\nmode = \"run_everything\"\n");
    let trusted = house.run(&["trust", "."]);
    assert!(trusted.out.contains("newly allowed there: ") && trusted.out.contains("run_everything"), "{}", trusted.out);
}

#[test]
fn perm_4_an_untrusted_config_is_not_read_at_all() {
    let house = House::new();
    house.write("space/toolwarden.toml", "this is not even TOML [[[");
    let ran = house.run(&["explain", "a:b"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("toolwarden trust"), "{}", ran.err);
    house.write("space/toolwarden.toml", "[auto_run]\nmode = \"run_everything\"\n");
    assert_eq!(house.run(&["explain", "a:b"]).code, 2);
    assert_eq!(house.run(&["trust", "."]).code, 0);
    assert_eq!(house.decision(&["explain", "a:b"]), "allow run_everything");
}

#[test]
fn perm_4_the_deny_side_acts_at_once() {
    let house = House::new();
    house.write("space/.roomodes", "customModes:\n  - slug: code\n    name: Code\n    groups: [mcp]\n    mcpRestrictions:\n      disallowedServers: [prod]\n");
    assert_eq!(house.decision(&["explain", "prod:x", "--mode", "code"]), "deny mode_server");
    assert_eq!(house.decision(&["explain", "dev:x", "--mode", "code"]), "hold not_in_allowlist");
    // A mode known only from there is not known.
    house.write("space/.roomodes", "customModes:\n  - slug: fresh\n    name: Fresh\n    groups: [mcp]\n");
    assert_eq!(house.decision(&["explain", "dev:x", "--mode", "fresh"]), "deny mode_unknown");
    house.run(&["trust", "."]);
    assert_eq!(house.decision(&["explain", "dev:x", "--mode", "fresh"]), "hold not_in_allowlist");
}

#[test]
fn gate_5_a_trusted_workspace_config_is_not_an_operators() {
    let house = House::new();
    house.write("space/toolwarden.toml", "[auto_run]\nmode = \"run_everything\"\n[servers.gw]\ncommand = \"gw\"\n");
    house.run(&["trust", "."]);
    assert_eq!(house.decision(&["explain", "gw:db.read", "--role", "pm", "--user", "ada"]), "deny role_not_allowed");
    let config = house.path("space/toolwarden.toml").to_string_lossy().into_owned();
    assert_eq!(
        house.decision(&["--config", &config, "explain", "gw:db.read", "--role", "pm", "--user", "ada"]),
        "allow run_everything"
    );
}

#[test]
fn perm_4_the_deny_side_acts_on_servers_nobody_configured() {
    let house = House::new();
    house.write("space/.roo/mcp.json", r#"{"mcpServers":{"weather":{"command":"w","disabledTools":["nuke"]},"admin":{"command":"a","defaultEnabled":false},"gone":{"command":"g","disabled":true}}}"#);
    house.run(&["allow", "weather:*"]);
    assert_eq!(house.decision(&["explain", "weather:nuke"]), "deny tool_disabled");
    assert_eq!(house.decision(&["explain", "weather:look"]), "allow allowlist_match");
    assert_eq!(house.decision(&["explain", "admin:x"]), "deny tool_disabled");
    assert_eq!(house.decision(&["explain", "gone:x"]), "deny tool_disabled");
}

#[test]
fn perm_4_what_a_changed_config_takes_from_a_role_acts_at_once() {
    let house = House::new();
    house.write("space/toolwarden.toml", "[auto_run]\nmode = \"use_allowlist\"\n");
    house.run(&["trust", "."]);
    let explain = ["explain", "web:web.search", "--role", "worker", "--user", "u", "--task", "t", "--job", "j"];
    assert_eq!(house.decision(&explain), "hold not_in_allowlist");
    for role in ["worker", "sandbox"] {
        house.write(
            "space/toolwarden.toml",
            &format!("[auto_run]\nmode = \"use_allowlist\"\n[roles.{role}]\ndisallow = [\"web.*\"]\n"),
        );
        assert_eq!(house.decision(&explain), "deny role_disallowed", "{role}");
        // What the shipped role disallows stays disallowed.
        let database = ["explain", "gw:db.read", "--role", "worker", "--user", "u", "--task", "t", "--job", "j"];
        assert_eq!(house.decision(&database), "deny role_disallowed", "{role}");
    }
}

#[test]
fn allow_2_names_of_files_are_shown_escaped() {
    let house = House::new();
    house.write("space/a\u{1b}[31mb/.mcp.json", "{}");
    let ran = house.run(&["trust", "a\u{1b}[31mb"]);
    assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "{}{}", ran.out, ran.err);
}
