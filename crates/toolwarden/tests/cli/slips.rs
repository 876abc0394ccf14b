//! Slips of whoever types: names that nobody knows, flags that are missing, files that cannot be read. Each is said at
//! once, and none is taken for something else.

use serde_json::{Value, json};

use crate::approving::{call, held, house as notes_house};
use crate::house::House;
use crate::server::Server;

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

/// Exit code, and everything that was said.
fn said(house: &House, arguments: &[&str]) -> (i32, String) {
    let ran = house.run(arguments);
    (ran.code, format!("{}{}", ran.out, ran.err))
}

fn says(house: &House, arguments: &[&str], code: i32, words: &str) {
    let (found, text) = said(house, arguments);
    assert!(found == code && text.contains(words), "{arguments:?} exits with {found}: {text}");
}

#[test]
fn names_of_tools_that_nobody_lists_are_said() {
    let house = notes_house("");
    let server = Server::start(&house);
    let explained = house.json(&["explain", "notes:raed_note"]);
    let field = |name: &str| explained.get(name).cloned().unwrap_or_default();
    assert_eq!((field("decision"), field("reason")), (json!("hold"), json!("not_in_allowlist")), "{explained}");
    assert_eq!(field("did_you_mean"), json!("notes:read_note"));
    says(&house, &["allow", "notes:raed_note"], 0, "did you mean `notes:read_note`?");
    let entry = r#"notes:write_note where {"/nmae":{"equals":"x"}}"#;
    says(&house, &["allow", entry], 0, "`notes:write_note` has no argument `nmae`; did you mean `name`?");
    assert!(!said(&house, &["allow", "notes:delete_note"]).1.contains("warning"));
    says(&house, &["grants", "issue", "notes:raed_note", "--calls", "1"], 0, "no server is known to have");
    says(&house, &["grants", "issue", "nots:*", "--calls", "1"], 0, "no server is known to have");
    assert!(!said(&house, &["grants", "issue", "notes:read_note", "--calls", "1"]).1.contains("warning"));
    // What is said of a tool does not make its server list it.
    assert_eq!(house.run(&["tools", "scope", "notes:raed_note", "pm"]).code, 0);
    let (_, found) = said(&house, &["lint"]);
    assert!(found.contains("`notes:raed_note` matches nothing"), "{found}");
    call(&server, "mine");
    let id = held(&house);
    says(
        &house,
        &["approvals", "approve", &id, "--scope", "narrowed"],
        2,
        "`--where NAME=KIND:VALUE` or `--free NAME`",
    );
}

/// README's first walk: what `lint` knows, `doctor` knows.
#[test]
fn doctor_knows_the_servers_and_tools_that_lint_knows() {
    let house = House::new();
    let _server = Server::start(&house);
    assert_eq!(house.run(&["tools", "scope", "notes:read_note", "both"]).code, 0);
    assert_eq!(house.run(&["roles", "set", "reader", "--scope", "pm", "--allow", "notes:read_note"]).code, 0);
    let lint = house.run(&["lint"]).out;
    assert!(!lint.contains("matches no known tool"), "{lint}");
    let doctor = house.run(&["doctor"]).out;
    assert!(!doctor.contains("matches no known tool"), "{doctor}");
    let header = "Authorization: Bearer ${env:TOOLWARDEN_TEST_NOSUCH}";
    let add = ["servers", "add", "docs", "--url", "http://127.0.0.1:1/mcp", "--header", header];
    assert_eq!(house.run(&add).code, 0);
    says(&house, &["doctor"], 1, "has no value here");
    says(&house, &add, 2, "`--replace`");
}

#[test]
fn a_catalog_of_another_server_is_not_taken_for_this_ones() {
    let house = House::new();
    house.write("space/tools.json", r#"{"tools": [{"name": "foo", "inputSchema": {"type": "object"}}]}"#);
    says(&house, &["explain", "gh:foo", "--catalog", "tools.json"], 2, "write `--catalog gh=tools.json`");
    says(&house, &["explain", "gh:foo", "--catalog", "gh=tools.json"], 4, "not_in_allowlist");
    house.write("space/r.cedar", "permit (principal, action, resource);");
    says(&house, &["rules", "check", "r.cedar", "--catalog", "tools.json"], 0, "taken as the tools of `tools`");
}

#[test]
fn a_misspelt_annotation_is_said_where_rules_are_read() {
    let house = House::new();
    house.write("space/r.cedar", "@hodl(\"why\")\nforbid (principal, action, resource);\n");
    for arguments in [&["rules", "check", "r.cedar"][..], &["rules", "add", "night", "r.cedar"], &["lint"]] {
        assert!(
            said(&house, arguments).1.contains("did you mean `@hold`?"),
            "{arguments:?} {}",
            said(&house, arguments).1
        );
    }
}

#[test]
fn errors_are_json_where_json_was_asked_for() {
    let house = House::new();
    house.write(CONFIG, "[servers.gw]\ncommand = \"sh\"\n");
    for arguments in [
        &["tokens", "revoke", "nosuch"][..],
        &["unblock", "gw:nosuch"],
        &["settings", "set", "auto_run.mode", "use_allowlit"],
        &["explain", "gw:x", "--as", "nosuch"],
    ] {
        let answer = house.json(arguments);
        assert_eq!(answer.get("error"), Some(&json!("bad_input")), "{arguments:?}");
        assert!(answer.get("message").and_then(Value::as_str).is_some_and(|words| words.len() > 10), "{answer}");
    }
    assert_eq!(house.run(&["tools", "disable", "gw:x"]).code, 0);
    says(&house, &["tools", "disable", "gw:x"], 0, "it is so already");
    says(&house, &["settings", "set", "auto_run.auto_review", "true"], 0, "no classifier is configured");
}

#[test]
fn perm_4_mistakes_in_files_of_a_workspace_are_said_before_and_as_they_are_trusted() {
    let house = House::new();
    house.write("space/.cursor/permissions.json", r#"{"mcpAllowlis": ["a:b"], "terminalAllowlist": 3}"#);
    let (code, found) = said(&house, &["lint"]);
    assert!(code == 1 && found.contains("mcpAllowlist") && found.contains("must be a list"), "{found}");
    house.write("space/.cursor/permissions.json", r#"{"mcpAllowlist": ["a:b""#);
    assert_eq!(house.run(&["lint"]).code, 1);
    says(&house, &["trust", "."], 1, "grants nothing until it is mended");
    assert_eq!(house.decision(&["explain", "a:b"]), "hold not_in_allowlist");
    house.write("space/.cursor/permissions.json", r#"{"mcpAllowlist": ["a:b"]}"#);
    assert_eq!(house.run(&["trust", "."]).code, 0);
}

#[test]
fn hints_name_the_flags_that_help() {
    let house = House::new();
    let entry = r#"notes:write_note where {"/name":{"equals":"x"}}"#;
    says(&house, &["grants", "issue", entry, "--calls", "1"], 2, "a grant takes no conditions");
    says(&house, &["grants", "issue", "notes:x"], 2, "--run");
    says(&house, &["grants", "issue", "notes:x"], 2, "--calls");
    says(&house, &["tokens", "issue"], 2, "--person");
    says(&house, &["tokens", "issue"], 2, "--role");
}
