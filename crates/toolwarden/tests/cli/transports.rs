//! WORK-4: `explain` and every MCP transport answer the same call of the same caller alike, with the workspace that is
//! bound there.

use std::io::Write;
use std::process::{Command, ExitStatus, Stdio};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::house::House;
use crate::server::{Server, eventually, exchange};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

/// Two workspaces with files of their own, both trusted; a server of the operator's config.
fn house() -> House {
    let house = House::new();
    let program = env!("CARGO_BIN_EXE_toolwarden");
    let server = format!(
        "[auto_run]\nmode = \"use_allowlist\"\nask = [\"notes:list_notes\"]\n\
         [servers.notes]\ncommand = \"{program}\"\nargs = [\"demo-server\"]\n\
         tools.read_note.scope = \"both\"\ntools.write_note.scope = \"pm\"\n\
         [roles.pm]\nallow = [\"notes:read_note\", \"notes:write_note\"]\n\
         [modes.look]\nname = \"Look\"\ngroups = [\"mcp\"]\nallowed_tools = [\"notes:read_note\"]\n"
    );
    house.write(CONFIG, &server);
    for (space, allowed) in [("space", "notes:write_note"), ("other", "notes:read_note")] {
        house.write(&format!("{space}/.cursor/permissions.json"), &json!({ "mcpAllowlist": [allowed] }).to_string());
        house.write(&format!("{space}/.roomodes"), "customModes: []\n");
        let root = house.path(space);
        assert_eq!(house.run(&["trust", &root.to_string_lossy()]).code, 0);
    }
    house
}

/// A tool and its arguments: names of protected files in many spellings, among everyday texts.
fn call(house: &House) -> impl Strategy<Value = (&'static str, Value)> + use<> {
    let (space, other) = (house.path("space"), house.path("other"));
    let mut texts: Vec<String> = [
        "hello",
        "welcome",
        "src/main.rs",
        ".roomodes",
        "./.roomodes",
        "a/../.roomodes",
        ".cursor/permissions.json",
        "~/.cursor/permissions.json",
        "~/.config/toolwarden/toolwarden.toml",
        ".",
        "",
        "..",
        "$HOME",
        "rm -rf x",
        "toolwarden allow x:y",
        "../other/.roomodes",
    ]
    .map(str::to_owned)
    .into();
    for root in [&space, &other] {
        texts.extend(["", "/", "/src", "/.roomodes", "/.cursor"].map(|rest| format!("{}{rest}", root.display())));
    }
    let text = || proptest::sample::select([texts.clone(), vec!["hello".to_owned(); texts.len()]].concat());
    let tools = proptest::sample::select(vec![
        ("read_note", vec!["name"]),
        ("write_note", vec!["name", "text"]),
        ("delete_note", vec!["name"]),
        ("list_notes", vec![]),
    ]);
    let extra = proptest::option::weighted(0.15, proptest::sample::select(vec!["name", "text", "more"]));
    (tools, text(), text(), extra, proptest::bool::weighted(0.1)).prop_map(|((tool, keys), one, other, extra, bare)| {
        let keys = keys.into_iter().filter(|_| !bare).chain(extra);
        let pairs = keys.zip([one, other].into_iter().cycle());
        (tool, Value::Object(pairs.map(|(key, text)| (key.to_owned(), text.into())).collect()))
    })
}

fn calls(house: &House, number: usize) -> Vec<(&'static str, Value)> {
    let mut runner = TestRunner::deterministic();
    let strategy = call(house);
    (0..number).filter_map(|_| strategy.new_tree(&mut runner).ok().map(|tree| tree.current())).collect()
}

/// Decision, stage and reason of an object that has them.
fn answered(row: &Value) -> String {
    let field = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or("-").to_owned();
    format!("{} {} {}", field("decision"), field("stage"), field("reason"))
}

/// What the record says of the calls, in the order they were made.
fn recorded(house: &House, number: usize) -> Vec<String> {
    let rows = house.json(&["audit", "query", "--limit", "10000"]);
    let rows = rows.as_array().cloned().unwrap_or_default();
    let is_call = |row: &&Value| {
        row.get("method").and_then(Value::as_str) == Some("tools/call")
            && row.get("decision").is_some_and(Value::is_string)
    };
    let mut found: Vec<String> = rows.iter().filter(is_call).take(number).map(answered).collect();
    found.reverse();
    found
}

