//! Files as clients really write them are read without a remark, and mean what their clients mean.

use std::path::Path;
use std::time::Duration;

use toolwarden_core::{Layer, ToolIdentity};
use toolwarden_policy::input::{AutoRunMode, Launch, PolicyInput, Scope};
use toolwarden_sources::Transport;
use toolwarden_sources::readers::config::{self, Standing};
use toolwarden_sources::readers::{catalog, mcp_json, permissions, roomodes};

use crate::home::{Home, Outcome};

#[test]
fn perm_1_a_permissions_file_with_comments() {
    let text = br#"{
  // from the reference
  "mcpAllowlist": ["github:create_issue", "linear:*",], /* trailing comma */
  "terminalAllowlist": ["git", "npm:install*", "ls"],
  "autoRun": {
    "allow_instructions": ["Read-only inspections of ./dist are fine."],
    "block_instructions": ["Always pause delete operations."]
  }
}"#;
    let reading = permissions::read_bytes("p", Layer::UserFile, text);
    assert!(!reading.broken && reading.findings.is_empty(), "{:?}", reading.findings);
    let entries: Vec<_> = reading.value.mcp_allowlist.into_iter().flatten().collect();
    let places: Vec<_> =
        entries.iter().map(|entry| (entry.value.as_str(), entry.origin.line, entry.origin.column)).collect();
    assert_eq!(places, [("github:create_issue", 3, 20), ("linear:*", 3, 43)]);
    assert_eq!(reading.value.terminal_allowlist.map(|list| list.len()), Some(3));
    assert_eq!(reading.value.block_instructions.map(|list| list.len()), Some(1));
}

#[test]
fn perm_2_an_empty_list_defines_its_key() {
    let reading = permissions::read_bytes("p", Layer::UserFile, br#"{"mcpAllowlist": []}"#);
    assert_eq!(reading.value.mcp_allowlist.map(|list| list.len()), Some(0));
    assert!(reading.value.terminal_allowlist.is_none());
}

#[test]
fn allow_3_invalid_entries_are_kept_and_warned_about() {
    let reading = permissions::read_bytes("p", Layer::UserFile, br#"{"mcpAllowlist": ["git*:x", "a:b"]}"#);
    assert!(!reading.broken);
    assert_eq!(reading.value.mcp_allowlist.map(|list| list.len()), Some(2));
    let shown: Vec<_> = reading.findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "p:1:19: warning: Invalid MCP allowlist entry: git*:x (help: server: the name contains a reserved character (`:` or `*`))"
        ]
    );
}

#[test]
fn mode_7_server_files_of_cursor_roo_vs_code_and_claude() {
    for text in [
        r#"{"mcpServers": {"git": {"command": "mcp-server-git", "args": [], "alwaysAllow": ["git_status"], "disabledTools": ["git_reset"], "disabled": false, "timeout": 60}}}"#,
        r#"{"mcpServers": {"git": {"type": "stdio", "command": "mcp-server-git", "env": {"TOKEN": "${env:TOKEN}"}, "autoApprove": []}}}"#,
        r#"{"inputs": [{"type": "promptString", "id": "k", "password": true}], "servers": {"git": {"type": "stdio", "command": "mcp-server-git", "envFile": ".env", "dev": {"watch": "x"}}}}"#,
        r#"{"mcpServers": {"git": {"type": "http", "url": "https://git.example/mcp", "headers": {"Authorization": "Bearer ${secret:git}"}}}}"#,
    ] {
        let reading = mcp_json::read_bytes("mcp.json", text.as_bytes());
        assert!(!reading.broken && reading.findings.is_empty(), "{:?}", reading.findings);
        assert_eq!(reading.value.len(), 1);
        assert!(reading.value.iter().all(|server| server.input.enabled && !server.faulty));
    }
}

