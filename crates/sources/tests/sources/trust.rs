//! PERM-4: what a workspace brings counts only as a person trusted it.

use std::fs;

use jiff::{SignedDuration, Timestamp};
use toolwarden_policy::input::{ModeInput, ServerInput};
use toolwarden_sources::{Loaded, Refusal, SourceState, stored, trust};

use crate::home::{Home, Outcome};

const SERVERS: &str = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
const MODES: &str = "customModes:\n  - {slug: m, name: M, groups: [mcp], mcpRestrictions: {allowedServers: [a, b]}}\n";

fn server<'l>(loaded: &'l Loaded, name: &str) -> Option<&'l ServerInput> {
    loaded.input.servers.iter().find(|server| server.name == name)
}

fn mode<'l>(loaded: &'l Loaded, slug: &str) -> Option<&'l ModeInput> {
    loaded.input.base.modes.iter().find(|mode| mode.slug == slug)
}

fn state(loaded: &Loaded, ending: &str) -> Option<SourceState> {
    loaded.sources.iter().find(|source| source.path.ends_with(ending)).map(|source| source.state)
}

#[test]
fn perm_4_untrusted_files_only_forbid() -> Outcome {
    let home = Home::new()?;
    home.write(
        "config/toolwarden.toml",
        "[servers.known]\ncommand = \"k\"\n[modes.m]\nallowed_servers = [\"known\", \"a\"]\n",
    )?;
    home.write("work/.cursor/permissions.json", r#"{"mcpAllowlist": ["*:*"], "terminalAllowlist": ["rm"]}"#)?;
    home.write(
        "work/.mcp.json",
        r#"{"mcpServers": {"evil": {"command": "x"}, "known": {"command": "y", "disabledTools": ["rm"], "defaultEnabled": false}}}"#,
    )?;
    home.write(
        "work/.roomodes",
        "customModes:\n  - {slug: evil, name: E, groups: [mcp]}\n  - {slug: m, name: M, groups: [mcp], mcpRestrictions: {disallowedServers: [a]}}\n",
    )?;
    let loaded = home.load()?;
    assert!(loaded.input.local.here().count() == 0, "it defines no keys");
    assert!(server(&loaded, "evil").is_none() && mode(&loaded, "evil").is_none());
    let known = server(&loaded, "known").ok_or("no server")?;
    assert_eq!((known.disabled_tools.len(), known.default_enabled, loaded.input.servers.len()), (1, false, 1));
    let m = mode(&loaded, "m").ok_or("no mode")?;
    assert_eq!(m.disallowed_servers.len(), 1);
    assert_eq!(m.allowed_servers.as_ref().map(Vec::len), Some(1), "what is forbidden is no longer allowed");
    assert_eq!(state(&loaded, ".roomodes"), Some(SourceState::Untrusted));
    let shown = home.shown(&loaded.findings).join("\n");
    assert!(shown.contains("toolwarden trust"), "{shown}");
    assert!(shown.contains("work/.roomodes:2:12: note: the mode `evil` is not known"), "{shown}");
    assert!(shown.contains("work/.mcp.json:1:17: note: the server `evil` is not known"), "{shown}");
    Ok(())
}

#[test]
fn perm_4_trusted_files_count() -> Outcome {
    let home = Home::new()?;
    home.write("work/.cursor/permissions.json", r#"{"mcpAllowlist": ["a:*"]}"#)?;
    home.write("work/.vscode/mcp.json", SERVERS.replace("mcpServers", "servers"))?;
    home.write("work/.roomodes", MODES)?;
    home.trust()?;
    let loaded = home.load()?;
    assert_eq!(loaded.findings, []);
    assert!(server(&loaded, "a").is_some() && mode(&loaded, "m").is_some());
    assert_eq!(loaded.input.local.here().count(), 1);
    assert_eq!(trust::list(&home.locations)?.len(), 1);
    assert!(trust::untrust(&home.locations, &home.path("work"))?);
    assert!(!trust::untrust(&home.locations, &home.path("work"))?);
    assert!(server(&home.load()?, "a").is_none());
    Ok(())
}

#[test]
fn perm_4_a_changed_file_stays_at_its_trusted_content_and_only_forbids_more() -> Outcome {
    let home = Home::new()?;
    home.write("work/.cursor/permissions.json", r#"{"mcpAllowlist": ["a:*"]}"#)?;
    home.write("work/.mcp.json", SERVERS)?;
    home.write("work/.roomodes", MODES)?;
    home.trust()?;
    home.write("work/.cursor/permissions.json", r#"{"mcpAllowlist": ["*:*"]}"#)?;
    home.write(
        "work/.mcp.json",
        r#"{"mcpServers": {"a": {"command": "evil", "disabledTools": ["t"]}, "new": {"command": "x"}}}"#,
    )?;
    home.write(
        "work/.roomodes",
        "customModes:\n  - {slug: m, name: M, groups: [mcp], mcpRestrictions: {disallowedTools: [{serverName: a, toolName: t}]}}\n  - {slug: new, name: N, groups: [mcp]}\n",
    )?;
    let loaded = home.load()?;
    let entries: Vec<_> = loaded.input.local.here().flat_map(|file| file.mcp_allowlist.iter().flatten()).collect();
    assert_eq!(entries.iter().map(|entry| entry.value.as_str()).collect::<Vec<_>>(), ["a:*"]);
    let a = server(&loaded, "a").ok_or("no server")?;
    assert!(format!("{:?}", a.launch).contains("\"x\"") && a.disabled_tools.len() == 1);
    assert!(server(&loaded, "new").is_none() && mode(&loaded, "new").is_none());
    let m = mode(&loaded, "m").ok_or("no mode")?;
    assert_eq!((m.allowed_servers.as_ref().map(Vec::len), m.disallowed_tools.len()), (Some(2), 1));
    assert_eq!(state(&loaded, ".mcp.json"), Some(SourceState::Changed));
    let warnings = home.shown(&loaded.findings);
    assert_eq!(warnings.iter().filter(|line| line.contains("changed since it was trusted")).count(), 3);
    home.trust()?;
    assert!(server(&home.load()?, "new").is_some());
    Ok(())
}

#[test]
fn perm_3_a_trusted_permissions_file_that_breaks_grants_nothing() -> Outcome {
    let home = Home::new()?;
    home.write("work/.cursor/permissions.json", r#"{"mcpAllowlist": ["a:*"]}"#)?;
    home.trust()?;
    home.write("work/.cursor/permissions.json", r#"{"mcpAllowlist": ["a:*""#)?;
    let loaded = home.load()?;
    assert!(loaded.input.local.here().all(|file| file.broken && file.mcp_allowlist.is_none()));
    Ok(())
}

#[test]
fn perm_4_a_trusted_modes_file_that_breaks_stays_at_its_trusted_content() -> Outcome {
    let home = Home::new()?;
    home.write("work/.roomodes", MODES)?;
    home.trust()?;
    home.write("work/.roomodes", "customModes: [")?;
    let loaded = home.load()?;
    assert!(mode(&loaded, "m").is_some_and(|mode| mode.allowed_servers.is_some()));
    Ok(())
}

#[test]
fn perm_4_a_deleted_file_grants_nothing_and_its_restrictions_stay() -> Outcome {
    let home = Home::new()?;
    home.write("work/.cursor/permissions.json", r#"{"mcpAllowlist": ["a:*"]}"#)?;
    home.write("work/.mcp.json", SERVERS)?;
    home.write(
        "work/.roomodes",
        "customModes:\n  - {slug: code, name: Narrow, groups: [read]}\n  - {slug: own, name: O, groups: [mcp]}\n",
    )?;
    home.trust()?;
    for relative in ["work/.cursor/permissions.json", "work/.mcp.json", "work/.roomodes"] {
        fs::remove_file(home.path(relative))?;
    }
    let loaded = home.load()?;
    assert!((loaded.input.local.here().count() == 0) && loaded.input.servers.is_empty());
    assert!(mode(&loaded, "own").is_none());
    assert_eq!(mode(&loaded, "code").map(|mode| mode.name.as_str()), Some("Narrow"), "not the wider built-in one");
    home.trust()?;
    assert_eq!(mode(&home.load()?, "code").map(|mode| mode.name.as_str().to_owned()), Some("Code".to_owned()));
    Ok(())
}

#[test]
fn perm_4_a_changed_workspace_config_stays_and_forbids_more() -> Outcome {
    let home = Home::new()?;
    home.write(
        "work/toolwarden.toml",
        "[servers.a]\ncommand = \"x\"\n[roles.r]\nscope = \"pm\"\ndisallow = [\"x\"]\n",
    )?;
    home.trust()?;
    home.write(
        "work/toolwarden.toml",
        "[auto_run]\nmode = \"run_everything\"\nask = [\"a:t\"]\n[servers.a]\ncommand = \"x\"\ntools.\"t\" = { enabled = false }\n[servers.b]\ncommand = \"y\"\n[roles.r]\nscope = \"pm\"\nallow = [\"*\"]\ndisallow = [\"y\"]\n",
    )?;
    let loaded = home.load()?;
    assert_eq!(loaded.input.base.auto_run.mode.as_str(), "use_allowlist");
    assert_eq!(loaded.input.base.auto_run.ask.len(), 1);
    assert!(server(&loaded, "b").is_none());
    assert!(server(&loaded, "a").is_some_and(|server| server.disabled_tools.len() == 1));
    let role = loaded.input.base.roles.first().ok_or("no role")?;
    assert!(role.allow.is_none());
    assert_eq!(role.disallow.as_ref().map(Vec::len), Some(2));
    Ok(())
}

#[test]
fn perm_4_rule_files_of_a_workspace_count_as_they_were_trusted() -> Outcome {
    let home = Home::new()?;
    home.write("work/toolwarden.toml", "[rules]\nfiles = [\"rules/*.cedar\"]\n")?;
    home.write("work/rules/a.cedar", "forbid(principal, action, resource);")?;
    home.write("work/rules/b.cedar", "forbid(principal, action, resource);")?;
    home.trust()?;
    home.write("work/rules/a.cedar", "permit(principal, action, resource);")?;
    home.write("work/rules/c.cedar", "permit(principal, action, resource);")?;
    fs::remove_file(home.path("work/rules/b.cedar"))?;
    let loaded = home.load()?;
    let rules: Vec<_> = loaded.input.base.rules.iter().map(|rule| rule.text.as_str()).collect();
    assert_eq!(rules, ["forbid(principal, action, resource);"; 2]);
    home.write("work/toolwarden.toml", "[rules]\nfiles = [\"../outside.cedar\"]\n")?;
    home.trust()?;
    assert!(matches!(home.load(), Err(Refusal::Faults { .. })));
    Ok(())
}

#[test]
fn perm_4_trust_is_for_the_real_directory_and_not_for_those_below() -> Outcome {
    let mut home = Home::new()?;
    home.write("work/.mcp.json", SERVERS)?;
    home.write("work/sub/.mcp.json", SERVERS)?;
    std::os::unix::fs::symlink(home.path("work"), home.path("link"))?;
    trust::trust(&home.locations, &home.path("link"), Timestamp::UNIX_EPOCH)?;
    home.locations.workspace = Some(home.path("link"));
    assert!(server(&home.load()?, "a").is_some());
    home.locations.workspace = Some(home.path("work/sub"));
    assert!(server(&home.load()?, "a").is_none());
    assert!(trust::trust(&home.locations, &home.path("nowhere"), Timestamp::UNIX_EPOCH).is_err());
    Ok(())
}

/// A person agrees to what waits now: the same policy must not come back by itself much later.
#[test]
fn self_2_a_confirmation_counts_for_minutes() -> Outcome {
    let home = Home::new()?;
    let (mark, at) = ("5d41402abc4b2a76b9719d911017c592", Timestamp::constant(1_800_000_000, 0));
    stored::confirm_policy(&home.locations, mark, at)?;
    let after = |minutes: i64| stored::is_confirmed(&home.locations, mark, at + SignedDuration::from_mins(minutes));
    assert!(after(0)? && after(9)? && !after(11)? && !after(-11)?);
    assert!(!stored::is_confirmed(&home.locations, "5d41402abc4b2a76b9719d911017c593", at)?);
    Ok(())
}

/// Webhooks and the classifier read the environment and are told of calls: a workspace, trusted or not, names neither.
#[test]
fn perm_4_webhooks_and_the_classifier_are_the_persons_own_also_where_a_workspace_is_nearer() -> Outcome {
    let home = Home::new()?;
    let hook = |host: &str| format!("[control.webhooks.a]\nurl = \"https://{host}/${{env:TOKEN}}\"\nsecret = \"s\"\n");
    let machine = |host: &str| format!("[classifier]\nkind = \"openai\"\nmodel = \"m\"\nurl = \"https://{host}/v1\"\n");
    let gateway = "[gateway]\npublic_url = \"https://evil.example\"\n";
    home.write("work/toolwarden.toml", format!("{gateway}{}{}", hook("evil.example"), machine("evil.example")))?;
    home.trust()?;
    let loaded = home.load()?;
    assert!(loaded.store.webhooks.is_empty() && loaded.config.classifier.is_none());
    assert!(loaded.config.gateway.public_url.is_none(), "links that answer calls lead there");
    assert!(loaded.findings.iter().any(|finding| finding.to_string().contains("[control.webhooks]")));
    home.write("config/toolwarden.toml", format!("{}{}", hook("own.example"), machine("own.example")))?;
    let loaded = home.load()?;
    let hosts: Vec<_> = loaded.store.webhooks.iter().map(|hook| hook.url.reveal_to_upstream()).collect();
    assert_eq!(hosts, ["https://own.example/${env:TOKEN}"]);
    let machine = loaded.config.classifier.and_then(|machine| machine.url);
    assert_eq!(machine.as_deref(), Some("https://own.example/v1"));
    Ok(())
}

/// A token may be bound to another workspace than this one: its file counts there, once trusted, and is protected.
#[test]
fn perm_1_the_file_of_every_trusted_workspace_is_read_for_its_own_calls() -> Outcome {
    let home = Home::new()?;
    home.write("work/.cursor/permissions.json", r#"{"mcpAllowlist": ["a:*"]}"#)?;
    home.write("other/.cursor/permissions.json", r#"{"mcpAllowlist": ["b:*"]}"#)?;
    home.write("other/toolwarden.toml", "[rules]\nfiles = [\"rules/*.cedar\"]\n")?;
    home.write("other/rules/y.cedar", "permit(principal, action, resource);")?;
    home.write("untrusted/.cursor/permissions.json", r#"{"mcpAllowlist": ["c:*"]}"#)?;
    home.trust()?;
    trust::trust(&home.locations, &home.path("other"), Timestamp::UNIX_EPOCH)?;
    let loaded = home.load()?;
    let roots: Vec<_> = loaded.input.local.workspaces.keys().cloned().collect();
    assert_eq!(roots, [home.path("other"), home.path("work")]);
    assert!(loaded.input.local.files.is_empty());
    for file in ["other/toolwarden.toml", "other/rules/y.cedar", "other/.cursor/permissions.json"] {
        assert!(loaded.input.base.protected_paths.contains(&home.path(file)), "{file}");
    }
    // Whatever happens to the other file is no finding of this place, and narrows the other place alone.
    home.write("other/.cursor/permissions.json", "{\"mcpAllowlist\": [")?;
    let loaded = home.load()?;
    assert!(loaded.findings.iter().all(|finding| finding.severity == toolwarden_sources::Severity::Note));
    let broken = |root: &str| loaded.input.local.workspaces.get(&home.path(root)).map(|file| file.broken);
    assert_eq!((broken("other"), broken("work")), (Some(true), Some(false)));
    Ok(())
}

/// The home is no workspace like others: naming it as a whole names what Toolwarden keeps there.
#[test]
fn self_1_the_home_is_not_among_the_directories_people_work_in() -> Outcome {
    let home = Home::new()?;
    trust::trust(&home.locations, &home.path("home"), Timestamp::UNIX_EPOCH)?;
    trust::trust(&home.locations, &home.path(""), Timestamp::UNIX_EPOCH)?;
    assert_eq!(home.load()?.input.base.workspaces, [home.path("work")]);
    Ok(())
}
