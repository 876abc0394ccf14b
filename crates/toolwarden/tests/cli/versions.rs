//! The record names what was asked and by which client, and every version it speaks of is in the history (GATE-15, SELF-2).

use serde_json::{Value, json};

use crate::house::House;
use crate::server::{Server, eventually};
use crate::sharing::Pipe;

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
const OWN: &str = "home/.cursor/permissions.json";

fn house() -> House {
    let house = House::new();
    let program = env!("CARGO_BIN_EXE_toolwarden");
    let config = format!(
        "[servers.notes]\ncommand = \"{program}\"\nargs = [\"demo-server\"]\ntools.delete_note.enabled = false\n"
    );
    house.write(CONFIG, &config);
    house
}

fn rows(house: &House, more: &[&str]) -> Vec<Value> {
    let rows = house.json(&[&["audit", "query"], more].concat());
    rows.as_array().cloned().unwrap_or_default()
}

fn text<'r>(row: &'r Value, name: &str) -> &'r str {
    row.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn gate_15_held_and_denied_calls_are_recorded_like_those_that_ran() {
    let house = house();
    let client = "odd\u{202e}client\n";
    let read = json!({ "name": "read_note", "arguments": { "name": "welcome" } });
    let mut pipe = Pipe::start(&house, None, client);
    assert!(pipe.ask("tools/call", &read).contains("not_in_allowlist"));
    let unknown = pipe.ask("tools/call", &json!({ "name": "no_such_tool", "arguments": { "a": 1 } }));
    assert!(unknown.contains("no_such_tool"), "{unknown}");
    let disabled = pipe.ask("tools/call", &json!({ "name": "delete_note", "arguments": { "name": "x" } }));
    assert!(!disabled.contains("\"isError\":false"), "{disabled}");
    assert_eq!(house.run(&["allow", "notes:read_note"]).code, 0);
    let pipe = std::cell::RefCell::new(pipe);
    assert!(eventually(|| pipe.borrow_mut().ask("tools/call", &read).contains("kept by the demo server")));
    // How it ended is recorded after it was answered.
    assert!(eventually(|| rows(&house, &["--decision", "allow"]).iter().any(|row| text(row, "status") == "ok")));
    let calls: Vec<Value> = rows(&house, &[]).into_iter().filter(|row| text(row, "kind") != "event").collect();
    assert!(calls.len() >= 4, "{calls:?}");
    for row in &calls {
        assert_eq!(text(row, "arguments_digest").len(), 64, "{row}");
        assert!(row.get("duration_us").is_some_and(Value::is_u64), "{row}");
        // As the client says it, and without what would deceive whoever reads it.
        let said = text(row, "client");
        assert!(said.starts_with("odd") && said.contains("client") && !said.contains(['\u{202e}', '\n']), "{row}");
        assert_eq!(text(row, "client_version"), "1");
    }
    let of = |tool: &str, decision: &str| {
        let found = calls.iter().find(|row| text(row, "tool") == tool && text(row, "decision") == decision);
        found.map(|row| text(row, "arguments_digest").to_owned()).unwrap_or_default()
    };
    assert_eq!(of("read_note", "hold"), of("read_note", "allow"), "the same call has the same digest");
    assert!(!of("no_such_tool", "deny").is_empty() && !of("delete_note", "deny").is_empty(), "{calls:?}");
    let shown = house.run(&["audit", "query"]).out;
    assert!(shown.contains("says odd") && shown.contains("no_such_tool"), "{shown}");
}

#[test]
fn gate_15_an_unknown_tool_of_no_server_is_named() {
    let house = house();
    let server = Server::start(&house);
    let said =
        server.rpc("tools/call", Some("nobody__does_this"), &json!({ "name": "nobody__does_this", "arguments": {} }));
    assert!(said.to_string().contains("nobody__does_this"), "{said}");
    assert!(eventually(|| rows(&house, &[]).iter().any(|row| text(row, "tool") == "nobody__does_this")));
    let shown = house.run(&["audit", "query"]).out;
    assert!(shown.contains("nobody__does_this"), "{shown}");
}

#[test]
fn gate_15_the_rows_of_one_answer_are_told_apart() {
    let house = house();
    let server = Server::start(&house);
    assert!(server.read_note().contains("Held by Toolwarden"));
    let held = house.json(&["approvals", "list"]);
    let id = held.pointer("/0/id").and_then(Value::as_str).unwrap_or_default().to_owned();
    assert_eq!(house.run(&["approvals", "approve", &id]).code, 0);
    let events = || -> Vec<String> {
        let mut rows = rows(&house, &["--kind", "event"]);
        rows.retain(|row| text(row, "approval_id") == id);
        rows.iter().rev().map(|row| text(row, "event").to_owned()).collect()
    };
    assert!(eventually(|| events() == ["asked", "requested", "answered"]), "{:?}", events());
    let shown = house.run(&["audit", "query", "--kind", "event"]).out;
    assert!(shown.contains("event requested") && shown.contains("event answered"), "{shown}");
}

/// The versions that are spoken of: the newest of the history, of `/readyz`, of a recorded call, and of an explanation.
fn versions(house: &House, server: &Server) -> [Option<u64>; 4] {
    let number = |value: &Value, at: &str| value.pointer(at).and_then(Value::as_u64);
    let history = house.json(&["policy", "history"]);
    let page = server.page("/readyz");
    let ready: Value =
        page.split("\r\n\r\n").nth(1).and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default();
    drop(server.read_note());
    let record = rows(house, &["--tool", "notes:read_note", "--limit", "1"]);
    let explained = house.json(&["explain", "notes:read_note"]);
    [
        number(&history, "/0/version"),
        number(&ready, "/policy/version"),
        record.first().and_then(|row| number(row, "/policy_version")),
        number(&explained, "/policy_version"),
    ]
}

