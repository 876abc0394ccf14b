//! Every key of every file: used, refused because it is not built, or informational (SELF-6). The rows come from the table
//! the readers themselves look keys up in.

use toolwarden_policy::PolicySet;
use toolwarden_sources::readers::known::{Section, Standing, Unless};
use toolwarden_sources::{Finding, Loaded, SourceKind, check_bytes};

use crate::home::{Home, Outcome};

/// A file of the section's kind that has this key, and what to read it as.
fn file_with(section: Section, key: &str, value: &str) -> (SourceKind, String) {
    let toml = |head: &str| (SourceKind::Config, format!("{head}\n\"{key}\" = {value}\n"));
    let inline =
        |head: &str, table: &str| (SourceKind::Config, format!("{head}\n{table} = {{ \"{key}\" = {value} }}\n"));
    let json = |kind: SourceKind, before: &str, after: &str| (kind, format!("{before}{{\"{key}\": {value}}}{after}"));
    match section {
        Section::Config => toml(""),
        Section::Gateway => toml("[gateway]"),
        Section::Tls => inline("[gateway]", "tls"),
        Section::Control => toml("[control]"),
        Section::Approve => toml("[control.approve.\"a:b\"]"),
        Section::Webhook => toml("[control.webhooks.w]"),
        Section::Store => toml("[store]"),
        Section::Audit => toml("[audit]"),
        Section::Redaction => toml("[audit.redaction]"),
        Section::Telemetry => toml("[telemetry]"),
        Section::Vault => toml("[vault]"),
        Section::AutoRun => toml("[auto_run]"),
        Section::Protections => toml("[auto_run.protections]"),
        Section::Sandbox => toml("[sandbox]"),
        Section::Classifier => toml("[classifier]"),
        Section::Features => toml("[features]"),
        Section::Rules => toml("[rules]"),
        Section::Screening => toml("[screening]"),
        Section::Pattern => (SourceKind::Config, format!("[screening]\npatterns = [{{ \"{key}\" = {value} }}]\n")),
        Section::Server => toml("[servers.s]"),
        Section::Tool => toml("[servers.s.tools.t]"),
        Section::Limits => toml("[gateway.limits]"),
        Section::Mode => toml("[modes.m]"),
        Section::ModeTool => (SourceKind::Config, format!("[modes.m]\nallowed_tools = [{{ \"{key}\" = {value} }}]\n")),
        Section::Role => toml("[roles.r]"),
        Section::AdminFile => toml("[admin]"),
        Section::AdminRecord => json(SourceKind::Admin, "", ""),
        Section::SandboxingControls => json(SourceKind::Admin, "{\"sandboxing_controls\": ", "}"),
        Section::Permissions => json(SourceKind::Permissions, "", ""),
        Section::Instructions => json(SourceKind::Permissions, "{\"autoRun\": ", "}"),
        Section::ModesFile => json(SourceKind::Modes, "", ""),
        Section::RooMode => (
            SourceKind::Modes,
            format!(
                "{{\"customModes\": [{{\"slug\": \"m\", \"name\": \"M\", \"extends\": \"ask\", \"{key}\": {value}}}]}}"
            )
            .replace("\"slug\": \"m\", ", if key == "slug" { "" } else { "\"slug\": \"m\", " })
            .replace("\"name\": \"M\", ", if key == "name" { "" } else { "\"name\": \"M\", " })
            .replace("\"extends\": \"ask\", ", if key == "extends" { "" } else { "\"extends\": \"ask\", " }),
        ),
        Section::RooRestrictions => json(
            SourceKind::Modes,
            "{\"customModes\": [{\"slug\": \"m\", \"name\": \"M\", \"groups\": [\"mcp\"], \"mcpRestrictions\": ",
            "}]}",
        ),
        Section::RooTool => json(
            SourceKind::Modes,
            "{\"customModes\": [{\"slug\": \"m\", \"name\": \"M\", \"groups\": [\"mcp\"], \"mcpRestrictions\": {\"allowedTools\": [",
            "]}}]}",
        ),
        Section::RooGroupOptions => json(
            SourceKind::Modes,
            "{\"customModes\": [{\"slug\": \"m\", \"name\": \"M\", \"groups\": [[\"edit\", ",
            "]]}]}",
        ),
        Section::ServersFile if key == "sandbox" => {
            (SourceKind::Servers, format!("{{\"{key}\": {value}, \"servers\": {{\"s\": {{\"command\": \"s\"}}}}}}"))
        }
        Section::ServersFile => json(SourceKind::Servers, "", ""),
        Section::ClientServer => json(SourceKind::Servers, "{\"mcpServers\": {\"s\": ", "}}"),
    }
}

