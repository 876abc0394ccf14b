//! What is said where something does not work names what would: a command that exists, a file and its key, a name that
//! is near.

use serde_json::{Value, json};

use crate::house::House;
use crate::server::{Server, eventually};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
const WORKSPACE_FILE: &str = "space/.cursor/permissions.json";

/// The exit code is this one, and all of these words are said.
fn says(house: &House, arguments: &[&str], code: i32, words: &[&str]) {
    let ran = house.run(arguments);
    let text = format!("{}{}", ran.out, ran.err);
    assert!(
        ran.code == code && words.iter().all(|word| text.contains(word)),
        "{arguments:?} exits with {}, and should say {words:?}: {text}",
        ran.code
    );
}

fn notes() -> String {
    format!("[servers.notes]\ncommand = \"{}\"\nargs = [\"demo-server\"]\n", env!("CARGO_BIN_EXE_toolwarden"))
}

#[test]
fn explain_names_the_file_that_has_the_list_where_allow_would_be_refused() {
    let house = House::new();
    house.write(WORKSPACE_FILE, r#"{"mcpAllowlist": ["a:b"]}"#);
    assert_eq!(house.run(&["trust", "."]).code, 0);
    assert_eq!(house.run(&["allow", "notes:read_note"]).code, 2, "what explain must not recommend");
    let file = "~~/space/.cursor/permissions.json";
    let way = format!("add \"notes:read_note\" to `mcpAllowlist` in {file}");
    says(&house, &["explain", "notes:read_note"], 4, &[&way, "`toolwarden trust ~~/space`"]);
    assert!(!house.run(&["explain", "notes:read_note"]).out.contains("toolwarden allow"));
    // The list of commands is not defined there; others' lists are in no file.
    says(&house, &["explain", "--shell", "npm test"], 4, &["toolwarden allow --shell"]);
    says(&house, &["explain", "notes:read_note", "--user", "bob"], 4, &["toolwarden allow --user bob notes:read_note"]);
    house.write("home/.cursor/permissions.json", "{\"mcpAllowlist\": [");
    let repair = "repair ~~/home/.cursor/permissions.json first";
    says(&house, &["explain", "--workspace", "/", "notes:read_note"], 4, &[repair, "toolwarden allow notes:read_note"]);
}

#[test]
fn explain_names_the_command_for_scopes_switches_and_modes() {
    let house = House::new();
    house.write(CONFIG, &notes());
    let agent = ["--role", "pm", "--user", "bob"];
    assert_eq!(house.run(&["roles", "set", "pm", "--allow", "notes:*"]).code, 0);
    let explain = |more: &[&'static str]| [&["explain", "notes:read_note"], more].concat();
    says(&house, &explain(&agent), 3, &["`toolwarden tools scope notes:read_note pm|sandbox|both`", "set `scope`"]);
    assert_eq!(house.run(&["tools", "scope", "notes:read_note", "sandbox"]).code, 0);
    says(&house, &explain(&agent), 3, &["scope_mismatch", "`toolwarden tools scope notes:read_note pm|sandbox|both`"]);
    assert_eq!(house.run(&["modes", "set", "narrow", "--allow-server", "other", "--allow-tool", "notes:x"]).code, 0);
    let mode = ["--mode", "narrow"];
    says(&house, &explain(&mode), 3, &["`toolwarden modes set narrow --allow-server notes`"]);
    assert_eq!(house.run(&["modes", "set", "narrow", "--allow-server", "notes"]).code, 0);
    says(&house, &explain(&mode), 3, &["`toolwarden modes set narrow --allow-tool notes:read_note`"]);
    assert_eq!(house.run(&["tools", "disable", "notes:read_note"]).code, 0);
    says(&house, &explain(&[]), 3, &["`toolwarden tools enable notes:read_note`"]);
    says(&house, &["explain", "notes__read_note"], 2, &["write `notes:read_note`"]);
    assert_eq!(house.run(&["servers", "disable", "notes"]).code, 0);
    says(&house, &explain(&[]), 3, &["`toolwarden servers enable notes`"]);
}

#[test]
fn doctor_says_once_that_the_config_is_broken() {
    let house = House::new();
    house.write(CONFIG, &notes());
    assert_eq!(house.run(&["allow", "a:b"]).code, 0);
    house.write(CONFIG, "[store\n");
    let doctor = house.run(&["doctor", "--listen", "127.0.0.1:0"]).out;
    assert_eq!(doctor.matches("toolwarden.toml:").count(), 1, "{doctor}");
    assert!(
        doctor.contains("store, key and journal were not checked") && !doctor.contains("from a backup"),
        "{doctor}"
    );
    assert_eq!(doctor.matches("PROBLEM").count(), 1, "{doctor}");
}

#[test]
fn a_data_directory_that_cannot_be_used_is_said_with_the_way_out() {
    let house = House::new();
    house.write("home/file", "not a directory");
    let file = house.path("home/file").display().to_string();
    let below = house.path("home/file/below").display().to_string();
    let way = "choose another directory with --data-dir";
    for command in [&["allow", "a:b"][..], &["lint"], &["explain", "a:b"], &["audit", "query"], &["serve"]] {
        let at = |place: &str| [&["--data-dir", place], command].concat().iter().map(ToString::to_string).collect();
        let arguments: Vec<String> = at(&file);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        says(&house, &arguments, 1, &["~~/home/file is a file, not a directory", way]);
    }
    says(&house, &["--data-dir", &below, "allow", "a:b"], 1, &["~~/home/file/below cannot be used", way]);
    let doctor = house.run(&["--data-dir", &file, "doctor"]).out;
    assert!(doctor.contains("is a file, not a directory") && doctor.contains(way), "{doctor}");
    assert!(doctor.matches("PROBLEM").count() == 1 && !doctor.contains("trust.json"), "{doctor}");
}

#[test]
fn names_that_nothing_has_are_answered_with_the_nearest() {
    let house = House::new();
    house.write(CONFIG, &notes());
    assert_eq!(house.run(&["settings", "set", "mcp.tools.disabled", "[\"notes:x\"]"]).code, 0);
    for (arguments, near) in [
        (&["settings", "unset", "mcp.tools.disable"][..], "`mcp.tools.disabled`"),
        (&["settings", "get", "auto_run.mod"], "`auto_run.mode`"),
        (&["servers", "show", "ntoes"], "`notes`"),
        (&["servers", "disable", "ntoes"], "`notes`"),
        (&["servers", "reload", "ntoes"], "`notes`"),
        (&["servers", "remove", "ntoes"], "`notes`"),
        (&["stdio", "--server", "ntoes"], "`notes`"),
        (&["modes", "show", "codr"], "`code`"),
        (&["modes", "delete", "codr"], "`code`"),
        (&["modes", "suggest", "codr"], "`code`"),
        (&["roles", "show", "pmm"], "`pm`"),
        (&["tokens", "issue", "--role", "pya", "--user", "bob"], "`pa`"),
        (&["tokens", "issue", "--role", "pa", "--user", "bob", "--mode", "codr"], "`code`"),
    ] {
        says(&house, arguments, 2, &[&format!("did you mean {near}?")]);
    }
    says(&house, &["settings", "unset", "nope"], 2, &["`nope` is not set", "`toolwarden settings get`"]);
    says(&house, &["tokens", "issue", "--role", "worker"], 2, &["--task ID --job ID"]);
    says(&house, &["tokens", "issue", "--role", "pm"], 2, &["--user NAME"]);
}

#[test]
fn audit_says_where_a_filter_can_find_nothing() {
    let house = House::new();
    house.write(CONFIG, &notes());
    Server::start(&house).stop();
    says(&house, &["audit", "query", "--tool", "pay"], 2, &["`pay` is no SERVER:TOOL", "`*:pay`"]);
    let (server, tool) = (["audit", "query", "--server", "ntoes"], ["audit", "query", "--tool", "notes:raed_note"]);
    says(&house, &server, 0, &["no rows", "no record and no configured server", "did you mean `notes`?"]);
    says(&house, &tool, 0, &["no rows", "no record names `notes:raed_note`", "did you mean `notes:read_note`?"]);
    for known in [["--server", "notes"], ["--tool", "notes:delete_note"], ["--tool", "builtin:shell.run"]] {
        let ran = house.run(&["audit", "query", "--decision", "allow", known[0], known[1]]);
        assert!(ran.code == 0 && ran.err.is_empty(), "{known:?}: {}", ran.err);
    }
}

#[test]
fn an_entry_that_means_arguments_is_not_taken_for_a_tool() {
    let house = House::new();
    for entry in ["calc:add where a=1", "calc:add where {", "calc:add where"] {
        says(&house, &["allow", entry], 2, &["`calc:add where {\"/NAME\":", "approvals approve ID --scope narrowed"]);
    }
    assert_eq!(house.run(&["allow", r#"calc:add where {"/a":{"equals":1}}"#]).code, 0);
    assert_eq!(house.run(&["allow", "calc:find whereabouts"]).code, 0);
}

#[test]
fn a_definition_of_a_server_is_one_servers() {
    let house = House::new();
    house.write("space/slip.json", r#"{"comand": "x"}"#);
    house.write("space/whole.json", r#"{"mcpServers": {"u": {"command": "x"}}}"#);
    let add = |file| ["servers", "add", "u", "--from", file];
    says(&house, &add("slip.json"), 2, &["unknown key `comand`", "did you mean `command`?"]);
    says(&house, &add("whole.json"), 2, &["`mcpServers` holds several servers", "under the server's name"]);
}

#[test]
fn what_is_left_out_is_named() {
    let house = House::new();
    says(&house, &["serve", "--listen", "localhost:18799"], 2, &["127.0.0.1:18799"]);
    says(&house, &["policy", "rollback"], 2, &["--last", "`toolwarden policy history`"]);
    house.write(CONFIG, "[gateway]\nlisten = \"localhost:18799\"\n");
    says(&house, &["serve"], 2, &["127.0.0.1:18799"]);
}

#[test]
fn a_server_that_ends_at_its_start_says_how() {
    let house = House::new();
    let config = "[servers.ends]\ncommand = \"sh\"\nargs = [\"-c\", \"echo no key is set >&2; exit 3\"]\ncwd = \"/\"\n";
    house.write(CONFIG, config);
    let server = Server::start_with(&house, &[]);
    let answer = server.session_refused("/mcp/ends");
    assert!(answer.contains("status 3") && !answer.contains("no key is set"), "{answer}");
    let words = ["status 3", "started in /", "its last line on stderr: no key is set", "servers reload ends"];
    says(&house, &["servers", "show", "ends"], 0, &words);
    assert!(!house.run(&["servers", "show", "ends"]).out.contains("first client"));
    let listed = house.json(&["servers", "list"]);
    let detail = listed.pointer("/0/detail").and_then(Value::as_str).unwrap_or_default();
    assert!(detail.contains("no key is set"), "{listed}");
    server.stop();
}

#[test]
fn nothing_is_said_twice() {
    let house = House::new();
    house.write(CONFIG, &notes());
    let server = Server::start(&house);
    let log = || house.read("server.log").matches("the policy was read again").count();
    let disabled = house.run(&["tools", "disable", "notes:ad"]);
    assert_eq!(disabled.err.lines().filter(|line| line.contains("unknown_tool")).count(), 1, "{}", disabled.err);
    assert!(eventually(|| log() == 1), "{}", house.read("server.log"));
    house.write(WORKSPACE_FILE, r#"{"mcpAllowlist": ["a:b""#);
    let trusted = house.run(&["trust", "."]);
    assert_eq!(trusted.err.matches("unterminated").count(), 1, "{}", trusted.err);
    assert!(eventually(|| log() == 2), "{}", house.read("server.log"));
    assert_eq!(house.run(&["settings", "set", "my.own", "3"]).code, 0);
    // Longer than files are looked at.
    crate::approving::pause(std::time::Duration::from_millis(1200));
    assert_eq!(log(), 3, "{}", house.read("server.log"));
    let history = house.run(&["policy", "history"]).out;
    assert!(history.contains("workspace files are trusted") && !history.contains("trust.json"), "{history}");
    server.stop();
}

#[test]
fn stdio_names_the_variable_of_a_credential_that_is_not_good() {
    let house = House::new();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_toolwarden"))
        .arg("stdio")
        .current_dir(house.path("space"))
        .env_clear()
        .env("HOME", house.path("home"))
        .env("TOOLWARDEN_TOKEN", "not-one")
        .stdin(std::process::Stdio::null())
        .output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default();
    assert!(said.contains("not known here") && said.contains("TOOLWARDEN_TOKEN"), "{said}");
}

#[test]
fn the_page_of_held_calls_names_links_and_rights() {
    let house = House::new();
    let server = Server::start(&house);
    for page in ["/approve", "/approve/", "/approve/0123456789abcdef"] {
        assert!(
            server.page(page).contains("toolwarden approvals link ID --user NAME"),
            "{page}: {}",
            server.page(page)
        );
    }
    let called = json!({ "name": "welcome" });
    assert!(!server.call("read_note", &called).is_empty());
    server.stop();
}
