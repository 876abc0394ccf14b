//! Settings that act, settings that are refused, and what the program says about both (SELF-6).

use std::process::{Command, Stdio};

use serde_json::json;

use crate::house::House;
use crate::server::{Server, eventually, exchange};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

#[test]
fn self_6_what_is_not_built_is_refused_by_every_command_that_reads_it() {
    for (config, key) in [
        ("[control]\napprove_with = \"passkey\"\n", "approve_with"),
        ("[control]\nlisten = \"127.0.0.1:9\"\n", "listen"),
        ("[sandbox]\nrequired = true\n", "required"),
        ("[servers.a]\ncommand = \"a\"\nsandbox = true\n", "sandbox"),
        ("[servers.a]\nurl = \"https://a.example\"\nauth = { CLIENT_ID = \"x\" }\n", "auth"),
        ("[gateway]\nbehind_proxy = true\n", "behind_proxy"),
        ("[audit]\nanchor = \"https://a.example\"\n", "anchor"),
        ("[features]\nmcp_oauth_scopes_enabled = false\n", "mcp_oauth_scopes_enabled"),
        ("[identity.x]\nissuer = \"https://i.example\"\n", "identity"),
    ] {
        let house = House::new();
        house.write(CONFIG, config);
        for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["explain", "a:b"], &["stdio"]] {
            let ran = house.run(arguments);
            assert_eq!(ran.code, 2, "{arguments:?} {config}{}", ran.err);
            assert!(ran.err.contains("not built yet") && ran.err.contains(key), "{arguments:?}: {}", ran.err);
            assert!(ran.err.contains("toolwarden.toml:"), "{}", ran.err);
        }
        for command in ["lint", "doctor"] {
            let ran = house.run(&[command]);
            assert!(
                ran.code == 1 && ran.out.contains("not built yet") && ran.out.contains(key),
                "{command}: {}",
                ran.out
            );
        }
    }
}

