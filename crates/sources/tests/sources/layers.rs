//! Which file counts over which (MODE-7, PERM-2, PERM-3, INTERFACES: choice of the config).

use std::fs;

use serde_json::json;
use toolwarden_core::Layer;
use toolwarden_core::records::{Kind, Place as Spot};
use toolwarden_policy::input::{AutoRunMode, Declared, ModeInput};
use toolwarden_sources::records::lists_of;
use toolwarden_sources::{Loaded, Refusal, SourceState, WorkspaceTrust};

use crate::home::{Home, Outcome};

fn mode<'l>(loaded: &'l Loaded, slug: &str) -> Option<&'l ModeInput> {
    loaded.input.base.modes.iter().find(|mode| mode.slug == slug)
}

#[test]
fn nothing_at_all_loads_with_safe_defaults() -> Outcome {
    let home = Home::new()?;
    fs::remove_dir(home.path("data"))?;
    let loaded = home.load()?;
    assert_eq!(loaded.findings, []);
    assert!(loaded.shipped_rules && loaded.config_path.is_none() && loaded.input.servers.is_empty());
    assert_eq!(loaded.input.base.auto_run.mode, AutoRunMode::UseAllowlist);
    assert_eq!(loaded.input.base.modes.len(), 5, "the built-in modes of Roo");
    assert!(!home.path("data").exists(), "loading writes nothing");
    Ok(())
}

#[test]
fn the_config_is_the_explicit_one_else_the_nearest_trusted_one_else_the_users() -> Outcome {
    let mut home = Home::new()?;
    home.write("config/toolwarden.toml", "[servers.users]\ncommand = \"x\"\n")?;
    let names = |loaded: &Loaded| {
        loaded.input.servers.iter().map(|server| (server.name.clone(), server.declared)).collect::<Vec<_>>()
    };
    assert_eq!(names(&home.load()?), [("users".to_owned(), Declared::ByOperator)]);

    home.write("work/toolwarden.toml", "[servers.nearest]\ncommand = \"x\"\n")?;
    home.write("work/deep/down/file", "")?;
    home.locations.working_directory = home.path("work/deep/down");
    let refused = home.load().err();
    assert!(matches!(&refused, Some(Refusal::Untrusted { directory, .. }) if *directory == home.path("work")));
    let message = refused.map(|refusal| refusal.to_string()).unwrap_or_default();
    assert!(message.contains(&format!("toolwarden trust {}", home.path("work").display())), "{message}");

    toolwarden_sources::trust::trust(&home.locations, &home.path("work"), jiff::Timestamp::UNIX_EPOCH)?;
    assert_eq!(names(&home.load()?), [("nearest".to_owned(), Declared::ByWorkspace)]);

    let explicit = home.write("explicit.toml", "[servers.explicit]\ncommand = \"x\"\n")?;
    home.locations.config = Some(explicit);
    assert_eq!(names(&home.load()?), [("explicit".to_owned(), Declared::ByOperator)]);
    home.locations.config = Some(home.path("none.toml"));
    assert!(home.load().is_err());
    Ok(())
}

#[test]
fn mode_7_modes_by_slug_config_over_roomodes_over_global_over_built_in() -> Outcome {
    let mut home = Home::new()?;
    home.locations.workspace_trust = WorkspaceTrust::AsTheyAre;
    let modes = |name: &str, slugs: &[&str]| {
        let lines: Vec<_> =
            slugs.iter().map(|slug| format!("  - {{slug: {slug}, name: {name}, groups: [mcp]}}\n")).collect();
        format!("customModes:\n{}", lines.concat())
    };
    home.write("config/modes.yaml", modes("global", &["code", "a", "b", "c"]))?;
    home.write("work/.roomodes", modes("workspace", &["a", "b"]))?;
    home.write("config/toolwarden.toml", "[modes.a]\nname = \"config\"\n")?;
    let loaded = home.load()?;
    let found = ["code", "a", "b", "c", "ask"]
        .map(|slug| mode(&loaded, slug).map(|mode| mode.name.clone()).unwrap_or_default());
    assert_eq!(found, ["global", "config", "workspace", "global", "Ask"]);
    let shown = home.shown(&loaded.findings).join("\n");
    assert!(shown.contains("config/modes.yaml:3:12: note: the mode `a` is not used:"), "{shown}");
    assert!(shown.contains("work/.roomodes:2:12: note: the mode `a` is not used:"), "{shown}");
    Ok(())
}

