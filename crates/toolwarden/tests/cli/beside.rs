//! The command line beside a running server: what it changes acts on the next call, and it says the
//! same words as without one.

use serde_json::Value;

use crate::house::House;
use crate::server::{Server, eventually};

const NOTE: &str = "This note is kept by the demo server.";

/// The methods or tools of the rows, newest first, with decision and door.
fn rows(house: &House) -> Vec<String> {
    let rows = house.json(&["audit", "query"]);
    let text = |row: &Value, name: &str| row.get(name).and_then(Value::as_str).unwrap_or("-").to_owned();
    let line = |row: &Value| {
        let what = if text(row, "kind") == "event" { text(row, "method") } else { text(row, "tool") };
        format!("{what} {} {} {}", text(row, "decision"), text(row, "status"), text(row, "door"))
    };
    rows.as_array().into_iter().flatten().map(line).collect()
}

#[test]
fn allow_acts_on_the_next_call_and_disallow_too() {
    let house = House::new();
    let server = Server::start(&house);
    assert!(server.read_note().contains("Held by Toolwarden"));
    assert_eq!(house.run(&["allow", "notes:read_note"]).code, 0);
    assert_eq!(server.read_note(), NOTE);
    assert_eq!(house.run(&["disallow", "notes:read_note"]).code, 0);
    assert!(server.read_note().contains("Held by Toolwarden"));
    assert_eq!(
        rows(&house),
        [
            "read_note hold held mcp_http",
            "allowlist_remove - - control",
            "read_note allow ok mcp_http",
            "allowlist_add - - control",
            "read_note hold held mcp_http",
            "approval_held - - -",
            // What the server is made of was seen for the first time.
            "definitions - - -",
            "definitions - - -",
        ]
    );
    let verified = house.run(&["audit", "verify"]);
    assert!(verified.code == 0 && verified.out.contains("serve-1  whole"), "{}", verified.out);
    server.stop();
    assert_eq!(house.run(&["audit", "verify"]).code, 0);
}

#[test]
fn trust_acts_on_the_next_call() {
    let house = House::new();
    house.write("space/.cursor/permissions.json", "{\"mcpAllowlist\": [\"notes:*\"]}");
    let server = Server::start(&house);
    assert!(server.read_note().contains("Held by Toolwarden"));
    assert_eq!(house.run(&["trust", "."]).code, 0);
    assert_eq!(server.read_note(), NOTE);
    assert_eq!(house.run(&["trust", "--remove", "."]).code, 0);
    assert!(server.read_note().contains("Held by Toolwarden"));
}

#[test]
fn self_2_a_file_that_widens_is_announced_and_recorded_and_one_that_narrows_is_not() {
    let house = House::new();
    let own = "home/.cursor/permissions.json";
    let server = Server::start(&house);
    let recorded = || house.run(&["audit", "query", "--kind", "event", "--json"]).out;
    house.write(own, "{\"mcpAllowlist\": [\"notes:read_note\"]}");
    assert!(eventually(|| server.read_note() == NOTE), "{}", house.read("server.log"));
    assert!(eventually(|| recorded().contains("policy_widened")), "{}", recorded());
    let log = house.read("server.log");
    assert!(log.contains("made the policy wider") && log.contains("notes:read_note"), "{log}");
    assert_eq!(recorded().matches("policy_widened").count(), 1, "{}", recorded());
    house.write(own, "{\"mcpAllowlist\": []}");
    assert!(eventually(|| server.read_note() != NOTE));
    // What a person asks for is on record as their own.
    assert_eq!(house.run(&["allow", "notes:read_note"]).code, 0);
    assert!(eventually(|| server.read_note() == NOTE));
    assert_eq!(recorded().matches("policy_widened").count(), 1, "{}", recorded());
    server.stop();
}

#[test]
fn files_changed_by_hand_act_without_a_restart() {
    let house = House::new();
    let (own, config) = ("home/.cursor/permissions.json", "home/.config/toolwarden/toolwarden.toml");
    let server = Server::start(&house);
    let runs = || server.read_note() == NOTE;
    assert!(!runs());
    // A file that was not there, emptied, whole again, broken.
    house.write(own, "{\"mcpAllowlist\": [\"notes:*\"]}");
    assert!(eventually(runs), "{}", house.read("server.log"));
    house.write(own, "{\"mcpAllowlist\": []}");
    assert!(eventually(|| !runs()), "{}", house.read("server.log"));
    house.write(own, "{\"mcpAllowlist\": [\"notes:*\"]}");
    assert!(eventually(runs));
    house.write(own, "{broken");
    assert!(eventually(|| !runs()), "{}", house.read("server.log"));
    house.write(own, "{\"mcpAllowlist\": [\"notes:*\"]}");
    assert!(eventually(runs));
    // The config, and a workspace nobody trusts, which may forbid.
    house.write(config, "[auto_run]\nask = [\"notes:*\"]\n");
    assert!(eventually(|| !runs()), "{}", house.read("server.log"));
    house.write(config, "");
    assert!(eventually(runs));
    house.write("space/.mcp.json", "{\"mcpServers\": {\"notes\": {\"command\": \"other\"}}}");
    house.write(
        "space/.roo/mcp.json",
        "{\"mcpServers\": {\"notes\": {\"command\": \"other\", \"disabledTools\": [\"read_note\"]}}}",
    );
    assert!(eventually(|| !runs()), "{}", house.read("server.log"));
}