#[test]
fn self_6_admin_controls_that_are_not_built_are_refused_when_they_are_set() {
    let house = House::new();
    let ran = house.run(&["admin", "set", "enabled=true", "sandboxing_controls={\"required\":true}"]);
    assert!(ran.code == 2 && ran.err.contains("not built yet"), "{}{}", ran.out, ran.err);
    let ran = house.run(&[
        "admin",
        "set",
        "enabled=true",
        "sandboxing_controls={\"required\":false,\"denied_domains\":[\"evil.example\"]}",
    ]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(house.decision(&["explain", "--fetch", "https://evil.example/"]).starts_with("deny"));
}

#[test]
fn settings_say_where_they_are_set() {
    let house = House::new();
    house.write(CONFIG, "[auto_run]\nask = [\"a:b\"]\nprotections = { mcp = true }\n[servers.a]\ncommand = \"a\"\n");
    let row = |key: &str| {
        let listed = house.run(&["settings", "get"]).out;
        listed.lines().find(|line| line.starts_with(key)).map(str::to_owned).unwrap_or_default()
    };
    assert!(row("auto_run.mode").ends_with("default"), "{}", row("auto_run.mode"));
    assert!(row("auto_run.protections.delete").ends_with("default"));
    assert!(row("auto_run.protections.mcp").ends_with("toolwarden.toml"), "{}", row("auto_run.protections.mcp"));
    house.write(CONFIG, "[auto_run]\nmode = \"use_allowlist\"\n");
    assert!(row("auto_run.mode").ends_with("toolwarden.toml"), "{}", row("auto_run.mode"));
}

#[test]
fn a_setting_that_nothing_reads_yet_is_remarked_on() {
    let house = House::new();
    let set = house.run(&["settings", "set", "deploys.allowed", "true"]);
    assert_eq!(set.code, 0, "{}", set.err);
    assert!(set.err.contains("nothing reads the setting `deploys.allowed` yet"), "{}", set.err);
    let tool = "[servers.x]\ncommand = \"x\"\n[servers.x.tools.\"y\"]\nrequires_setting = \"deploys.allowed\"\n";
    house.write(CONFIG, tool);
    let set = house.run(&["settings", "set", "deploys.allowed", "false"]);
    assert_eq!((set.code, set.err.as_str()), (0, ""));
}

#[test]
fn mistyped_settings_are_refused_with_the_nearest() {
    let house = House::new();
    for (arguments, hint) in [
        (&["settings", "set", "auto_run.mod", "ask_every_time"][..], "auto_run.mode"),
        (&["settings", "set", "auto_run.autoreview", "true"], "auto_run.auto_review"),
        (&["settings", "set", "auto_run.protections.delet", "true"], "auto_run.protections.delete"),
        (&["settings", "set", "mcp.tools.disable", "[\"x\"]"], "mcp.tools.disabled"),
        (&["settings", "set", "auto_run.auto_review", "maybe"], "true or false"),
        (&["settings", "set", "mcp.tools.disabled", "7"], "a list of names"),
        (&["settings", "set", "auto_run.protections.delete", "7"], "true or false"),
        (&["settings", "set", "gateway.listen", "x"], "nothing reads"),
        (&["settings", "set", "mcp.everything", "true"], "nothing reads"),
        (&["settings", "get", "auto_run.mod"], "is not set"),
    ] {
        let ran = house.run(arguments);
        assert!(ran.code == 2 && ran.err.contains(hint), "{arguments:?}: {} {}{}", ran.code, ran.out, ran.err);
    }
    house.write(CONFIG, "[servers.a]\ncommand = \"a\"\ntools.t = { requires_setting = \"team.may_deploy\" }\n");
    assert_eq!(house.run(&["settings", "set", "team.may_deploy", "true"]).code, 0);
    assert_eq!(house.run(&["settings", "unset", "team.may_deploy"]).code, 0);
}

#[test]
fn allow_8_protections_are_each_users_own_over_the_config() {
    let house = House::new();
    house.write(CONFIG, "[auto_run]\nmode = \"run_everything\"\n");
    let delete = &["explain", "--shell", "rm -rf build"][..];
    assert!(house.decision(delete).starts_with("hold"));
    let off = house.run(&["settings", "set", "auto_run.protections.delete", "false"]);
    assert!(off.code == 0 && format!("{}{}", off.out, off.err).contains("delete protection"), "{}{}", off.out, off.err);
    assert!(house.decision(delete).starts_with("allow"), "{}", house.decision(delete));
    // Another user is not concerned.
    assert!(house.decision(&["explain", "--shell", "rm -rf build", "--user", "somebody-else"]).starts_with("hold"));
    let rows = house.run(&["settings", "get", "auto_run.protections.delete"]);
    assert_eq!((rows.code, rows.out.as_str()), (0, "false\n"));
    // An admin switches one on, whatever a user says; and cannot switch one off.
    let admin =
        house.run(&["admin", "set", "enabled=true", "delete_file_protection=true", "enable_run_everything=true"]);
    assert_eq!(admin.code, 0, "{}{}", admin.out, admin.err);
    assert!(house.decision(delete).starts_with("hold delete_protection"), "{}", house.decision(delete));
    assert_eq!(house.run(&["settings", "unset", "auto_run.protections.delete"]).code, 0);
    assert_eq!(house.run(&["admin", "set", "enabled=true", "delete_file_protection=false"]).code, 0);
    assert!(house.decision(delete).starts_with("hold delete_protection"), "{}", house.decision(delete));
    assert_eq!(house.run(&["settings", "set", "auto_run.protections.mcp", "true"]).code, 0);
    assert!(house.decision(&["explain", "a:b"]).starts_with("hold"));
}

#[test]
fn policy_diff_shows_what_changed_alone() {
    let house = House::new();
    assert_eq!(house.run(&["allow", "one:tool"]).code, 0);
    assert_eq!(house.run(&["settings", "set", "auto_run.mode", "ask_every_time"]).code, 0);
    let diff = house.run(&["policy", "diff", "--json"]);
    assert!(diff.out.contains("ask_every_time") && !diff.out.contains("one:tool"), "{}", diff.out);
}

#[test]
fn servers_have_plain_names() {
    let house = House::new();
    for name in ["bad name", "a/b", "a:b", "../x", "", ".hidden", "a\u{202e}b", "ä"] {
        let ran = house.run(&["servers", "add", name, "--url", "https://a.example/mcp"]);
        assert_eq!(ran.code, 2, "{name:?}: {}{}", ran.out, ran.err);
    }
    assert_eq!(house.run(&["servers", "add", "good-name_1.x", "--url", "https://a.example/mcp"]).code, 0);
}

#[test]
fn lint_finds_what_serve_refuses() {
    for (config, hint) in [
        ("[gateway]\nlisten = \"0.0.0.0:8665\"\n", "can be reached by others"),
        ("[gateway]\nlisten = \"here\"\n", "is no address"),
        (
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[control.webhooks.w]\nurl = \"https://w.example/\"\n",
            "[control.webhooks.w]",
        ),
    ] {
        let house = House::new();
        house.write(CONFIG, config);
        assert_eq!(house.run(&["serve"]).code, 2, "{config}");
        let lint = house.run(&["lint"]);
        assert!(lint.code == 1 && lint.out.contains(hint), "{config}: {}", lint.out);
        assert!(house.run(&["doctor"]).out.contains(hint), "{config}");
        house.write("space/toolwarden.toml", config);
        let alone = house.run(&["--config", "/dev/null", "lint", "toolwarden.toml"]);
        assert!(alone.code == 1 && alone.out.contains(hint), "{config}: {}", alone.out);
    }
    let house = House::new();
    house.write(CONFIG, "[servers.a]\ncommand = \"npx -y foo\"\n[servers.b]\ncommand = \"/opt/My App/bin\"\n");
    let lint = house.run(&["lint"]).out;
    assert!(lint.contains("args [\"-y\", \"foo\"]") && lint.matches("whole command line").count() == 1, "{lint}");
}

#[test]
fn gate_15_arguments_are_recorded_redacted_where_that_is_asked_for() {
    let house = House::new();
    let write = json!({ "name": "plan", "text": "pin is hunter2x, card-1234" });
    house.write(CONFIG, "[auto_run]\nmode = \"run_everything\"\n");
    let server = Server::start(&house);
    server.call("write_note", &write);
    server.stop();
    assert!(!house.run(&["audit", "query", "--json"]).out.contains("plan"), "arguments are off by default");
    house.write(
        CONFIG,
        "[auto_run]\nmode = \"run_everything\"\nask = [\"notes:list_notes\"]\n[audit]\narguments = true\nredaction = [\"pin\", \"card-[0-9]+\"]\n",
    );
    let server = Server::start(&house);
    server.call("write_note", &write);
    server.call("list_notes", &json!({ "password": "hunter2x" }));
    server.call("nobody_has_this", &json!({ "name": "unknown", "password": "hunter2x" }));
    let rows = house.run(&["audit", "query", "--json"]);
    assert!(rows.out.contains("\"name\": \"plan\"") && rows.out.contains("[redacted]"), "{}", rows.out);
    assert!(!rows.out.contains("hunter2x") && !rows.out.contains("card-1234"), "{}", rows.out);
    let table = house.run(&["audit", "query"]).out;
    assert!(table.contains("\"name\":\"plan\"") && !table.contains("hunter2x"), "{table}");
    assert!(table.contains("\"name\":\"unknown\""), "{table}");
    server.stop();
    let journal = house.path("home/.local/share/toolwarden/journal/serve-1");
    let files = std::fs::read_dir(journal).into_iter().flatten().flatten();
    let text: String = files.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default()).collect();
    assert!(text.contains("[redacted]") && !text.contains("hunter2x") && !text.contains("card-1234"));
    assert_eq!(house.run(&["audit", "verify"]).code, 0);
    for broken in [
        "[audit]\nredaction = [\"(\"]\n",
        "[audit]\nredaction = { patterns = [\"a{9999999}\"] }\n",
        "[audit]\nredaction = 7\n",
    ] {
        house.write(CONFIG, broken);
        assert_eq!(house.run(&["serve"]).code, 2, "{broken}");
    }
}