#[test]
fn mode_7_one_name_with_two_launches_stays_twice_and_one_launch_unites() -> Outcome {
    let mut home = Home::new()?;
    home.locations.workspace_trust = WorkspaceTrust::AsTheyAre;
    home.write(
        "config/toolwarden.toml",
        "[servers.a]\ncommand = \"x\"\n[servers.b]\ncommand = \"y\"\n[servers.c]\ncommand = \"z\"\n",
    )?;
    home.write(
        "work/.cursor/mcp.json",
        r#"{"mcpServers": {"a": {"command": "x", "disabledTools": ["rm"], "defaultEnabled": false, "alwaysAllow": ["ls"]},
            "b": {"command": "other"}, "C": {"command": "z"}}}"#,
    )?;
    let loaded = home.load()?;
    let named = |name: &str| loaded.input.servers.iter().filter(|server| server.name == name).count();
    assert_eq!((named("a"), named("b"), named("c"), named("C")), (1, 2, 1, 1));
    let a = loaded.input.servers.first().ok_or("no server")?;
    assert_eq!((a.declared, a.default_enabled, a.disabled_tools.len()), (Declared::ByOperator, false, 1));
    assert!(a.always_allow.is_empty(), "nobody opted in");
    Ok(())
}

#[test]
fn mode_7_always_allow_counts_only_where_the_users_config_names_the_file() -> Outcome {
    let mut home = Home::new()?;
    home.locations.workspace_trust = WorkspaceTrust::AsTheyAre;
    home.write("work/.roo/mcp.json", r#"{"mcpServers": {"a": {"command": "x", "alwaysAllow": ["ls", "*"]}}}"#)?;
    home.write("work/.mcp.json", r#"{"mcpServers": {"b": {"command": "x", "alwaysAllow": ["ls"]}}}"#)?;
    let opt_in = format!("[auto_run]\nallow_always_allow = [\"{}\"]\n", home.path("work/.roo/mcp.json").display());
    home.write("config/toolwarden.toml", &opt_in)?;
    let allowed = |loaded: &Loaded, name: &str| {
        let server = loaded.input.servers.iter().find(|server| server.name == name);
        server.map(|server| {
            server.always_allow.iter().map(|tool| (tool.value.clone(), tool.origin.layer)).collect::<Vec<_>>()
        })
    };
    let loaded = home.load()?;
    assert_eq!(allowed(&loaded, "a"), Some(vec![("ls".to_owned(), Layer::Settings)]));
    assert_eq!(allowed(&loaded, "b"), Some(vec![]));

    // A config of the workspace does not silence the person's own word.
    home.write("work/toolwarden.toml", "")?;
    assert_eq!(allowed(&home.load()?, "a"), Some(vec![("ls".to_owned(), Layer::Settings)]));

    // The same words in a config that came with the workspace count for nothing.
    home.write("work/toolwarden.toml", &opt_in)?;
    home.write("config/toolwarden.toml", "")?;
    assert_eq!(allowed(&home.load()?, "a"), Some(vec![]));
    Ok(())
}

#[test]
fn a_faulty_server_is_off_and_disables_a_good_one_of_its_name() -> Outcome {
    let mut home = Home::new()?;
    home.locations.workspace_trust = WorkspaceTrust::AsTheyAre;
    home.write("config/toolwarden.toml", "[servers.a]\ncommand = \"x\"\n")?;
    home.write("work/.mcp.json", r#"{"mcpServers": {"a": {"command": 7}, "b": {"command": "y"}}}"#)?;
    let loaded = home.load()?;
    let found: Vec<_> = loaded.input.servers.iter().map(|server| (server.name.as_str(), server.enabled)).collect();
    assert_eq!(found, [("a", true), ("a", false), ("b", true)]);
    Ok(())
}

#[test]
fn perm_3_broken_permissions_load_and_everything_else_broken_refuses() -> Outcome {
    let home = Home::new()?;
    home.write("home/.cursor/permissions.json", "{")?;
    let loaded = home.load()?;
    assert!(loaded.input.local.here().all(|file| file.broken));
    assert!(loaded.sources.iter().any(|source| source.state == SourceState::Broken));

    home.write("config/toolwarden.toml", "[auto_run]\nmode = 1\n")?;
    home.write("config/modes.yaml", "- [\n")?;
    home.write("data/trust.json", "{")?;
    let Err(Refusal::Faults { findings, .. }) = home.load() else { return Err("not refused".into()) };
    let shown = home.shown(&findings).join("\n");
    for part in
        ["config/toolwarden.toml:2:8: error:", "config/modes.yaml:", "data/trust.json:1:1:", "permissions.json:1:"]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    Ok(())
}

#[test]
fn rules_are_found_by_glob_and_a_named_one_must_exist() -> Outcome {
    let home = Home::new()?;
    home.write("config/rules/b.cedar", "permit(principal, action, resource);\n")?;
    home.write("config/rules/a.cedar", "\u{feff}forbid(principal, action, resource);\n")?;
    home.write("config/rules/.hidden.cedar", "x")?;
    home.write("config/rules/note.txt", "x")?;
    home.write("config/toolwarden.toml", "[rules]\nfiles = [\"rules/*.cedar\", \"none/*.cedar\"]\nshipped = false\n")?;
    let loaded = home.load()?;
    let texts: Vec<_> = loaded.input.base.rules.iter().map(|rule| rule.text.as_str()).collect();
    assert_eq!(texts, ["forbid(principal, action, resource);\n", "permit(principal, action, resource);\n"]);
    assert!(!loaded.shipped_rules);
    assert!(home.shown(&loaded.findings).join("\n").contains("warning: no rule file matches `none/*.cedar`"));
    home.write("config/toolwarden.toml", "[rules]\nfiles = [\"rules/c.cedar\"]\n")?;
    assert!(home.load().is_err());
    Ok(())
}

#[test]
fn gate_9_a_tool_switched_off_on_either_side_is_off() -> Outcome {
    let home = Home::new()?;
    home.write(
        "config/toolwarden.toml",
        "[settings]\n\"mcp.tools.disabled\" = [\"a\"]\n\"mcp.tool.x.enabled\" = false\n\"mcp.tool.y.enabled\" = true\nplain = 1\n",
    )?;
    for (key, value) in [
        ("mcp.tools.disabled", serde_json::json!(["b"])),
        ("mcp.tool.x.enabled", serde_json::json!(true)),
        ("mcp.tool.y.enabled", serde_json::json!(false)),
        ("plain", serde_json::json!(2)),
    ] {
        home.keep(Spot::of_house(Kind::Setting, key), value);
    }
    let loaded = home.load()?;
    let value = |key: &str| loaded.input.base.settings.get(key).map(|setting| setting.value.clone());
    assert_eq!(value("mcp.tools.disabled"), Some(serde_json::json!(["a", "b"])));
    assert_eq!(value("mcp.tool.x.enabled"), Some(serde_json::json!(false)));
    assert_eq!(value("mcp.tool.y.enabled"), Some(serde_json::json!(false)));
    assert_eq!(value("plain"), Some(serde_json::json!(2)));
    Ok(())
}

#[test]
fn stored_users_are_loaded_and_their_invalid_entries_told() -> Outcome {
    let home = Home::new()?;
    let anna = json!({"auto_run_mode": "run_everything", "mcp_allowlist": ["a:b", "bad"], "blocks": ["c:d"]});
    home.keep(lists_of("anna"), anna);
    let loaded = home.load()?;
    let anna = loaded.input.users.get("anna").ok_or("no anna")?;
    assert_eq!(anna.auto_run_mode, Some(AutoRunMode::RunEverything));
    assert_eq!((anna.mcp_allowlist.len(), anna.blocks.len()), (2, 1));
    assert!(home.shown(&loaded.findings).join("\n").contains("Invalid MCP allowlist entry: bad"));
    Ok(())
}

#[test]
fn self_1_what_decides_is_protected() -> Outcome {
    let home = Home::new()?;
    home.write("config/toolwarden.toml", "")?;
    home.write("work/.roomodes", "customModes: []\n")?;
    home.trust()?;
    let paths = home.load()?.input.base.protected_paths;
    for relative in [
        "config",
        "data",
        "config/toolwarden.toml",
        "home/.cursor/permissions.json",
        "home/.cursor/hooks.json",
        "home/.claude/settings.json",
        "work/.cursor/hooks.json",
        "work/.claude/settings.json",
        "work/.roomodes",
        "work/.mcp.json",
        "work/.vscode/mcp.json",
        "work/.roo/mcp.json",
        "work/.cursor/mcp.json",
        "home/.cursor/mcp.json",
        "home/.cursor/cli-config.json",
        "home/.claude.json",
        "home/.codex/config.toml",
        "home/.gemini/settings.json",
        "home/.gemini/policies",
    ] {
        assert!(paths.contains(&home.path(relative)), "{relative}");
    }
    Ok(())
}
