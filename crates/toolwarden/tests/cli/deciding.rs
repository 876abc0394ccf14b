//! What is decided by command beside a running gateway acts at its next call, without a restart (ALLOW-12, GATE-16).

use serde_json::{Value, json};
use toolwarden_test_postgres::Cluster;

use crate::house::House;
use crate::server::Server;

const NOTE: &str = "kept by the demo server";

fn reads(server: &Server) -> bool {
    server.read_note().contains(NOTE)
}

#[test]
fn allow_12_every_decision_acts_on_the_next_call() {
    every_decision_acts(&House::new());
}

#[test]
fn allow_12_every_decision_acts_on_the_next_call_with_postgresql() {
    let cluster = Cluster::start();
    assert!(cluster.is_ok(), "{cluster:?}");
    let Ok(cluster) = cluster else { unreachable!("the database starts") };
    let house = House::new();
    house.write("home/.config/toolwarden/toolwarden.toml", &format!("[store]\nurl = \"{}\"\n", cluster.url()));
    every_decision_acts(&house);
}

fn every_decision_acts(house: &House) {
    let server = Server::start(house);
    let steps: &[(&[&str], bool)] = &[
        (&["allow", "notes:read_note"], true),
        (&["settings", "set", "auto_run.mode", "ask_every_time"], false),
        (&["settings", "set", "auto_run.mode", "run_everything"], true),
        (&["settings", "unset", "auto_run.mode"], true),
        (&["tools", "disable", "read_note"], false),
        (&["tools", "enable", "read_note"], true),
        (&["settings", "set", "mcp.tools.disabled", "[\"notes:READ_NOTE\"]"], false),
        (&["settings", "unset", "mcp.tools.disabled"], true),
        (&["servers", "disable", "notes"], false),
        (&["servers", "enable", "notes"], true),
        (&["admin", "set", "enabled=true"], false),
        (&["admin", "set", "mcp_tool_allowlist=[\"notes:*\"]"], true),
        (&["admin", "set", "disable_mcp_auto_run=true"], false),
        (&["admin", "set", "enabled=", "mcp_tool_allowlist=", "disable_mcp_auto_run="], true),
        (&["rules", "add", "no-notes", "no-notes.cedar"], false),
        (&["rules", "remove", "no-notes"], true),
    ];
    house.write("space/no-notes.cedar", "forbid (principal, action, resource);\n");
    for (command, expected) in steps {
        let ran = house.run(command);
        assert_eq!(ran.code, 0, "{command:?}: {}{}", ran.out, ran.err);
        assert_eq!(reads(&server), *expected, "{command:?}: {}", server.read_note());
    }
    let versions = house.json(&["policy", "history"]);
    assert_eq!(versions.as_array().map(Vec::len), Some(steps.len()));
    assert_eq!(house.run(&["policy", "rollback", "5"]).code, 0);
    assert!(!reads(&server));
    // What was asked is in the record, with the version it made.
    let rows = house.json(&["audit", "query", "--limit", "100"]);
    let of = |row: &Value| Some((row.get("detail")?.as_str()?.to_owned(), row.get("policy_version")?.as_u64()?));
    let said: Vec<_> = rows.as_array().into_iter().flatten().filter_map(of).collect();
    assert!(said.contains(&("go back to version 5".to_owned(), 17)), "{said:?}");
    assert!(said.contains(&("switch `read_note` off".to_owned(), 5)), "{said:?}");
}

#[test]
fn mode_9_a_mode_that_is_set_narrows_the_clients_that_have_it() {
    let house = House::new();
    let server = Server::start(&house);
    assert_eq!(house.run(&["modes", "set", "review", "--allow-tool", "notes:list_notes"]).code, 0);
    let decision = |tool: &str| house.decision(&["explain", tool, "--mode", "review"]);
    assert!(decision("notes:read_note").starts_with("deny"), "{}", decision("notes:read_note"));
    assert!(decision("notes:list_notes").starts_with("hold"));
    let listed = server.listed_in_mode("review");
    assert!(listed.contains("list_notes") && !listed.contains("read_note"), "{listed}");
    assert_eq!(house.run(&["modes", "set", "review", "--allow-tool", "notes:read_note"]).code, 0);
    assert!(server.listed_in_mode("review").contains("read_note"));
    let shown = house.json(&["modes", "show", "review"]);
    assert_eq!(shown.get("allowed_tools"), Some(&json!(["notes:list_notes", "notes:read_note"])));
    let stale = house.run(&["modes", "set", "review", "--any-tool", "--if-version", "1"]);
    assert_eq!(stale.code, 1);
    assert!(stale.err.contains("there now") && stale.err.contains("yours"), "{}", stale.err);
    assert_eq!(house.run(&["modes", "delete", "review"]).code, 0);
    assert!(!server.listed_in_mode("review").contains("read_note"), "a mode nobody defines is refused");
}

