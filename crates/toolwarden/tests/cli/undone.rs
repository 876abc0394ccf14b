//! What changed nothing, or was refused, is not on record as done.

use serde_json::Value;

use crate::house::House;
use crate::server::Server;

/// What the record says of an operation, oldest first.
fn rows(house: &House, operation: &str) -> Vec<String> {
    let all = house.json(&["audit", "query", "--kind", "event", "--limit", "100"]);
    let mut rows: Vec<String> = all
        .as_array()
        .into_iter()
        .flatten()
        .filter(|row| row.get("method").and_then(Value::as_str) == Some(operation))
        .map(|row| row.get("detail").and_then(Value::as_str).unwrap_or_default().to_owned())
        .collect();
    rows.reverse();
    rows
}

/// Runs a command, and gives its exit code and what it added to the record.
fn adds(house: &House, operation: &str, arguments: &[&str]) -> (i32, Vec<String>) {
    let before = rows(house, operation).len();
    let code = house.run(arguments).code;
    (code, rows(house, operation).split_off(before))
}

fn nothing_is_done(house: &House) {
    for (operation, arguments, expected) in [
        ("blocks_remove", &["unblock", "foo:bar"][..], 2),
        ("tokens_revoke", &["tokens", "revoke", "nope"], 2),
        ("tokens_rotate", &["tokens", "rotate", "nope"], 2),
        ("allowlist_remove", &["disallow", "foo:bar"], 2),
        ("allowlist_add", &["allow", "a:b"], 0),
        ("trust_remove", &["trust", "--remove", "nowhere"], 2),
        ("settings_set", &["settings", "unset", "nope"], 2),
        ("tools_set", &["tools", "disable", "gw:off"], 0),
        ("servers_reload", &["servers", "reload", "nope"], 2),
        ("servers_switch", &["servers", "disable", "nope"], 2),
        ("trust_add", &["trust", "nowhere"], 2),
        ("grants_revoke", &["grants", "revoke", "nope"], 2),
        ("policy_rollback", &["policy", "rollback", "9999"], 2),
    ] {
        let (code, rows) = adds(house, operation, arguments);
        assert_eq!(code, expected, "{arguments:?}");
        let is_undone = |row: &String| row.starts_with("nothing changed: ") || row.starts_with("failed: ");
        assert!(rows.len() <= 1 && rows.iter().all(is_undone), "{arguments:?}: {rows:?}");
    }
}

#[test]
fn gate_15_what_changed_nothing_is_not_on_record_as_done() {
    let house = House::new();
    assert_eq!(adds(&house, "allowlist_add", &["allow", "a:b"]).1.len(), 1);
    assert_eq!(house.run(&["tools", "disable", "gw:off"]).code, 0);
    nothing_is_done(&house);
    // What is done is there before it is done, once.
    let (code, removed) = adds(&house, "allowlist_remove", &["disallow", "a:b"]);
    assert!(code == 0 && removed.len() == 1 && removed.iter().all(|row| row.starts_with("remove ")), "{removed:?}");
}

#[test]
fn gate_15_nor_where_a_server_runs_or_a_file_has_the_list() {
    let house = House::new();
    house.write("home/.cursor/permissions.json", "{\"mcpAllowlist\": []}\n");
    let server = Server::start(&house);
    let (code, added) = adds(&house, "allowlist_add", &["allow", "a:b"]);
    assert!(code == 0 && added.len() == 1 && added.iter().all(|row| row.starts_with("add ")), "{added:?}");
    assert!(house.read("home/.cursor/permissions.json").contains("\"a:b\""));
    assert_eq!(house.run(&["tools", "disable", "gw:off"]).code, 0);
    nothing_is_done(&house);
    let id = server.initialize();
    assert!(!id.is_empty());
    let open = house.json(&["sessions", "list"]);
    let mark = open.pointer("/0/id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (code, rows) = adds(&house, "sessions_mode", &["sessions", "mode", &mark, "nosuch"]);
    assert!(code == 2 && rows.len() == 1 && rows.iter().all(|row| row.starts_with("nothing changed: ")), "{rows:?}");
    server.stop();
}
