//! `explain`: decisions, exit codes, context, catalogs, and what is refused as input.

use crate::house::{House, PERMISSIONS};

#[test]
fn seed_004_through_the_program() {
    let house = House::new();
    house.write("home/.cursor/permissions.json", PERMISSIONS);
    insta::assert_snapshot!("explain_allow", house.shown(&["explain", "github:create_issue"]));
    insta::assert_snapshot!("explain_hold", house.shown(&["explain", "github:create_isue"]));
    insta::assert_snapshot!(
        "explain_shell",
        house.shown(&["explain", "--shell", "git status && npm publish > /etc/x"])
    );
    for (arguments, expected) in [
        (&["explain", "linear:anything"][..], "allow allowlist_match"),
        (&["explain", "--shell", "npm install --save-dev foo"], "allow allowlist_match"),
        (&["explain", "--shell", "npm publish"], "hold not_in_allowlist"),
        (&["explain", "--shell", "rm -rf dist"], "hold delete_protection"),
        (&["explain", "--shell", "toolwarden allow x:y"], "hold self_protection"),
        (&["explain", "--fetch", "https://example.com"], "hold fetch_review"),
        (&["explain", "builtin:shell.run", "--args", r#"{"command":"git status"}"#], "allow allowlist_match"),
        (&["explain", "builtin:web.fetch", "--args", r#"{"url":"https://example.com"}"#], "hold fetch_review"),
        (&["explain", "mcp__linear__list"], "allow allowlist_match"),
        (&["explain", "linear:resources/read"], "allow allowlist_match"),
        (&["explain", "github:resources/read"], "hold not_in_allowlist"),
        (&["explain", "a:b:c"], "hold invalid_name"),
        (&["explain", "github:create_issue", "--user", "somebody-else"], "hold not_in_allowlist"),
    ] {
        assert_eq!(house.decision(arguments), expected, "{arguments:?}");
    }
}

/// SELF-1 and SHELL-3 through the program: links and repositories are looked up on the disk.
#[test]
fn self_1_explain_follows_links_under_every_mode() {
    let house = House::new();
    house.write("home/.cursor/permissions.json", r#"{"terminalAllowlist": ["git", "cat", "echo", "cp"]}"#);
    house.write("work/notes.txt", "notes");
    house.write("work/evil/HEAD", "ref: refs/heads/main").write("work/evil/config", "[core]\nfsmonitor = evil\n");
    house.write("work/evil/objects/x", "").write("work/evil/refs/x", "");
    let links = [("home/.cursor/permissions.json", "work/link"), ("work/evil", "work/sub")];
    for (target, link) in links {
        assert!(std::os::unix::fs::symlink(house.path(target), house.path(link)).is_ok());
    }
    let workspace = house.path("work").display().to_string();
    let decision = |line: &str| house.decision(&["explain", "--workspace", &workspace, "--shell", line]);
    for (line, expected) in [
        ("cp notes.txt copy.txt", "allow allowlist_match"),
        ("echo x > notes.txt", "allow allowlist_match"),
        ("git status", "allow allowlist_match"),
        ("echo x > link", "hold self_protection"),
        ("cp notes.txt link", "hold self_protection"),
        ("git -C evil status", "hold not_in_allowlist"),
        ("git -C sub status", "hold not_in_allowlist"),
        ("cp notes.txt .git/config", "hold not_in_allowlist"),
    ] {
        assert_eq!(decision(line), expected, "{line}");
    }
    house.write("home/.config/toolwarden/toolwarden.toml", "[auto_run]\nmode = \"run_everything\"\n");
    assert_eq!(decision("echo x > link"), "hold self_protection");
}

const CONFIG: &str = r#"
[auto_run]
mode = "run_everything"
ask = ["gw:db.drop"]

[servers.gw]
command = "gateway-tools"
tools."db.drop" = { review = "human" }
tools."deploy.run" = { scope = "both", task_scoped = ["task_id"], requires_setting = "deploy.on" }

[servers.secret]
url = "https://secret.example/mcp"
default_enabled = false

[modes.ops]
name = "Ops"
groups = ["mcp"]
allowed_servers = ["secret", "gw"]
days = ["mon", "tue", "wed", "thu", "fri"]
hours = "09:00-17:00"
time_zone = "Europe/Berlin"

[roles.auditor]
scope = "pm"
allow = ["db.read"]
explain = true

[settings]
"mcp.tools.disabled" = ["web.search"]
"#;

#[test]
fn a_config_with_modes_roles_and_settings() {
    let house = House::new();
    house.write("gw.toml", CONFIG);
    let config = house.path("gw.toml").to_string_lossy().into_owned();
    let judge = |arguments: &[&str]| {
        let mut all = vec!["--config", &config, "explain"];
        all.extend(arguments);
        house.decision(&all)
    };
    for (arguments, expected) in [
        (&["gw:anything"][..], "allow run_everything"),
        (&["gw:db.drop"], "hold mandatory_ask"),
        (&["gw:web.search"], "deny tool_disabled"),
        (&["secret:x"], "deny mode_server_opt_in"),
        (&["secret:x", "--mode", "ops", "--time", "2026-11-13T12:00:00Z"], "allow run_everything"),
        (&["secret:x", "--mode", "ops", "--time", "2026-11-14T12:00:00Z"], "deny mode_window"),
        (&["gw:db.read", "--role", "auditor", "--user", "ada"], "allow run_everything"),
        (&["gw:db.write", "--role", "auditor", "--user", "ada"], "deny role_not_allowed"),
        (&["gw:db.read", "--role", "worker", "--task", "T", "--job", "J"], "deny role_disallowed"),
        (&["gw:db.read", "--role", "pm"], "deny context_missing"),
        (&["gw:deploy.run"], "deny setting_off"),
        (
            &[
                "gw:artifact.get",
                "--role",
                "sandbox",
                "--user",
                "u",
                "--task",
                "T",
                "--job",
                "J",
                "--args",
                r#"{"task_id":"T"}"#,
            ],
            "allow run_everything",
        ),
        (
            &["gw:api.call", "--role", "worker", "--user", "u", "--task", "T", "--job", "J", "--task-tool", "api.call"],
            "allow run_everything",
        ),
        (&["gw:db.read", "--role", "nobody", "--user", "ada"], "deny role_unknown"),
    ] {
        assert_eq!(judge(arguments), expected, "{arguments:?}");
    }
    let ran =
        house.run(&["--config", &config, "explain", "secret:x", "--mode", "ops", "--time", "2026-11-13T12:00:00Z"]);
    assert!(ran.out.contains("until     2026-11-13T16:00:00Z"), "{}", ran.out);
}

#[test]
fn mode_5_a_person_reads_the_restriction() {
    let house = House::new();
    house.write("c.toml", "[modes.tight]\nname = \"Tight\"\ngroups = [\"mcp\"]\nallowed_servers = [\"docs\"]\n[servers.docs]\ncommand = \"d\"\n[servers.web]\ncommand = \"w\"\n");
    let ran =
        house.run(&["--config", &house.path("c.toml").to_string_lossy(), "explain", "web:get", "--mode", "tight"]);
    assert!(
        ran.out.contains("Mode restriction: Tool \"get\" is not allowed in tight mode (server: web, tool: get)."),
        "{}",
        ran.out
    );
    assert_eq!(ran.code, 3);
}

#[test]
fn a_catalog_makes_tools_known() {
    let house = House::new();
    house.write("c.toml", "[auto_run]\nmode = \"run_everything\"\n[servers.gh]\ncommand = \"gh\"\n");
    house.write("space/gh.json", r#"{"tools":[{"name":"issue","inputSchema":{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}}]}"#);
    let config = house.path("c.toml").to_string_lossy().into_owned();
    let explain = |extra: &[&str]| {
        let mut all = vec!["--config", &config, "explain", "--catalog", "gh.json", "gh:issue"];
        all.extend(extra);
        house.decision(&all)
    };
    assert_eq!(explain(&["--args", r#"{"title":"x"}"#]), "allow run_everything");
    assert_eq!(explain(&["--args", r#"{"titel":"x"}"#]), "deny schema_violation");
    // Nobody chose arguments yet.
    assert_eq!(explain(&[]), "allow run_everything");
    assert_eq!(explain(&["--args", "{}"]), "deny schema_violation");
    let unknown = house.json(&["--config", &config, "explain", "gh:issue"]);
    assert_eq!(unknown.get("unknown"), Some(&true.into()));
    let known =
        house.json(&["--config", &config, "explain", "--catalog", "gh.json", "gh:issue", "--args", r#"{"title":"x"}"#]);
    assert_eq!(known.get("unknown"), Some(&false.into()));
    for (written, meant) in [("gh:isue", "gh:issue"), ("hg:issue", "gh:issue")] {
        let all = ["--config", &config, "explain", "--catalog", "gh.json", written];
        assert_eq!(house.json(&all).get("did_you_mean"), Some(&meant.into()), "{written}");
        let said = house.run(&all).out;
        assert!(said.contains("no known server lists this tool"), "{said}");
        assert!(said.contains(&format!("did you mean {meant}?")), "{said}");
    }
}

#[test]
fn bad_input_exits_2_and_says_what_to_do() {
    let house = House::new();
    house.write("bad.toml", "[auto_run]\nmod = \"yolo\"\n");
    let bad = house.path("bad.toml").to_string_lossy().into_owned();
    let texts: Vec<String> = [
        &["explain", "no-colon"][..],
        &["explain", "a:b", "--args", "[1]"],
        &["explain", "a:b", "--args", "{\"a\":1,\"a\":2}"],
        &["explain", "a:b", "--as", "tok_1"],
        &["--config", &bad, "explain", "a:b"],
        &["--config", "/nowhere.toml", "explain", "a:b"],
        &["explain", "a:b", "--catalog", "missing.json"],
    ]
    .iter()
    .map(|arguments| {
        assert_eq!(house.run(arguments).code, 2, "{arguments:?}");
        house.shown(arguments).replace(&bad, "BAD")
    })
    .collect();
    insta::assert_snapshot!("explain_bad_input", texts.join("\n"));
}

#[test]
fn nothing_configured_holds_and_denies_nothing_by_accident() {
    let house = House::new();
    assert_eq!(house.decision(&["explain", "any:thing"]), "hold not_in_allowlist");
    assert_eq!(house.decision(&["explain", "--shell", "ls"]), "hold not_in_allowlist");
    assert_eq!(house.decision(&["explain", "any:thing", "--role", "pm", "--user", "ada"]), "deny role_not_allowed");
    assert_eq!(house.decision(&["explain", "any:db.read", "--role", "pm", "--user", "ada"]), "hold not_in_allowlist");
}

#[test]
fn rules_of_ones_own() {
    let house = House::new();
    house.write("c.toml", "[auto_run]\nmode = \"run_everything\"\n[rules]\nfiles = [\"rules/*.cedar\"]\n");
    house.write("rules/team.cedar", "@id(\"no-etc\")\nforbid (principal, action, resource) when {\n  context.args.hasTag(\"/path\") && context.args.getTag(\"/path\") like \"/etc/*\"\n};\n@id(\"ask-ops\") @hold(\"ops looks first\")\nforbid (principal, action, resource in Mcp::Server::\"prod\");\n");
    let config = house.path("c.toml").to_string_lossy().into_owned();
    let json = house.json(&["--config", &config, "explain", "files:read", "--args", r#"{"path":"/etc/passwd"}"#]);
    assert_eq!(json.get("reason"), Some(&"rule_forbid".into()));
    assert_eq!(json.pointer("/rule/text"), Some(&"no-etc".into()));
    let source = json.pointer("/rule/source").and_then(|source| source.as_str()).unwrap_or_default();
    assert!(source.ends_with("team.cedar:1"), "{json}");
    assert_eq!(
        house.decision(&["--config", &config, "explain", "files:read", "--args", r#"{"path":"/srv"}"#]),
        "allow run_everything"
    );
    assert_eq!(house.decision(&["--config", &config, "explain", "prod:x"]), "hold rule_hold");
    house.write("c.toml", "[rules]\nshipped = false\n");
    assert_eq!(house.decision(&["--config", &config, "explain", "prod:x"]), "deny rule_no_permit");
}

#[test]
fn the_exit_code_survives_a_reader_who_goes_away() {
    use std::process::{Command, Stdio};
    let house = House::new();
    for arguments in [&["explain", "any:thing"][..], &["explain", "any:thing", "--json"]] {
        let child = Command::new(env!("CARGO_BIN_EXE_toolwarden"))
            .args(arguments)
            .current_dir(house.path("space"))
            .env("HOME", house.path("home"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let code = child.and_then(|mut child| {
            drop(child.stdout.take());
            child.wait()
        });
        assert_eq!(code.ok().and_then(|status| status.code()), Some(4), "{arguments:?}");
    }
}

#[test]
fn perm_3_whoever_is_held_reads_that_a_file_is_broken() {
    let house = House::new();
    house.write("home/.cursor/permissions.json", "{\"mcpAllowlist\": \"github:*\"}");
    let ran = house.run(&["explain", "github:x"]);
    assert!(ran.code == 4 && ran.err.contains("permissions.json:1:18: error"), "{}", ran.err);
    house.write("home/.cursor/permissions.json", "{\"mcpAllowlist\": [\"oops\"]}");
    assert!(house.run(&["explain", "github:x"]).err.contains("Invalid MCP allowlist entry: oops"));
}

#[test]
fn empty_ids_and_missing_workspaces_are_refused() {
    let house = House::new();
    for arguments in [
        &["explain", "a:b", "--role", "pm", "--user", ""][..],
        &["explain", "a:b", "--task", ""],
        &["explain", "a:b", "--workspace", "nowhere"],
        &["allow", "a:b", "--user", ""],
    ] {
        assert_eq!(house.run(arguments).code, 2, "{arguments:?}");
    }
}

#[test]
fn entries_for_an_agents_user_name_that_user() {
    let house = House::new();
    let ran = house.run(&["explain", "gw:db.read", "--role", "pm", "--user", "ada"]);
    assert!(ran.out.contains("toolwarden allow --user ada gw:db.read"), "{}", ran.out);
    let ran = house.run(&["explain", "--shell", "sudo ls"]);
    assert!(ran.out.contains("no entry of your own would let this through"), "{}", ran.out);
}

#[test]
fn gate_9_a_misspelt_switch_is_refused() {
    let house = House::new();
    house.write("c.toml", "[settings]\n\"mcp.tool.x.enabld\" = false\n");
    let ran = house.run(&["--config", &house.path("c.toml").to_string_lossy(), "explain", "a:x"]);
    assert!(ran.code == 2 && ran.err.contains("mcp.tool.x.enabld"), "{}", ran.err);
}