fn findings(section: Section, key: &str, value: &str) -> Vec<Finding> {
    let (kind, text) = file_with(section, key, value);
    check_bytes("f", kind, text.as_bytes())
}

fn has(findings: &[Finding], code: &str) -> bool {
    findings.iter().any(|finding| finding.code == code)
}

/// A value that no key takes, so that a key which is read says so or ends unread.
const NOBODYS: &str = "[[{}]]";

#[test]
fn self_6_every_known_key_is_used_refused_or_informational() {
    for section in Section::ALL {
        for (key, standing) in section.rows() {
            let said = findings(section, key, NOBODYS);
            let what = format!("{section:?} {key}: {said:?}");
            assert!(!has(&said, "unknown_key") && !has(&said, "unread_key"), "{what}");
            match standing {
                // A value that cannot be meant is complained about: so somebody reads it.
                // It acts on every server of its file.
                Standing::Used if (section, *key) == (Section::ServersFile, "sandbox") => {
                    assert!(has(&said, "not_built"), "{what}");
                }
                Standing::Used => assert!(!said.is_empty() && !has(&said, "not_built"), "{what}"),
                Standing::NotBuilt(feature, _) => {
                    let refused: Vec<_> = said.iter().filter(|one| one.code == "not_built").collect();
                    assert_eq!(refused.len(), 1, "{what}");
                    assert!(refused.iter().all(|one| one.is_error() && one.suggestion.is_some()), "{what}");
                    let words = format!("{feature} is not built yet");
                    assert!(refused.iter().all(|one| one.message.contains(&words)), "{what}");
                }
                Standing::Informational(why) => {
                    let about = said.iter().filter(|one| one.message.contains(&format!("`{key}`"))).count();
                    assert!(about == 0 && why.len() > 20, "{what}");
                }
            }
        }
    }
}

#[test]
fn self_6_a_key_nobody_listed_is_unknown_in_every_section() {
    for section in Section::ALL {
        let said = findings(section, "zzqx_none", "1");
        let is_refused = has(&said, "unknown_key") || has(&said, "not_built");
        assert!(is_refused && !has(&said, "unread_key"), "{section:?}: {said:?}");
    }
}

#[test]
fn self_6_a_value_that_asks_for_nothing_may_stand() {
    for section in Section::ALL {
        for (key, standing) in section.rows() {
            let Standing::NotBuilt(_, unless) = standing else { continue };
            let (harmless, harmful) = match unless {
                Unless::Never => (None, vec!["true", "\"x\"", "{}", "[]"]),
                Unless::False => (Some("false".to_owned()), vec!["true", "\"x\"", "0"]),
                Unless::True => (Some("true".to_owned()), vec!["false", "\"true\""]),
                Unless::Empty => (Some("[]".to_owned()), vec!["[\"x\"]", "\"\"", "false"]),
                Unless::Word(word) => (Some(format!("\"{word}\"")), vec!["\"other\"", "true"]),
            };
            if let Some(value) = harmless {
                let said = findings(section, key, &value);
                assert!(!has(&said, "not_built"), "{section:?} {key} = {value}: {said:?}");
            }
            for value in harmful {
                let said = findings(section, key, value);
                assert!(has(&said, "not_built"), "{section:?} {key} = {value}: {said:?}");
            }
        }
    }
}