#[test]
fn the_transport_of_a_server_is_what_its_file_says() {
    let url = r#""url": "https://a.example/mcp""#;
    for (rest, expected) in [
        (url.to_owned(), None),
        (format!(r#""type": "sse", {url}"#), Some(Transport::Sse)),
        (format!(r#"{url}, "transport": "sse""#), Some(Transport::Sse)),
        (format!(r#""type": "http", {url}"#), Some(Transport::Http)),
        (format!(r#""type": "streamable-http", {url}"#), Some(Transport::Http)),
        (format!(r#""type": "streamableHttp", "transport": "streamable_http", {url}"#), Some(Transport::Http)),
        (r#""httpUrl": "https://a.example/mcp""#.to_owned(), Some(Transport::Http)),
        (r#""command": "a""#.to_owned(), None),
        (r#""command": "a", "type": "stdio""#.to_owned(), Some(Transport::Stdio)),
    ] {
        for key in ["servers", "mcpServers"] {
            let text = format!(r#"{{"{key}": {{"a": {{{rest}}}}}}}"#);
            let reading = mcp_json::read_bytes("mcp.json", text.as_bytes());
            assert!(reading.findings.is_empty(), "{rest}: {:?}", reading.findings);
            let said: Vec<_> = reading.value.iter().map(|server| server.connection.transport).collect();
            assert_eq!(said, [expected], "{rest}");
        }
    }
    for (rest, expected) in [
        ("url = 'https://a.example/'", None),
        ("url = 'https://a.example/'\ntype = 'sse'", Some(Transport::Sse)),
        ("transport = 'sse'\nurl = 'https://a.example/'", Some(Transport::Sse)),
        ("url = 'unix:///run/a.sock'\ntype = 'http'", Some(Transport::Http)),
        ("command = 'a'\ntype = 'stdio'", Some(Transport::Stdio)),
    ] {
        let text = format!("[servers.a]\n{rest}\n");
        let reading = config::read_bytes("toolwarden.toml", Standing::Operator, text.as_bytes());
        assert!(reading.findings.is_empty(), "{rest}: {:?}", reading.findings);
        let said: Vec<_> = reading.value.servers.iter().map(|server| server.connection.transport).collect();
        assert_eq!(said, [expected], "{rest}");
    }
}

#[test]
fn vault_no_secret_of_a_server_file_is_printed() {
    let text = br#"{"mcpServers": {"a": {"url": "https://a.example", "headers": {"X": "hunter2"}, "envFile": "hunter.env", "auth": {"CLIENT_ID": "i", "CLIENT_SECRET": "hunter2"}}, "b": {"command": "b", "env": {"K": "hunter2"}}}}"#;
    let reading = mcp_json::read_bytes("mcp.json", text);
    assert_eq!(reading.value.len(), 2);
    assert!(!format!("{reading:?}").contains("hunter2"));
}

#[test]
fn mode_1_a_roomodes_file_in_yaml_and_in_json() {
    let yaml = r#"customModes:
  - slug: docs-writer
    name: 📝 Docs
    roleDefinition: >-
      You write documentation.
    whenToUse: For docs
    groups:
      - read
      - - edit
        - fileRegex: \.md$
          description: Markdown only
      - mcp
    customInstructions: |-
      Be brief.
    source: project
    mcpRestrictions:
      allowedServers: [weather-server, docs-server]
      disallowedServers: [admin-server]
      allowedTools:
        - serverName: weather-server
          toolName: get_forecast
      disallowedTools:
        - {serverName: weather-server, toolName: admin_function}
    days: [mon, Tuesday]
    hours: ["09:00-12:00", "22:00-02:00"]
    timeZone: Europe/Berlin
    conditions: {project: "web-*"}
"#;
    let reading = roomodes::read_bytes(".roomodes", Layer::WorkspaceFile, yaml.as_bytes());
    assert!(!reading.broken && reading.findings.is_empty(), "{:?}", reading.findings);
    let Some(mode) = reading.value.first() else { unreachable!("the file has a mode") };
    assert_eq!(mode.groups.as_deref(), Some(["read", "edit", "mcp"].map(String::from).as_slice()));
    assert_eq!(mode.allowed_servers.as_ref().map(Vec::len), Some(2));
    let tool = mode.disallowed_tools.first().map(|tool| tool.value.clone());
    assert_eq!(tool, Some(ToolIdentity::new("weather-server", "admin_function")));
    let window = mode.window.as_ref();
    assert_eq!(window.map(|window| window.days.clone()), Some(vec!["mon".to_owned(), "tue".to_owned()]));
    assert_eq!(window.map(|window| window.time_zone.as_str()), Some("Europe/Berlin"));
    assert_eq!(mode.conditions.get("project").map(Vec::len), Some(1));

    // The example of seed 001: one mode as an object of its own.
    let json = br#"{
  "slug": "secure-mode", "name": "Secure Mode", "groups": ["read", "mcp"],
  "mcpRestrictions": {"allowedServers": ["docs-server"], "allowedTools": [{ "serverName": "docs-server", "toolName": "search_docs" }]}
}"#;
    for text in [json.to_vec(), [b"[".as_slice(), json, b"]"].concat()] {
        let reading = roomodes::read_bytes(".roomodes", Layer::WorkspaceFile, &text);
        assert!(!reading.broken && reading.findings.is_empty(), "{:?}", reading.findings);
        assert_eq!(reading.value.first().map(|mode| mode.slug.as_str()), Some("secure-mode"));
    }
}

#[test]
fn mode_6_a_fault_refuses_its_own_mode_alone() {
    let yaml = "customModes:\n  - {slug: good, name: G, groups: [mcp]}\n  - {slug: bad, name: B, groups: [mcp], mcpRestrictions: {allowedServers: 7}}\n";
    let reading = roomodes::read_bytes(".roomodes", Layer::WorkspaceFile, yaml.as_bytes());
    assert!(!reading.broken);
    let faults: Vec<_> = reading.value.iter().map(|mode| (mode.slug.as_str(), mode.faults.len())).collect();
    assert_eq!(faults, [("good", 0), ("bad", 1)]);
}

const WHOLE_CONFIG: &str = include_str!("../whole.toml");

#[test]
fn a_config_with_every_section_is_read() -> Outcome {
    let reading = config::read_bytes("toolwarden.toml", Standing::Operator, WHOLE_CONFIG.as_bytes());
    assert!(!reading.broken && reading.findings.is_empty(), "{:?}", reading.findings);
    let config = reading.value;
    assert_eq!(config.gateway.hold.as_deref(), Some("return"));
    assert_eq!(config.store.max_stale, Some(Duration::from_secs(30)));
    assert_eq!(config.auto_run.mode, AutoRunMode::RunEverything);
    assert!(config.auto_run.mcp_protection && !config.auto_run.delete_protection && !config.auto_run.mcp_allowlists);
    assert!(!config.auto_run.sandbox_resolves && !config.rules.shipped);
    assert_eq!(config.audit.redaction.names, ["password"]);
    assert_eq!(config.auto_run.default_mode.map(|mode| mode.value).as_deref(), Some("docs"));
    let classifier = config.classifier.ok_or("no classifier")?;
    let prices = config::Prices { max_cost: 2_500_000_000, input: 150_000_000, output: 1_000_000_000 };
    assert_eq!((classifier.kind.as_str(), classifier.prices), ("openai", Some(prices)));
    assert_eq!((classifier.at_once, classifier.budget, classifier.shadow), (Some(4), Some(100), true));
    assert_eq!((classifier.allow_instructions.len(), classifier.block_instructions.len()), (1, 1));
    let of_workspace = config::read_bytes("toolwarden.toml", Standing::Workspace, WHOLE_CONFIG.as_bytes());
    assert!(of_workspace.value.classifier.is_none(), "a workspace has no say in who allows");
    assert!(of_workspace.findings.iter().any(|found| found.message.contains("`[classifier]` counts only")));
    let settings: Vec<_> = config.settings.keys().map(String::as_str).collect();
    assert_eq!(
        settings,
        [
            "agents.project_manager.sandbox.allow_add_to_allowed_images",
            "mcp.tool.web.fetch.enabled",
            "mcp.tools.disabled"
        ]
    );
    let names: Vec<_> = config.servers.iter().map(|server| server.input.name.as_str()).collect();
    assert_eq!(names, ["github", "remote", "builtin", "custom-user-tools"]);
    let github = config.servers.first().map(|server| &server.input).ok_or("no server")?;
    assert_eq!(
        github.launch,
        Launch::Command { command: "npx".to_owned(), arguments: vec!["-y".to_owned(), "server-github".to_owned()] }
    );
    let tool = github.tools.get("create_issue").ok_or("no tool")?;
    assert_eq!((tool.scope, tool.human_review, tool.limits.depth), (Some(Scope::Both), true, Some(8)));
    assert_eq!(tool.task_scoped, ["task_id"]);
    assert_eq!(github.tools.get("merge").map(|tool| tool.task_scoped.len()), Some(2));
    let mode = config.modes.first().ok_or("no mode")?;
    assert_eq!(mode.allowed_tools.as_ref().map(Vec::len), Some(2));
    assert!(mode.faults.is_empty() && mode.auto_review == Some(true));
    let role = config.roles.first().ok_or("no role")?;
    let condition = role.conditions.first().ok_or("no condition")?;
    assert_eq!(condition.arguments.get("table").map(Vec::as_slice), Some(["findings".to_owned()].as_slice()));
    Ok(())
}

#[test]
fn a_misspelt_key_is_refused_with_the_nearest_one() {
    let reading = config::read_bytes("t.toml", Standing::Operator, b"[auto_run]\ndefualt_mode = \"x\"\n");
    assert!(reading.broken);
    let shown: Vec<_> = reading.findings.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["t.toml:2:1: error: unknown key `defualt_mode` (help: did you mean `default_mode`?)"]);
}

#[test]
fn core_6_a_catalog_gives_a_configured_server_its_tools() -> Outcome {
    let home = Home::new()?;
    home.write("config/toolwarden.toml", "[servers.git]\ncommand = \"git-server\"\n")?;
    let answer = r#"{"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "log", "description": "d", "inputSchema": {"type": "object"}}]}}"#;
    home.write("work/tools.json", answer)?;
    let tools = |input: &PolicyInput| input.servers.first().and_then(|server| server.catalog.as_ref().map(Vec::len));
    for argument in ["git=tools.json", "tools.json"] {
        let mut input = home.load()?.input;
        catalog::apply(argument, &home.path("work"), &mut input)?;
        assert_eq!(tools(&input), Some(1), "{argument}");
    }
    home.write("work/map.json", format!(r#"{{"git": {answer}, "other": {{"tools": []}}}}"#))?;
    let mut input = home.load()?.input;
    catalog::apply("map.json", &home.path("work"), &mut input)?;
    assert_eq!(tools(&input), Some(1));
    assert!(catalog::apply("none.json", Path::new("/"), &mut input).is_err());
    Ok(())
}
