//! Files that are no files, or far too much of one: made here, because no repository should hold them.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use toolwarden_sources::{Refusal, SourceState, WorkspaceTrust};

use crate::home::{Home, Outcome};

const PERMISSIONS: &str = "home/.cursor/permissions.json";

/// The messages of a load in which the user's permissions.json counts as broken.
fn broken_permissions(home: &Home) -> Result<String, Refusal> {
    let loaded = home.load()?;
    let file = loaded.input.local.files.first();
    assert!(file.is_some_and(|file| file.broken && file.mcp_allowlist.is_none()), "not broken");
    assert!(loaded.sources.iter().any(|source| source.state == SourceState::Broken));
    Ok(home.shown(&loaded.findings).join("\n"))
}

#[test]
fn a_hundred_megabytes_are_refused_unread() -> Outcome {
    let home = Home::new()?;
    let path = home.path(PERMISSIONS);
    File::create(&path)?.set_len(100 * 1024 * 1024)?;
    assert!(broken_permissions(&home)?.contains("is larger than 4 MiB"));
    Ok(())
}

#[test]
fn a_million_brackets_are_refused() -> Outcome {
    let home = Home::new()?;
    home.write(PERMISSIONS, "[".repeat(1_000_000))?;
    assert!(broken_permissions(&home)?.contains("nested deeper than 64 levels"));
    home.write(PERMISSIONS, "{\"a\":".repeat(500_000))?;
    assert!(broken_permissions(&home)?.contains("nested deeper than 64 levels"));
    Ok(())
}

#[test]
fn other_encodings_and_control_characters_are_refused_with_their_place() -> Outcome {
    let home = Home::new()?;
    for (bytes, message) in [
        (b"{\n \"mcpAllowlist\": [\"a\xff:*\"]}".as_slice(), "permissions.json:2:21: error: not UTF-8 at byte 22"),
        (b"\xff\xfe{\x00}\x00".as_slice(), "UTF-16"),
        (b"{\"mcpAllowlist\":\n[\"a:*\", \"b\x00:*\"]}".as_slice(), "2:11: error: control character U+0000"),
        (b"{\"mcpAllowlist\": []}\x1b[2J".as_slice(), "control character U+001B"),
    ] {
        home.write(PERMISSIONS, bytes)?;
        let shown = broken_permissions(&home)?;
        assert!(shown.contains(message), "{shown}");
    }
    Ok(())
}

#[test]
fn a_pipe_is_refused_without_waiting() -> Outcome {
    let home = Home::new()?;
    let made = Command::new("mkfifo").arg(home.path(PERMISSIONS)).status()?;
    assert!(made.success());
    assert!(broken_permissions(&home)?.contains("is not a regular file"));
    Ok(())
}

#[test]
fn directories_devices_and_dangling_links_are_refused() -> Outcome {
    let home = Home::new()?;
    let path = home.path(PERMISSIONS);
    fs::create_dir(&path)?;
    assert!(broken_permissions(&home)?.contains("is not a regular file"));
    fs::remove_dir(&path)?;
    symlink("/dev/zero", &path)?;
    assert!(broken_permissions(&home)?.contains("is not a regular file"));
    fs::remove_file(&path)?;
    symlink("nowhere.json", &path)?;
    assert!(broken_permissions(&home)?.contains("cannot be read"));
    Ok(())
}