#[test]
fn gate_15_old_records_go_and_verify_still_passes() {
    let house = House::new();
    house
        .write(CONFIG, "[auto_run]\nmode = \"run_everything\"\n[audit]\nretention = \"2s\"\ncheckpoints = \"200ms\"\n");
    let server = Server::start(&house);
    server.call("write_note", &json!({ "name": "old", "text": "t" }));
    let rows = |tool: &str| house.run(&["audit", "query", "--json", "--tool", tool]).out;
    let pruned = house.path("home/.local/share/toolwarden/journal/serve-1/pruned");
    let is_pruned = || (0..6).any(|_| eventually(|| pruned.exists()));
    assert!(is_pruned(), "{}", house.read("server.log"));
    assert!(eventually(|| !rows("notes:write_note").contains("write_note")), "{}", rows("notes:write_note"));
    let verify = house.run(&["audit", "verify"]);
    assert_eq!(verify.code, 0, "{}{}", verify.out, verify.err);
    server.stop();
    assert_eq!(house.run(&["audit", "verify"]).code, 0);
    house.write(CONFIG, "[audit]\nretention = \"0s\"\n");
    assert_eq!(house.run(&["serve"]).code, 2);
}

#[test]
fn reload_reads_the_files_again() {
    let house = House::new();
    assert_eq!(house.run(&["reload"]).code, 1, "no server runs");
    house.write(CONFIG, "[auto_run]\nmode = \"run_everything\"\n");
    let server = Server::start(&house);
    let ran = house.run(&["reload"]);
    assert!(ran.code == 0 && ran.out.contains("read again"), "{}{}", ran.out, ran.err);
    house.write(CONFIG, "[auto_run]\nmode = \"no such mode\"\n");
    let ran = house.run(&["reload"]);
    assert!(ran.code == 1 && ran.err.contains("stays in force"), "{}{}", ran.out, ran.err);
    server.stop();
}