fn explained(house: &House, calls: &[(&'static str, Value)], more: &[&str]) -> Vec<String> {
    let ask = |(tool, arguments): &(&'static str, Value)| {
        let (target, text) = (format!("notes:{tool}"), arguments.to_string());
        let mut words = vec!["explain", &target, "--args", &text];
        words.extend(more);
        answered(&house.json(&words))
    };
    calls.iter().map(ask).collect()
}

/// Makes the calls on a pipe, in a workspace.
fn piped(house: &House, workspace: &str, token: Option<&str>, calls: &[(&'static str, Value)]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolwarden"));
    command.args(["stdio", "--server", "notes", "--workspace", &house.path(workspace).to_string_lossy()]);
    command.current_dir(house.path("space")).env_clear().env("HOME", house.path("home")).env("PATH", "/usr/bin:/bin");
    command.envs(token.map(|token| ("TOOLWARDEN_TOKEN", token)));
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut started) = started else { unreachable!("the program starts") };
    let mut lines = vec![
        json!({ "jsonrpc": "2.0", "id": "open", "method": "initialize", "params": { "protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
    ];
    let call = |(id, (tool, arguments)): (usize, &(&str, Value))| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
    lines.extend(calls.iter().enumerate().map(call));
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let _ = started.stdin.take().map(|mut input| input.write_all(text.as_bytes()));
    let Ok(ended) = started.wait_with_output() else { unreachable!("it ends") };
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

fn compare(calls: &[(&'static str, Value)], explained: &[String], recorded: &[String], by: &str) {
    assert_eq!(explained.len(), recorded.len(), "{by}");
    for ((call, explained), recorded) in calls.iter().zip(explained).zip(recorded) {
        assert_eq!(explained, recorded, "{by}: {call:?}");
    }
    // All three decisions were met, so the comparison says something.
    for decision in ["allow", "hold", "deny"] {
        assert!(recorded.iter().any(|answer| answer.starts_with(decision)), "{by}: no {decision}");
    }
}

#[test]
fn work_4_explain_and_the_local_persons_transports_answer_alike() {
    let house = house();
    let calls = calls(&house, 40);
    let server = Server::start_with(&house, &[]);
    server.tools();
    for (tool, arguments) in &calls {
        server.call(tool, arguments);
    }
    let expected = explained(&house, &calls, &[]);
    compare(&calls, &expected, &recorded(&house, calls.len()), "HTTP");
    server.stop();
    // One after the other, in another process: the record is in the order they were asked.
    for (workspace, more) in [("space", vec![]), ("other", vec!["--workspace", "../other"])] {
        for call in &calls {
            piped(&house, workspace, None, std::slice::from_ref(call));
        }
        let expected = explained(&house, &calls, &more);
        compare(&calls, &expected, &recorded(&house, calls.len()), workspace);
    }
}

#[test]
fn work_4_explain_as_a_token_answers_like_the_token_and_its_workspace() {
    let house = house();
    let other = house.path("other").to_string_lossy().into_owned();
    let calls = calls(&house, 40);
    let issued = house.json(&["tokens", "issue", "--role", "pm", "--user", &whoami(), "--workspace", &other]);
    let text = |name: &str| issued.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (id, token) = (text("id"), text("token"));
    let server = Server::start_with(&house, &[]);
    let list = server.request("tools/list", None, &json!({}));
    let shown = format!("Authorization: Bearer {token}\r\nContent-Type:");
    exchange(server.connect(), &list.replacen("Content-Type:", &shown, 1));
    for (tool, arguments) in &calls {
        server.call_as(&token, tool, arguments);
    }
    let expected = explained(&house, &calls, &["--as", &id]);
    compare(&calls, &expected, &recorded(&house, calls.len()), "HTTP with a token");
    server.stop();
    // The pipe's own workspace does not count beside the token's.
    for call in &calls {
        piped(&house, "space", Some(&token), std::slice::from_ref(call));
    }
    compare(&calls, &expected, &recorded(&house, calls.len()), "a pipe with a token");
}

fn whoami() -> String {
    let output = Command::new("id").arg("-un").output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

#[test]
fn self_1_relative_files_of_a_trusted_workspace_are_held_at_transports_and_its_root_is_not() {
    let house = house();
    house.write("space/toolwarden.toml", "[rules]\nfiles = [\"rules/*.cedar\"]\n");
    house.write("space/rules/x.cedar", "forbid(principal, action, resource) when { context.door == \"never\" };\n");
    house.write("home/.cursor/permissions.json", "{\"mcpAllowlist\": [\"notes:*\"]}");
    let config = house.read(CONFIG).replace("ask = [\"notes:list_notes\"]\n", "");
    house.write("space/toolwarden.toml", &format!("{config}[rules]\nfiles = [\"rules/*.cedar\"]\n"));
    assert_eq!(house.run(&["trust", "."]).code, 0);
    let server = Server::start_with(&house, &[]);
    server.tools();
    let root = house.path("space").to_string_lossy().into_owned();
    for (text, held) in [
        ("toolwarden.toml", true),
        ("rules/x.cedar", true),
        ("./rules/../rules/x.cedar", true),
        (root.as_str(), false),
        ("src/main.rs", false),
    ] {
        let said = server.call("write_note", &json!({ "name": "n", "text": text }));
        let explained = house.decision(&[
            "explain",
            "notes:write_note",
            "--args",
            &json!({ "name": "n", "text": text }).to_string(),
        ]);
        let expected = if held { "hold self_protection" } else { "allow allowlist_match" };
        assert_eq!(explained, expected, "{text}");
        assert_eq!(
            recorded(&house, 1),
            [explained.replacen(' ', if held { " mandatory_hold " } else { " auto_run " }, 1)],
            "{text}: {said}"
        );
    }
}

#[test]
fn allow_11_a_flat_name_that_several_tools_fit_is_denied() {
    let house = House::new();
    house.write(
        CONFIG,
        "[servers.my]\ncommand = \"x\"\ntools.server_a.scope = \"pm\"\n\
         [servers.my_server]\ncommand = \"y\"\ntools.a.scope = \"pm\"\ntools.b.scope = \"pm\"\n",
    );
    let denied = house.json(&["explain", "mcp_my_server_a"]);
    assert_eq!(answered(&denied), "deny names name_ambiguous");
    let detail = denied.get("detail").and_then(Value::as_str).unwrap_or_default();
    assert!(detail.contains("my:server_a") && detail.contains("my_server:a"), "{detail}");
    assert_eq!(house.decision(&["explain", "mcp__my_server__a"]), "hold not_in_allowlist");
    assert_eq!(house.decision(&["explain", "mcp_MY_SERVER_B"]), "hold not_in_allowlist");
    assert_eq!(house.run(&["explain", "plain_name"]).code, 2);
}

#[test]
fn explain_without_arguments_checks_no_schema_and_says_so() {
    let house = house();
    let server = Server::start_with(&house, &[]);
    server.tools();
    let open = house.json(&["explain", "notes:write_note"]);
    assert_eq!(answered(&open), "allow auto_run allowlist_match");
    let said = "arguments not given, schema not checked";
    assert!(open.to_string().contains(said) && house.run(&["explain", "notes:write_note"]).out.contains(said));
    // With arguments, even none, they are checked.
    assert_eq!(house.decision(&["explain", "notes:write_note", "--args", "{}"]), "deny schema_violation");
    assert!(!house.json(&["explain", "notes:write_note", "--args", "{}"]).to_string().contains(said));
}

#[test]
fn allow_4_a_whole_server_that_may_run_is_not_said_to_be_held() {
    let house = house();
    let space = house.path("elsewhere").to_string_lossy().into_owned();
    assert!(std::fs::create_dir_all(&space).is_ok());
    let server = Server::start_with(&house, &[]);
    server.tools();
    for entry in ["notes:*", "*:read_note", "*:*"] {
        let added = house.run(&["allow", entry, "--workspace", &space]);
        assert!(added.code == 0 && !added.out.contains("but such a call"), "{entry}: {}{}", added.out, added.err);
    }
}

/// Making a file of one's own would end every stored entry.
#[test]
fn allow_4_an_add_where_a_workspace_file_defines_the_list_changes_nothing() {
    let house = house();
    let elsewhere = house.path("elsewhere").to_string_lossy().into_owned();
    assert!(std::fs::create_dir_all(&elsewhere).is_ok());
    assert_eq!(house.run(&["allow", "notes:delete_note", "--workspace", &elsewhere]).code, 0);
    let refused = house.run(&["allow", "x:y"]);
    assert!(refused.code == 2 && refused.err.contains("nothing was changed"), "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("toolwarden trust ~~/space"), "{}", refused.err);
    assert!(!house.path("home/.cursor/permissions.json").exists());
    let still = house.decision(&["explain", "notes:delete_note", "--workspace", &elsewhere]);
    assert_eq!(still, "allow allowlist_match");
}

/// MODE-5: where a mode leaves nothing, the opening and the list say so; elsewhere they do not.
#[test]
fn mode_5_nothing_left_is_said_at_the_transports() {
    let house = house();
    let config = house.read(CONFIG);
    house.write(CONFIG, &format!("{config}[modes.bare]\nname = \"Bare\"\ngroups = [\"mcp\"]\nallowed_servers = []\n[modes.none]\nname = \"None\"\ngroups = [\"mcp\"]\nallowed_tools = []\n"));
    let server = Server::start_with(&house, &[]);
    server.tools();
    let said = "No MCP servers or tools are available to you here.";
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
    for (mode, nothing) in [("bare", true), ("none", true), ("look", false), ("code", false)] {
        let opened = server.post(&format!("/mcp?mode={mode}"), &hello.to_string());
        assert!(opened.contains("serverInfo"), "{opened}");
        assert_eq!(opened.contains(said), nothing, "{mode}: {opened}");
        for path in ["/mcp", "/mcp/notes"].into_iter().filter(|path| mode != "bare" || *path == "/mcp") {
            let list = server.request("tools/list", None, &json!({}));
            let listed = exchange(server.connect(), &list.replacen("/mcp/notes ", &format!("{path}?mode={mode} "), 1));
            assert_eq!(listed.contains(said), nothing, "{mode} {path}: {listed}");
            assert_eq!(listed.contains("read_note"), !nothing, "{mode} {path}: {listed}");
        }
        let discover = server.request("server/discover", None, &json!({}));
        let discovered =
            exchange(server.connect(), &discover.replacen("/mcp/notes ", &format!("/mcp?mode={mode} "), 1));
        assert_eq!(discovered.contains(said), nothing, "{mode}: {discovered}");
    }
}

/// MODE-6: a server says at its start, and when files change, what `lint` finds.
#[test]
fn mode_6_findings_are_shown_by_serve_at_start_and_at_reload() {
    let house = house();
    let config = house.read(CONFIG);
    let twice = "[modes.twice]\nname = \"Twice\"\ngroups = [\"mcp\"]\nallowed_servers = [\"notes\"]\ndisallowed_servers = [\"notes\"]\n";
    let open = "[modes.open]\nname = \"Open\"\ngroups = [\"mcp\"]\ndisallowed_servers = [\"ghost\"]\n";
    house.write(CONFIG, &format!("{config}{twice}{open}"));
    let server = Server::start_with(&house, &[]);
    let log = house.read("server.log");
    let line = config.lines().count();
    // Both places of the conflict, the unknown name, the unsafe shape.
    for part in [
        format!("toolwarden.toml:{}", line + 4),
        format!("toolwarden.toml:{}", line + 5),
        "unknown server `ghost`".to_owned(),
        "permits everything else".to_owned(),
    ] {
        assert!(log.contains(&part), "{part}: {log}");
    }
    let later = twice.replace("modes.twice", "modes.later");
    house.write(CONFIG, &format!("{config}{twice}{open}{later}"));
    server.signal("-HUP");
    assert!(eventually(|| house.read("server.log").contains("is in force")), "{}", house.read("server.log"));
    server.stop();
    let log = house.read("server.log");
    assert!(log.contains("mode `later` is refused"), "{log}");
    // What was said before is not said again.
    assert_eq!(log.matches("unknown server `ghost`").count(), 1, "{log}");
}

/// PERM-1 changes what tokens may do: the first start that finds such tokens says so, and no other.
#[test]
fn perm_1_the_first_start_says_what_changes_for_tokens() {
    let house = house();
    let issued = house.run(&["tokens", "issue", "--role", "pm", "--user", &whoami()]);
    assert_eq!(issued.code, 0, "{}", issued.err);
    let words = "permissions.json now counts for every token issued to";
    Server::start_with(&house, &[]).stop();
    assert!(!house.read("server.log").contains(words), "nothing changed for a store of this version");
    // As it was before the version that brought the change.
    let database = house.path("home/.local/share/toolwarden/toolwarden.sqlite");
    let earlier = "DELETE FROM _sqlx_migrations WHERE version = 12; DELETE FROM upgrade_notices";
    let ran = Command::new("sqlite3").arg(&database).arg(earlier).status();
    assert!(ran.as_ref().is_ok_and(ExitStatus::success), "sqlite3 is needed (tests/peers/install): {ran:?}");
    for expected in [true, false] {
        Server::start_with(&house, &[]).stop();
        assert_eq!(house.read("server.log").contains(words), expected, "{}", house.read("server.log"));
        assert!(house.run(&["doctor"]).out.contains(words), "doctor repeats it for a week");
    }
}