#[test]
fn self_6_what_is_not_built_stops_the_start_or_its_server_alone() -> Outcome {
    let home = Home::new()?;
    for text in ["[sandbox]\nrequired = true\n", "[identity.x]\nissuer = \"https://i.example\"\naudience = \"a\"\n"] {
        home.write("config/toolwarden.toml", text)?;
        let refused = home.load().err().map(|refusal| refusal.to_string()).unwrap_or_default();
        assert!(refused.contains("is not built yet") && refused.contains("toolwarden.toml:"), "{refused}");
    }
    home.write("config/toolwarden.toml", "")?;
    for (file, text) in [
        (".vscode/mcp.json", r#"{"servers": {"a": {"command": "a", "sandboxEnabled": true}, "b": {"command": "b"}}}"#),
        (
            ".vscode/mcp.json",
            r#"{"servers": {"a": {"command": "a", "sandbox": {"network": {}}}, "b": {"command": "b"}}}"#,
        ),
        (
            ".vscode/mcp.json",
            r#"{"sandbox": {"filesystem": {}}, "servers": {"a": {"command": "a"}, "b": {"command": "b", "sandboxEnabled": false}}}"#,
        ),
        (
            ".mcp.json",
            r#"{"mcpServers": {"a": {"url": "https://a.example", "oauth": {"clientId": "x"}}, "b": {"command": "b"}}}"#,
        ),
        (
            ".roo/mcp.json",
            r#"{"mcpServers": {"a": {"command": "a", "auth": {"CLIENT_ID": "x"}}, "b": {"command": "b"}}}"#,
        ),
        (
            ".cursor/mcp.json",
            r#"{"mcpServers": {"a": {"command": "a", "excludeTools": ["rm"]}, "b": {"command": "b"}}}"#,
        ),
        (
            ".cursor/mcp.json",
            r#"{"mcpServers": {"a": {"command": "a", "disabled_tools": ["rm"]}, "b": {"command": "b"}}}"#,
        ),
        (
            ".cursor/mcp.json",
            r#"{"mcpServers": {"a": {"command": "a", "disbledTools": ["rm"]}, "b": {"command": "b"}}}"#,
        ),
    ] {
        let path = home.write(&format!("work/{file}"), text)?;
        home.trust()?;
        let loaded = home.load()?;
        let on = |name: &str| loaded.input.servers.iter().any(|server| server.name == name && server.enabled);
        assert!(!on("a") && on("b"), "{text}: {:?}", loaded.findings);
        assert!(loaded.findings.iter().any(|one| one.code == "not_built" && one.is_error() && one.line > 0), "{text}");
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Keys that no table lists, with values by which their authors restrict a server.
const RESTRICTING: &[(&str, &str)] = &[
    ("denyTools", r#"["rm"]"#),
    ("deniedTools", "[]"),
    ("denied-tools", r#"["rm"]"#),
    ("trust", "false"),
    ("trust", "\"workspace\""),
    ("allowedDirectories", r#"["/srv"]"#),
    ("network", "false"),
    ("networkAccess", "\"none\""),
    ("readOnly", "true"),
    ("read_only", "true"),
    ("read-only", "true"),
    ("READONLY", "true"),
    ("toolFilter", "{}"),
    ("tool_allowlist", "[]"),
    ("onlyTools", r#"["a"]"#),
    ("requireApproval", "\"always\""),
    ("isolation", "\"strict\""),
    ("userRestrictions", "{}"),
    ("scopes", "[]"),
    ("accessPolicy", "{}"),
    ("permisions", "{}"),
    ("blockedDomains", "[]"),
    ("tools", r#"["read"]"#),
    ("tools", "[]"),
    ("alwaysAsk", "true"),
    ("autoDeny", "true"),
    ("alwaysPrompt", "[]"),
    ("maxCalls", "3"),
    ("max_calls_per_minute", "3"),
    ("rateLimit", "{}"),
    ("toolsets", r#"["issues"]"#),
    ("roots", r#"["/srv"]"#),
    ("workspaceRoots", "[]"),
    ("requiredRole", "\"admin\""),
    ("safeMode", "true"),
    ("hiddenTools", "[]"),
    ("tool_configuration", r#"{"enabled": false}"#),
    ("toolConfiguration", r#"{"allowed_tools": ["read"]}"#),
    ("tool_configuration", r#"{"enabled": true, "options": [{"denyTools": ["rm"]}]}"#),
    ("x-client", r#"{"a": {"b": {"readOnly": true}}}"#),
    ("settings", r#"{"tools": ["read"]}"#),
    ("available_tools", r#"["read"]"#),
    ("skipTools", r#"["rm"]"#),
    ("tool_names", "[]"),
    ("visible", "false"),
    ("expose", r#"["read"]"#),
    ("mute", r#"["rm"]"#),
    ("restricted", "true"),
    ("isActive", "false"),
    ("active", "false"),
    ("on", "\"no\""),
    ("off", "true"),
    ("paused", "1"),
    ("status", "\"disabled\""),
    ("state", "\"Off\""),
    ("visibility", "\"private\""),
    ("expires", "\"2020-01-01\""),
    ("pick", r#"["read"]"#),
];

#[test]
fn self_6_an_unknown_restricting_key_of_a_clients_file_turns_off_what_it_is_about() -> Outcome {
    let home = Home::new()?;
    let harmless = [
        ("isActive", "true"),
        ("off", "false"),
        ("status", "\"connected\""),
        ("color", "1"),
        ("homepage", "\"x\""),
        ("priority", "1"),
        ("tags", "[]"),
        ("tools", r#"["*"]"#),
        ("retries", "3"),
        ("startupMessage", "\"x\""),
        ("trust", "true"),
        ("autoApproveTools", "[]"),
        ("alwaysAllowReadOnly", "true"),
        ("tool_configuration", r#"{"enabled": true}"#),
        ("settings", r#"{"color": "red", "readOnly": false}"#),
        ("metadata", r#"{"authors": [{"name": "x"}], "trust": true}"#),
    ];
    for file in [".cursor/mcp.json", ".roo/mcp.json", ".mcp.json", ".vscode/mcp.json"] {
        let servers = if file.starts_with(".vscode") { "servers" } else { "mcpServers" };
        for (is_restricting, keys) in [(true, RESTRICTING), (false, &harmless[..])] {
            for (key, value) in keys {
                let of_server = format!(
                    r#"{{"{servers}": {{"a": {{"command": "a", "{key}": {value}}}, "b": {{"command": "b"}}}}}}"#
                );
                let of_file = format!(
                    r#"{{"{key}": {value}, "{servers}": {{"a": {{"command": "a"}}, "b": {{"command": "b"}}}}}}"#
                );
                for (text, is_b_off) in [(of_server, false), (of_file, is_restricting)] {
                    home.write(&format!("work/{file}"), &text)?;
                    home.trust()?;
                    let loaded = home.load()?;
                    let on =
                        |name: &str| loaded.input.servers.iter().any(|server| server.name == name && server.enabled);
                    assert_eq!(
                        (on("a"), on("b")),
                        (!is_restricting, !is_b_off),
                        "{file} {text}: {:?}",
                        loaded.findings
                    );
                    let code = if is_restricting { "not_built" } else { "unknown_key" };
                    let is_said = |one: &&Finding| one.code == code && one.line > 0;
                    assert!(loaded.findings.iter().find(is_said).is_some(), "{text}: {:?}", loaded.findings);
                }
            }
        }
        std::fs::remove_file(home.write(&format!("work/{file}"), "{}")?)?;
    }
    Ok(())
}

#[test]
fn self_6_keys_without_effect_on_how_a_server_is_reached_are_said() {
    for (section, key, value, launch) in [
        (Section::ClientServer, "env", r#"{"A": "b"}"#, r#""url": "https://a.example""#),
        (Section::ClientServer, "cwd", "\"/srv\"", r#""url": "https://a.example""#),
        (Section::ClientServer, "args", r#"["x"]"#, r#""url": "https://a.example""#),
        (Section::ClientServer, "headers", r#"{"A": "b"}"#, r#""command": "a""#),
    ] {
        let text = format!(r#"{{"mcpServers": {{"a": {{{launch}, "{key}": {value}}}}}}}"#);
        let read = toolwarden_sources::readers::mcp_json::read_bytes("mcp.json", text.as_bytes());
        assert!(has(&read.findings, "key_without_effect"), "{section:?} {text}: {:?}", read.findings);
    }
    for text in [
        "[servers.a]\nurl = \"https://a.example\"\nenv = { A = \"b\" }\n",
        "[servers.a]\nurl = \"https://a.example\"\ncwd = \"/srv\"\n",
        "[servers.a]\ncommand = \"a\"\nheaders = { A = \"b\" }\n",
    ] {
        let standing = toolwarden_sources::readers::config::Standing::Operator;
        let read = toolwarden_sources::readers::config::read_bytes("toolwarden.toml", standing, text.as_bytes());
        assert!(has(&read.findings, "key_without_effect"), "{text}: {:?}", read.findings);
    }
}

/// Whether a server is on, its variables, and what is said of its file.
type Given = (bool, Vec<(String, String)>, String);

#[test]
fn self_6_an_env_file_is_given_to_its_server_or_turns_it_off() -> Outcome {
    let home = Home::new()?;
    home.write("work/.env", "A=from-file\nexport B='two # words'\n")?;
    home.write("outside.env", "A=1\n")?;
    std::os::unix::fs::symlink(home.path("outside.env"), home.path("work/link.env"))?;
    home.write("work/broken.env", "A=1\nthis is hunter2\n")?;
    let server = |written: &str| {
        format!(
            r#"{{"servers": {{"a": {{"command": "a", "envFile": "{written}", "env": {{"A": "own"}}}}, "b": {{"command": "b"}}}}}}"#
        )
    };
    let read = |written: &str| -> Result<Given, Box<dyn std::error::Error>> {
        home.write("work/.vscode/mcp.json", server(written))?;
        home.trust()?;
        let loaded = home.load()?;
        let a = loaded.definitions.iter().find(|one| one.input.name == "a").ok_or("no server")?;
        let is_other_on = loaded.input.servers.iter().any(|one| one.name == "b" && one.enabled);
        assert!(is_other_on, "{written}");
        let env = a.connection.env.iter().map(|(name, value)| (name.clone(), value.reveal_to_upstream().to_owned()));
        let said = loaded.findings.iter().filter(|one| one.code == "env_file").map(ToString::to_string).collect();
        Ok((a.input.enabled, env.collect(), said))
    };
    for written in [".env", "./.env", "${workspaceFolder}/.env"] {
        let (is_on, env, said) = read(written)?;
        let expected = [("A", "own"), ("B", "two # words")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert!(is_on && said.is_empty(), "{written}: {said}");
        assert_eq!(env, expected, "{written}");
    }
    for written in [
        "none.env",
        "../outside.env",
        "link.env",
        "broken.env",
        "~/x.env",
        "/etc/hostname",
        "${userHome}/.env",
        "sub/../../outside.env",
        ".",
    ] {
        let (is_on, _, said) = read(written)?;
        assert!(!is_on && said.contains("is off") && said.contains("mcp.json:1:"), "{written}: {said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
    // Nobody trusted it: nothing of it is read.
    home.write("work/.vscode/mcp.json", server(".env").replace("\"b\"", "\"c\""))?;
    assert!(home.load()?.definitions.iter().all(|one| one.input.name != "c"));
    Ok(())
}

#[test]
fn self_6_options_of_a_group_restrict_or_refuse_the_mode() {
    for (groups, is_whole) in [
        (r#"[["edit", {"fileRegex": "\\.md$", "description": "d"}]]"#, true),
        (r#"[["mcp", {"description": "d"}]]"#, true),
        (r#"[["mcp", {"fileRegex": "x"}]]"#, false),
        (r#"[["command", {"fileRegex": "x"}]]"#, false),
        (r#"[["mcp", {"servers": ["a"]}]]"#, false),
        (r#"[["edit", {"allowedPaths": ["a"]}]]"#, false),
    ] {
        let text = format!(r#"{{"slug": "m", "name": "M", "groups": {groups}}}"#);
        let said = check_bytes("f", SourceKind::Modes, text.as_bytes());
        assert_eq!(said.is_empty(), is_whole, "{groups}: {said:?}");
    }
}

#[test]
fn self_6_share_is_enforced_or_refused() {
    for (value, code) in [
        ("\"principal\"", None),
        ("\"all\"", None),
        ("\"session\"", Some("not_built")),
        ("\"credential\"", Some("unknown_value")),
        ("\"everybody\"", Some("unknown_value")),
    ] {
        let text = format!("[servers.s]\ncommand = \"s\"\nshare = {value}\n");
        let said = check_bytes("f", SourceKind::Config, text.as_bytes());
        assert_eq!(said.first().map(|one| one.code), code, "{value}: {said:?}");
        let names_session = said.iter().any(|one| one.message.contains("`session`"));
        assert!(value != "\"credential\"" || names_session, "{said:?}");
    }
    let said = check_bytes("f", SourceKind::Config, b"[servers.s]\ncommand = \"s\"\nmay_ask = [\"elictation\"]\n");
    assert_eq!(said.first().map(|one| one.code), Some("unknown_value"), "{said:?}");
}

#[test]
fn self_6_a_pattern_among_disabled_tools_is_refused_or_turns_its_server_off() -> Outcome {
    for written in
        [r#""*""#, r#""he*""#, r#""up:held""#, r#""""#, r#""a\u202eb""#, r#"" a""#, r#""a ""#, r#""\u200ba""#]
    {
        let home = Home::new()?;
        let servers = format!(r#"{{"a": {{"command": "a", "disabledTools": [{written}]}}, "b": {{"command": "b"}}}}"#);
        home.write("work/.mcp.json", format!(r#"{{"mcpServers": {servers}}}"#))?;
        home.trust()?;
        let loaded = home.load()?;
        let is_off = |name: &str| loaded.definitions.iter().any(|one| one.input.name == name && one.faulty);
        assert!(is_off("a") && !is_off("b"), "{written}");
        home.write("config/toolwarden.toml", format!("[servers.a]\ncommand = \"a\"\ndisabled_tools = [{written}]\n"))?;
        assert!(home.load().is_err(), "{written}");
    }
    Ok(())
}

#[test]
fn self_6_an_empty_window_of_a_mode_is_refused() -> Outcome {
    for written in ["days = []", "hours = []"] {
        let home = Home::new()?;
        home.write("config/toolwarden.toml", format!("[modes.m]\nname = \"M\"\ngroups = [\"mcp\"]\n{written}\n"))?;
        let loaded = home.load();
        let findings: Vec<String> = loaded.iter().flat_map(|loaded| home.shown(&loaded.findings)).collect();
        assert!(loaded.is_err() || findings.iter().any(|one| one.contains("is empty")), "{written}: {findings:?}");
    }
    Ok(())
}

#[test]
fn self_6_a_restriction_that_nobody_could_have_meant_is_refused() -> Outcome {
    for written in [
        "[auto_run]\nask = [\"up:held \"]",
        "[auto_run]\nask = [\" up:held\"]",
        "[auto_run]\nask = [\"up: held\"]",
        "[auto_run]\nask = [\"up:held\\u200b\"]",
        "[auto_run]\nbrowser_servers = [\"browser \"]",
        "[auto_run]\nbrowser_servers = [\"brow*\"]",
        "[control]\nsecond_person = [\"up:held \"]",
        "[control.approve.\"up:held \"]\nreason = true",
        "[roles.pm]\ndisallow = [\"db.write \"]",
        "[roles.pm]\ndisallow = [\" up:db.*\"]",
        "[settings]\n\"mcp.tools.disabled\" = [\"web.fetch \"]",
        "[settings]\n\"mcp.tools.disabled\" = [\"web.*\"]",
        "[settings]\n\"mcp.tools.disabled\" = [\"up:held \"]",
        "[settings]\n\"mcp.tool. web.fetch.enabled\" = false",
        "[servers.up]\ncommand = \"a\"\ntools.\"held \" = { review = \"human\" }",
        "[settings]\n\"auto_run.mode\" = \"ask_every_time\"",
        "[settings]\n\"auto_run.ask\" = [\"up:held\"]",
        "[settings]\n\"auto_run.protections.mcp\" = true",
        "[settings]\n\"MCP.tools.disabled\" = [\"danger\"]",
        "[settings]\n\"mcp.server.rec.enabled\" = false",
        "[settings]\n\"mcp.servers.disabled\" = [\"rec\"]",
        "[settings]\n\"gateway.hold\" = \"wait\"",
        "[settings.gateway]\nhold = \"wait\"",
        "[settings]\n\"Servers.up.disabled_tools\" = [\"held\"]",
        "[settings]\nroles = [\"x\"]",
        "[gateway]\nmethods = [\"Tools/Call\"]",
        "[gateway]\nmethods = [\"*\"]",
        "[gateway]\nmethods = [\"resources/subscribe\"]",
        "[gateway]\nmethods = [\" tools/call\"]",
        "[control.webhooks.w]\nurl = \"https://h/\"\nuser = \"\"",
        "[control.webhooks.w]\nurl = \"https://h/\"\nuser = \" root\"",
    ] {
        let home = Home::new()?;
        home.write("config/toolwarden.toml", format!("{written}\n"))?;
        let is_refused = match home.load() {
            Err(_) => true,
            Ok(loaded) => PolicySet::compile(&loaded.input).is_err(),
        };
        assert!(is_refused, "{written}");
    }
    for written in [r#""allowedMcpServers": []"#, r#""disabled": true"#, r#""readOnly": true"#, r#""enabled": false"#] {
        let home = Home::new()?;
        let mode = format!(r#"{{"slug": "m", "name": "M", "groups": ["mcp"], {written}}}"#);
        home.write("work/.roomodes", format!(r#"{{"customModes": [{mode}]}}"#))?;
        home.trust()?;
        let loaded = home.load()?;
        let mode = loaded.input.base.modes.iter().find(|mode| mode.slug == "m");
        assert!(mode.is_none_or(|mode| !mode.faults.is_empty()), "{written}");
    }
    for list in ["disallowed_servers = [\"up \"]", "disallowed_tools = [\"up:held \"]"] {
        let home = Home::new()?;
        home.write("config/toolwarden.toml", format!("[modes.m]\nname = \"M\"\ngroups = [\"mcp\"]\n{list}\n"))?;
        let loaded = home.load();
        let is_off = |loaded: &Loaded| loaded.input.base.modes.iter().any(|mode| !mode.faults.is_empty());
        assert!(loaded.as_ref().map_or(true, is_off), "{list}");
    }
    Ok(())
}

#[test]
fn self_6_an_admin_record_says_whether_it_is_on() {
    let read = |text: &str| toolwarden_sources::readers::admin::read_bytes("admin.json", text.as_bytes());
    assert!(read(r#"{"disable_mcp_auto_run": true, "blocked": ["curl"]}"#).broken);
    let off = read(r#"{"enabled": false, "blocked": ["curl"]}"#);
    assert!(!off.broken && off.findings.iter().any(|finding| finding.code == "admin_off"));
    assert!(read(r#"{"enabled": true, "blocked": ["curl"]}"#).findings.is_empty());
    assert!(read("{}").findings.is_empty());
}