#[test]
fn a_terminal_that_is_closed_ends_the_server() {
    let house = House::new();
    let program = env!("CARGO_BIN_EXE_toolwarden");
    let line = format!("exec {program} serve --demo --listen 127.0.0.1:0 > ../server.out 2> ../server.log");
    let terminal = Command::new("script")
        .args(["-qfc", &line, "/dev/null"])
        .current_dir(house.path("space"))
        .env_clear()
        .env("HOME", house.path("home"))
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    assert!(terminal.is_ok(), "`script` of util-linux is needed: {terminal:?}");
    let Ok(mut terminal) = terminal else { unreachable!("asserted") };
    assert!(eventually(|| house.read("server.out").contains("http://")), "{}", house.read("server.log"));
    assert!(terminal.kill().is_ok() && terminal.wait().is_ok());
    assert!(eventually(|| house.read("server.log").contains("the terminal is gone")), "{}", house.read("server.log"));
    let out = house.read("server.out");
    let address =
        out.split_once("http://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(address, _)| address);
    assert!(eventually(|| std::net::TcpStream::connect(address).is_err()), "{address}");
}

#[test]
fn api_errors_are_problems_and_the_front_page_says_where_to_go() {
    let house = House::new();
    let server = Server::start(&house);
    let get = |path: &str, token: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n{token}connection: close\r\n\r\n", server.address());
        exchange(server.connect(), &request)
    };
    let issued = house.json(&["tokens", "issue", "--person", "--right", "viewer"]);
    let token = format!(
        "authorization: Bearer {}\r\n",
        issued.get("token").and_then(serde_json::Value::as_str).unwrap_or_default()
    );
    for (answer, status, code) in [
        (get("/api/v1/servers", ""), "401", "unauthorized"),
        (get("/api/v1/tokens/list", &token), "403", "forbidden"),
        (get("/api/v1/servers/show?name=none", &token), "404", "not_found"),
        (get("/api/v1/settings?nothing=1", &token), "4", "bad_input"),
        (get("/api/v1/nothing", &token), "404", "not_found"),
    ] {
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(answer.to_lowercase().contains("content-type: application/problem+json"), "{answer}");
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let start = body.find('{').unwrap_or_default();
        let end = body.rfind('}').map_or(0, |end| end + 1);
        let problem: serde_json::Value =
            serde_json::from_str(body.get(start..end).unwrap_or_default()).unwrap_or_default();
        let text = |pointer: &str| problem.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default();
        assert_eq!(text("/code"), code, "{answer}");
        let number = problem.get("status").map(ToString::to_string).unwrap_or_default();
        assert!(number.starts_with(status), "{answer}");
        assert!(["/type", "/title", "/detail"].iter().all(|member| !text(member).is_empty()), "{answer}");
        assert_eq!(text("/error/code"), code, "the earlier form stays: {answer}");
    }
    for (path, words) in [("/", "/mcp/SERVER"), ("/approve", "approvals list"), ("/approve/", "approvals list")] {
        let page = get(path, "");
        assert!(
            page.starts_with("HTTP/1.1 200") && page.contains(words) && page.contains("text/plain"),
            "{path}: {page}"
        );
        assert!(!page.contains("notes"), "nothing of this installation is told: {page}");
    }
    server.stop();
}