#[test]
fn self_2_a_change_of_files_is_a_version_and_every_number_is_that_of_the_history() {
    let house = house();
    let server = Server::start(&house);
    let are_one = || {
        let [first, others @ ..] = versions(&house, &server);
        first.is_some() && others.iter().all(|other| *other == first)
    };
    assert_eq!(house.run(&["settings", "set", "a.b", "true"]).code, 0);
    assert!(eventually(are_one), "{:?}", versions(&house, &server));
    // Several changes by file: written, changed, taken away.
    for (number, text) in ["{\"mcpAllowlist\": [\"notes:read_note\"]}", "{\"mcpAllowlist\": []}"].iter().enumerate() {
        house.write(OWN, text);
        let by_file = || {
            let history = house.json(&["policy", "history"]);
            let all = history.as_array().cloned().unwrap_or_default();
            all.iter().filter(|version| text_is(version, "author", "file")).count()
        };
        assert!(eventually(|| by_file() == number + 1), "{}", house.run(&["policy", "history"]).out);
        assert!(eventually(are_one), "{:?}", versions(&house, &server));
    }
    let history = house.json(&["policy", "history"]);
    let last = history.pointer("/0/version").and_then(Value::as_u64).unwrap_or_default();
    assert!(
        history.pointer("/0/summary").is_some_and(|words| words.to_string().contains("permissions.json")),
        "{history}"
    );
    assert!(
        history.pointer("/1/summary").is_some_and(|words| words.to_string().contains("newly allowed")),
        "{history}"
    );
    let diff = house.run(&["policy", "diff", &(last - 1).to_string(), &last.to_string()]).out;
    assert!(diff.contains("permissions.json") && diff.contains("notes:read_note"), "{diff}");
    // Who goes back in the store changes no file, and a decision between counts on.
    assert_eq!(house.run(&["settings", "set", "a.b", "false"]).code, 0);
    assert!(eventually(are_one), "{:?}", versions(&house, &server));
    assert_eq!(house.run(&["policy", "rollback", "1"]).code, 0);
    assert_eq!(house.read(OWN), "{\"mcpAllowlist\": []}");
    assert!(eventually(are_one), "{:?}", versions(&house, &server));
}

#[test]
fn self_2_a_file_that_a_person_changes_by_command_is_a_version_of_theirs() {
    let house = house();
    house.write(OWN, "{\"mcpAllowlist\": []}");
    let server = Server::start(&house);
    let newest = || house.json(&["policy", "history"]).pointer("/0").cloned().unwrap_or_default();
    assert_eq!(house.run(&["allow", "notes:read_note"]).code, 0);
    let allowed = newest();
    assert!(text(&allowed, "summary").contains("permissions.json; newly allowed: "), "{allowed}");
    assert!(!text_is(&allowed, "author", "file"), "{allowed}");
    assert!(server.read_note().contains("kept by the demo server"));
    let [first, others @ ..] = versions(&house, &server);
    assert!(first.is_some() && others.iter().all(|other| *other == first), "{first:?} {others:?}");
    // Allowing it twice changes nothing.
    assert_eq!(house.run(&["allow", "notes:read_note"]).code, 0);
    assert_eq!(newest(), allowed);
    // What a person trusts says which files count.
    house.write("work/.cursor/permissions.json", "{\"mcpAllowlist\": [\"notes:*\"]}");
    let directory = house.path("work").display().to_string();
    assert_eq!(house.run(&["trust", &directory]).code, 0);
    let trusted = newest();
    assert!(text(&trusted, "summary").contains("workspace files are trusted"), "{trusted}");
    assert_eq!(text(&trusted, "author"), text(&allowed, "author"));
}

#[test]
fn gate_16_a_rollback_says_which_files_it_leaves_as_they_are() {
    let house = house();
    house.write(OWN, "{\"mcpAllowlist\": []}");
    let _server = Server::start(&house);
    assert_eq!(house.run(&["settings", "set", "auto_run.mode", "use_allowlist"]).code, 0);
    let before = house.json(&["policy", "history"]).pointer("/0/version").and_then(Value::as_u64).unwrap_or_default();
    assert_eq!(house.run(&["tools", "disable", "notes:write_note"]).code, 0);
    let all = house.run(&["policy", "rollback", &before.to_string()]);
    assert!(all.code == 0 && all.out.contains("everything is as it was"), "{} {}", all.out, all.err);
    assert_eq!(house.run(&["allow", "notes:read_note"]).code, 0);
    for more in [&["--dry-run"][..], &[]] {
        let left = house.run(&[&["policy", "rollback", &before.to_string()], more].concat());
        assert_eq!(left.code, 0, "{} {}", left.out, left.err);
        assert!(!left.out.contains("everything"), "{}", left.out);
        assert!(left.err.contains("left as they are") && left.err.contains("permissions.json"), "{}", left.err);
    }
    let told = house.json(&["policy", "rollback", &before.to_string()]);
    assert!(
        told.pointer("/files_left/0").and_then(Value::as_str).is_some_and(|file| file.contains("permissions.json")),
        "{told}"
    );
    assert_eq!(house.run(&["explain", "notes:read_note"]).code, 0, "what the file allows still counts");
}

fn text_is(row: &Value, name: &str, expected: &str) -> bool {
    text(row, name) == expected
}