#[test]
fn perm_4_a_link_out_of_the_workspace_is_not_followed() -> Outcome {
    let mut home = Home::new()?;
    home.locations.workspace_trust = WorkspaceTrust::AsTheyAre;
    home.write("elsewhere/mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#)?;
    fs::create_dir_all(home.path("work/.cursor"))?;
    symlink(home.path("elsewhere/mcp.json"), home.path("work/.cursor/mcp.json"))?;
    symlink(home.path("elsewhere"), home.path("work/.roo"))?;
    let loaded = home.load()?;
    assert!(loaded.input.servers.is_empty());
    let shown = home.shown(&loaded.findings).join("\n");
    assert!(shown.contains("work/.cursor/mcp.json: warning: leads outside the workspace"), "{shown}");
    assert!(shown.contains("work/.roo/mcp.json: warning: leads outside the workspace"), "{shown}");
    Ok(())
}

#[test]
fn self_3_records_that_others_can_read_are_refused() -> Outcome {
    let home = Home::new()?;
    let path = home.write("data/trust.json", "{}")?;
    assert!(home.load().is_ok());
    fs::set_permissions(&path, Permissions::from_mode(0o644))?;
    let refused = home.load().err().map(|refusal| refusal.to_string()).unwrap_or_default();
    assert!(refused.contains("chmod 600"), "{refused}");
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    fs::set_permissions(home.path("data"), Permissions::from_mode(0o750))?;
    let refused = home.load().err().map(|refusal| refusal.to_string()).unwrap_or_default();
    assert!(refused.contains("chmod 700"), "{refused}");
    Ok(())
}

#[test]
fn self_3_records_of_another_user_are_refused() -> Outcome {
    let mut home = Home::new()?;
    home.write("data/trust.json", "{}")?;
    home.locations.user_id += 1;
    let refused = home.load().err().map(|refusal| refusal.to_string()).unwrap_or_default();
    assert!(refused.contains("belongs to user"), "{refused}");
    Ok(())
}

#[test]
fn allow_10_an_admin_file_that_cannot_be_looked_at_is_refused() -> Outcome {
    let mut home = Home::new()?;
    let path = home.path("admin.json");
    home.locations.system_admin_file = Some(path.clone());
    assert!(home.load()?.input.base.admin.is_none(), "no record");
    // A link to nowhere is not the same as no record.
    symlink(home.path("nowhere.json"), &path)?;
    assert!(home.load().is_err());
    Ok(())
}

#[test]
fn allow_10_an_admin_file_counts_only_when_it_is_roots_alone() -> Outcome {
    let mut home = Home::new()?;
    let path = home.write("admin/admin.json", r#"{"enabled": true, "blocked": ["rm"]}"#)?;
    fs::set_permissions(home.path("admin"), Permissions::from_mode(0o755))?;
    home.locations.system_admin_file = Some(path.clone());
    let refusal = |home: &Home| home.load().err().map(|refusal| refusal.to_string()).unwrap_or_default();
    // Everything else about the file is in `admin_tests.rs`, which needs no root.
    let is_root = home.locations.user_id == 0;
    if is_root {
        assert!(home.load()?.input.base.admin.is_some_and(|admin| admin.enabled));
        std::os::unix::fs::chown(&path, Some(12345), None)?;
    }
    let owner = if is_root { 12345 } else { home.locations.user_id };
    assert!(refusal(&home).contains(&format!("belongs to user {owner}, not to root")), "{}", refusal(&home));
    Ok(())
}

#[test]
fn allow_10_an_admin_file_that_is_named_must_be_there() -> Outcome {
    let home = Home::new()?;
    home.write("config/toolwarden.toml", "[admin]\nfile = \"/nonexistent/admin.json\"\n")?;
    let refused = home.load().err().map(|refusal| refusal.to_string()).unwrap_or_default();
    assert!(refused.contains("the admin file does not exist"), "{refused}");
    Ok(())
}

#[test]
fn allow_10_a_workspace_config_does_not_hide_the_admin_file_of_the_users() -> Outcome {
    let home = Home::new()?;
    home.write("config/toolwarden.toml", "[admin]\nfile = \"nowhere.json\"\n")?;
    home.write("work/toolwarden.toml", "[vault]\nworkspace_env = [\"TOKEN\"]\n")?;
    home.trust()?;
    let refused = home.load().err().map(|refusal| refusal.to_string()).unwrap_or_default();
    assert!(refused.contains("config/nowhere.json: error: the admin file does not exist"), "{refused}");
    home.write("config/toolwarden.toml", "[vault]\nworkspace_env = [\"OTHER\"]\n")?;
    assert_eq!(home.load()?.config.vault.workspace_env, ["OTHER"]);
    Ok(())
}

#[test]
fn a_cycle_of_modes_and_an_unknown_time_zone_are_left_to_the_judge() -> Outcome {
    let home = Home::new()?;
    home.write(
        "config/modes.yaml",
        "customModes:\n  - {slug: a, name: A, extends: b}\n  - {slug: b, name: B, extends: a, hours: '09:00-17:00', timeZone: Mars/Olympus}\n",
    )?;
    let loaded = home.load()?;
    let slugs = ["a", "b"].map(|slug| loaded.input.base.modes.iter().any(|mode| mode.slug == slug));
    assert_eq!(slugs, [true, true]);
    Ok(())
}