#[test]
fn mode_8_a_session_is_switched_while_it_lasts_and_told() {
    let house = House::new();
    assert!(house.run(&["sessions", "list"]).out.contains("no gateway runs"));
    let server = Server::start(&house);
    assert_eq!(house.run(&["allow", "notes:read_note"]).code, 0);
    assert_eq!(house.run(&["modes", "set", "quiet", "--allow-tool", "notes:list_notes"]).code, 0);
    let session = server.session("/mcp/notes");
    let read = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_note","arguments":{"name":"welcome"}}}"#;
    let reads = || server.post_in("/mcp/notes", &session, read).contains(NOTE);
    assert!(reads());
    let open = house.json(&["sessions", "list"]);
    let id = open.pointer("/0/id").and_then(Value::as_str).unwrap_or_default().to_owned();
    assert_eq!(open.pointer("/0/server"), Some(&json!("notes")), "{open}");
    assert_eq!(open.pointer("/0/client"), Some(&json!("test")));
    assert!(!open.to_string().contains(&session), "what the client knows it by stays its own");
    let unknown = house.run(&["sessions", "mode", &id, "quite"]);
    assert!(unknown.code != 0 && unknown.err.contains("quiet"), "{}", unknown.err);
    let switched = house.run(&["sessions", "mode", &id, "quiet"]);
    assert_eq!(switched.code, 0, "{}", switched.err);
    assert!(!reads());
    assert!(house.run(&["sessions", "list"]).out.contains("quiet"));
    assert_eq!(house.run(&["sessions", "mode", &id, "--none"]).code, 0);
    assert!(reads());
    assert_eq!(house.run(&["sessions", "mode", "0123456789ab", "quiet"]).code, 2);
    let rows = house.json(&["audit", "query", "--limit", "100"]).to_string();
    assert!(rows.contains(&format!("session {id}: mode quiet instead of none")), "{rows}");
}

#[test]
fn what_is_explained_beside_a_gateway_is_what_it_does_with_its_own_server() {
    let house = House::new();
    let server = Server::start(&house);
    assert_eq!(house.run(&["tools", "scope", "notes:write_note", "pm"]).code, 0);
    assert_eq!(house.run(&["roles", "set", "worker", "--allow", "notes:write_note"]).code, 0);
    let worker = ["--role", "worker", "--user", "ada", "--task", "t1", "--job", "j1"];
    let explained = house.decision(&[&["explain", "notes:write_note"], worker.as_slice()].concat());
    let token = house.json(&[&["tokens", "issue"], worker.as_slice()].concat());
    let token = token.get("token").and_then(Value::as_str).unwrap_or_default();
    server.call_as(token, "write_note", &json!({ "name": "x", "text": "y" }));
    let rows = house.json(&["audit", "query", "--decision", "deny"]);
    let reason = rows.pointer("/0/reason").and_then(Value::as_str).unwrap_or_default();
    assert!(reason == "scope_mismatch" && explained.contains(reason), "{explained}, {rows}");
}

#[test]
fn gate_8_a_server_that_is_added_can_be_called_at_once_and_is_gone_when_it_is_removed() {
    let house = House::new();
    let server = Server::start(&house);
    let program = env!("CARGO_BIN_EXE_toolwarden");
    let notes = server.initialize();
    let added = house.run(&["servers", "add", "more", "--", program, "demo-server"]);
    assert_eq!(added.code, 0, "{}", added.err);
    assert!(added.out.contains("newly allowed: the server `more` is new"), "{}", added.out);
    let listed = server.post_in("/mcp/notes", &notes, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert!(listed.contains("read_note"), "what was there is not disturbed: {listed}");
    assert_eq!(house.run(&["allow", "more:read_note"]).code, 0);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "read_note", "arguments": { "name": "welcome" } } });
    let session = server.session("/mcp/more");
    let call = || server.post_in("/mcp/more", &session, &body.to_string());
    assert!(call().contains(NOTE), "{}", call());
    assert_eq!(house.run(&["servers", "reload", "more"]).code, 0);
    assert!(server.post_in("/mcp/more", &server.session("/mcp/more"), &body.to_string()).contains(NOTE));
    assert_eq!(house.run(&["servers", "reload", "nobody"]).code, 2);
    assert_eq!(house.run(&["servers", "remove", "more"]).code, 0);
    assert!(!call().contains(NOTE), "{}", call());
    let listed = house.json(&["servers", "list"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
}
