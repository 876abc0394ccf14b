//! `allow`, `disallow`, `allowlist`: where entries go, what stays untouched, what is said (ALLOW-4).

use std::process::Command;

use crate::house::{House, PERMISSIONS};

#[test]
fn allow_4_goes_to_the_file_that_defines_the_key_and_keeps_its_comments() {
    let house = House::new();
    house.write("home/.cursor/permissions.json", PERMISSIONS);
    assert_eq!(house.decision(&["explain", "github:list"]), "hold not_in_allowlist");
    let first = house.shown(&["allow", "github:list"]);
    let again = house.shown(&["allow", "GitHub:list"]);
    let covered = house.shown(&["allow", "linear:x"]);
    let invalid = house.shown(&["allow", "github:li*"]);
    assert_eq!(house.decision(&["explain", "github:list"]), "allow allowlist_match");
    let file = house.read("home/.cursor/permissions.json");
    assert!(file.contains("// What I decided is always safe.") && file.contains("\"github:list\""), "{file}");
    let removed = house.shown(&["disallow", "github:list"]);
    assert_eq!(house.read("home/.cursor/permissions.json"), PERMISSIONS);
    let gone = house.shown(&["disallow", "github:list"]);
    insta::assert_snapshot!("allow", [first, again, covered, invalid, removed, gone].join("\n"));
}

#[test]
fn allow_4_goes_to_the_stored_list_where_no_file_defines_the_key() {
    let house = House::new();
    let added = house.shown(&["allow", "github:*"]);
    let shell = house.shown(&["allow", "--shell", "npm:test*"]);
    assert_eq!(house.decision(&["explain", "github:x"]), "allow allowlist_match");
    assert_eq!(house.decision(&["explain", "--shell", "npm test"]), "allow allowlist_match");
    let list = house.shown(&["allowlist"]);
    insta::assert_snapshot!("allow_stored", [added, shell, list].join("\n"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode =
            |path: &str| std::fs::metadata(house.path(path)).map(|data| data.permissions().mode() & 0o777).unwrap_or(0);
        assert_eq!(mode("home/.local/share/toolwarden"), 0o700);
        assert_eq!(mode("home/.local/share/toolwarden/toolwarden.sqlite"), 0o600);
    }
}

#[test]
fn allow_4_says_when_the_call_would_still_be_held() {
    let house = House::new();
    house.write("home/.config/toolwarden/toolwarden.toml", "[auto_run]\nask = [\"github:push\"]\n");
    let ran = house.run(&["allow", "github:push"]);
    assert_eq!(ran.code, 0);
    assert!(
        ran.out.contains("but such a call would still be held") && ran.out.contains("mandatory_ask"),
        "{}",
        ran.out
    );
}

#[test]
fn allow_4_two_writers_lose_nothing() {
    let house = House::new();
    house.write("home/.cursor/permissions.json", PERMISSIONS);
    let mut writers = Vec::new();
    for index in 0..6 {
        let child = Command::new(env!("CARGO_BIN_EXE_toolwarden"))
            .args(["allow", &format!("server{index}:tool")])
            .current_dir(house.path("space"))
            .env("HOME", house.path("home"))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .stdout(std::process::Stdio::null())
            .spawn();
        assert!(child.is_ok());
        writers.extend(child);
    }
    for mut writer in writers {
        assert!(writer.wait().is_ok_and(|status| status.success()));
    }
    for index in 0..6 {
        assert_eq!(house.decision(&["explain", &format!("server{index}:tool")]), "allow allowlist_match");
    }
}

#[test]
fn another_users_list_is_stored_and_used_by_their_agents() {
    let house = House::new();
    house.run(&["allow", "gw:db.read", "--user", "ada"]);
    assert_eq!(house.decision(&["explain", "gw:db.read", "--role", "pm", "--user", "ada"]), "allow allowlist_match");
    assert_eq!(house.decision(&["explain", "gw:db.read", "--role", "pm", "--user", "bob"]), "hold not_in_allowlist");
    assert_eq!(house.decision(&["explain", "gw:db.read"]), "hold not_in_allowlist");
}

#[test]
fn allow_3_invalid_entries_are_marked() {
    let house = House::new();
    house.write(
        "home/.cursor/permissions.json",
        "{\"mcpAllowlist\": [\"fine:x\", \"not an entry\"], \"terminalAllowlist\": [\"*\"]}",
    );
    insta::assert_snapshot!("allowlist_invalid", house.shown(&["allowlist"]));
}

#[test]
fn allow_4_changes_nothing_where_the_policy_cannot_be_read() {
    let house = House::new();
    house.write("space/toolwarden.toml", "[auto_run]\n");
    assert_eq!(house.run(&["allow", "a:b"]).code, 2);
    assert_eq!(house.run(&["allow", "a:b", "--config", "/nowhere.toml"]).code, 2);
    assert_eq!(house.read("home/.local/share/toolwarden/lists.json"), "");
}

#[test]
fn entries_that_would_allow_nothing_are_refused() {
    let house = House::new();
    for (entry, part) in [
        ("docs:resources/read", "only `docs:*`"),
        ("docs:a/b", "`/` is reserved"),
        ("builtin:shell.run", "allow --shell"),
        ("builtin:web.fetch", "no allowlist"),
    ] {
        let ran = house.run(&["allow", entry]);
        assert!(ran.code == 2 && ran.err.contains(part), "{entry}: {}", ran.err);
    }
}

#[test]
fn what_is_said_of_a_terminal_entry_is_true() {
    let house = House::new();
    for entry in ["npm:install *", "curl:-sS *", "python3", "ls"] {
        let ran = house.run(&["allow", "--shell", entry]);
        assert!(ran.code == 0 && !ran.out.contains("but such a call"), "{entry}: {}", ran.out);
    }
    let ran = house.run(&["allow", "--shell", "sudo"]);
    assert!(ran.out.contains("would still be held") && ran.out.contains("runs another command"), "{}", ran.out);
}

#[test]
fn what_is_wrong_with_a_file_is_said_once() {
    let house = House::new();
    house.write("home/.cursor/permissions.json", "{\"mcpAllowlist\": [\"oops\"]}");
    let ran = house.run(&["allow", "a:b"]);
    assert_eq!(ran.err.matches("Invalid MCP allowlist entry: oops").count(), 1, "{}", ran.err);
}