#[test]
fn a_policy_that_can_be_used_again_is_found_wherever_the_fault_lay() {
    let house = House::new();
    let config = "home/.config/toolwarden/toolwarden.toml";
    house.run(&["allow", "notes:read_note"]);
    let server = Server::start(&house);
    assert_eq!(server.read_note(), NOTE);
    // The config names a file that is not there yet; nothing else changes when it comes.
    house.write(config, "[rules]\nfiles = [\"new.cedar\"]\n");
    assert!(eventually(|| house.read("server.log").contains("the former policy stays in force")));
    house.write("home/.config/toolwarden/new.cedar", "forbid (principal, action, resource);\n");
    assert!(eventually(|| server.read_note() != NOTE), "{}", house.read("server.log"));
    // And a rule that appears where a pattern looks.
    house.write(config, "[rules]\nfiles = [\"rules/*.cedar\"]\n");
    house.write("home/.config/toolwarden/rules/keep.txt", "");
    assert!(eventually(|| server.read_note() == NOTE), "{}", house.read("server.log"));
    house.write("home/.config/toolwarden/rules/a.cedar", "forbid (principal, action, resource);\n");
    assert!(eventually(|| server.read_note() != NOTE), "{}", house.read("server.log"));
}

#[test]
fn the_same_words_beside_a_server_and_without() {
    let told = |house: &House| {
        house.write("space/.cursor/permissions.json", "{\"mcpAllowlist\": [\"oops\"]}");
        house.write("home/.cursor/permissions.json", "{\"terminalAllowlist\": [\"also bad:\"]}");
        let commands: [&[&str]; 15] = [
            &["allow", "github:list"],
            &["allow", "GitHub:list", "--json"],
            &["allow", "github:li*"],
            &["allow", "builtin:web.fetch"],
            &["allow", "--shell", "npm:test*"],
            &["allow", "x:y", "--user", "ada"],
            &["allow", "x:y", "--config", "/nowhere.toml"],
            &["allowlist"],
            &["allowlist", "--json", "--user", "ada"],
            &["disallow", "github:list"],
            &["disallow", "github:list", "--json"],
            &["trust", "."],
            &["trust", "--list"],
            &["trust", "/nowhere"],
            &["servers", "show", "nobody"],
        ];
        let shown: Vec<String> = commands.iter().map(|command| house.shown(command)).collect();
        shown.join("\n").replace("no server is configured: add [servers.NAME] to toolwarden.toml", "there are: notes")
    };
    let alone = told(&House::new());
    let house = House::new();
    let server = Server::start(&house);
    assert_eq!(told(&house), alone);
    drop(server);
}

#[test]
fn a_broken_policy_keeps_the_last_good_one_and_says_so() {
    let house = House::new();
    house.run(&["allow", "notes:read_note"]);
    let server = Server::start(&house);
    assert_eq!(server.read_note(), NOTE);
    house.write("home/.config/toolwarden/toolwarden.toml", "this is no TOML [[[");
    let ran = house.run(&["disallow", "notes:read_note"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("the running server keeps its former policy") && ran.err.contains("toolwarden.toml"),
        "{}",
        ran.err
    );
    assert_eq!(server.read_note(), NOTE);
    assert!(house.read("server.log").contains("the former policy stays in force"));
    house.write("home/.config/toolwarden/toolwarden.toml", "");
    assert_eq!(house.run(&["disallow", "notes:other"]).code, 2, "it is in no list");
    assert!(server.read_note().contains("Held by Toolwarden"));
}

#[test]
fn servers_come_from_the_gateway_or_from_files() {
    let house = House::new();
    let fields = |json: &Value| {
        let of = |name: &str| json.pointer(&format!("/0/{name}")).cloned().unwrap_or_default();
        (of("name"), of("status"), of("tools"))
    };
    let server = Server::start(&house);
    assert_eq!(fields(&house.json(&["servers", "list"])), ("notes".into(), "connected".into(), 4.into()));
    house.run(&["allow", "notes:read_note"]);
    let shown = house.run(&["servers", "show", "notes"]).out;
    assert!(shown.contains("read_note    allow     allowlist_match"), "{shown}");
    assert!(shown.contains("write_note   hold      not_in_allowlist"), "{shown}");
    server.stop();
    assert_eq!(house.run(&["servers", "list"]).out, "no server is configured: add [servers.NAME] to toolwarden.toml\n");
    house.write("home/.config/toolwarden/toolwarden.toml", "[servers.gw]\ncommand = \"gw\"\n");
    assert_eq!(fields(&house.json(&["servers", "list"])), ("gw".into(), "not running".into(), 0.into()));
    assert_eq!(house.run(&["servers", "show", "nobody"]).code, 2);
}

#[test]
fn without_a_server_changes_are_recorded_all_the_same() {
    let house = House::new();
    house.run(&["allow", "a:b"]);
    house.run(&["disallow", "a:b"]);
    house.run(&["trust", "."]);
    // Refused before anything is done, so there is nothing to record.
    house.run(&["allow", "not an entry"]);
    assert_eq!(rows(&house), ["trust_add - - cli", "allowlist_remove - - cli", "allowlist_add - - cli"]);
    assert_eq!(house.run(&["audit", "verify"]).code, 0);
}
