//! Broken input that no repository should hold, or that only the judge can see: each with its message.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::house::House;

const PERMISSIONS: &str = "home/.cursor/permissions.json";
const MODES: &str = "home/.config/toolwarden/modes.yaml";

/// What `lint` says, and that nothing is granted meanwhile.
fn told(house: &House, title: &str) -> String {
    let lint = house.run(&["lint"]);
    assert_eq!(lint.code, 1, "{title}: {}", lint.out);
    let asked = house.run(&["explain", "any:thing"]).code;
    assert!(asked == 4 || asked == 2, "{title}: explain ended with {asked}");
    format!("== {title}\n{}", lint.out)
}

#[test]
fn files_far_too_large_deep_or_foreign_are_told() {
    let mut told_of = Vec::new();
    let house = House::new();
    house.write(PERMISSIONS, "");
    assert!(File::create(house.path(PERMISSIONS)).and_then(|file| file.set_len(100 * 1024 * 1024)).is_ok());
    told_of.push(told(&house, "100 MB"));
    for (title, bytes) in [
        ("a million brackets", "[".repeat(1_000_000).into_bytes()),
        ("half a million tables", "{\"a\":".repeat(500_000).into_bytes()),
        ("invalid UTF-8", b"{\"mcpAllowlist\": [\"*:\xff*\"]}".to_vec()),
        ("a NUL byte", b"{\"mcpAllowlist\": [\"*:*\"]}\0".to_vec()),
        ("a byte-order mark before nonsense", b"\xef\xbb\xbf{\"mcpAllowlist\": \"*:*\"}".to_vec()),
        ("nonsense with CRLF", b"{\r\n  \"mcpAllowlist\": 7\r\n}".to_vec()),
        ("a key twice", b"{\"mcpAllowlist\": [],\n \"mcpAllowlist\": [\"*:*\"]}".to_vec()),
    ] {
        assert!(fs::write(house.path(PERMISSIONS), bytes).is_ok());
        told_of.push(told(&house, title));
    }
    insta::assert_snapshot!("broken_large", told_of.join("\n"));
}

#[test]
fn modes_only_the_judge_can_refuse_are_told() {
    let mut told_of = Vec::new();
    for (title, more) in [
        ("extends itself", "    extends: m\n"),
        ("a circle", "    extends: n\n  - slug: n\n    name: N\n    extends: m\n"),
        ("extends nobody", "    extends: nowhere\n"),
        ("unknown time zone", "    timeZone: Mars/Olympus\n    hours: \"09:00-17:00\"\n"),
        ("unknown day", "    days: [someday]\n"),
        ("no hours", "    hours: \"9 to 5\"\n"),
        ("unknown condition", "    conditions: {colour: [red]}\n"),
        (
            "a tool allowed and disallowed",
            "    mcpRestrictions:\n      allowedTools: [{serverName: s, toolName: t}]\n      disallowedTools: [{serverName: S, toolName: T}]\n",
        ),
    ] {
        let house = House::new();
        house.write(MODES, &format!("customModes:\n  - slug: m\n    name: M\n    groups: [mcp]\n{more}"));
        told_of.push(told(&house, title));
        let asked = house.run(&["explain", "s:t", "--mode", "m"]).code;
        assert!(asked == 3 || asked == 2, "{title}: explain ended with {asked}");
    }
    insta::assert_snapshot!("broken_modes", told_of.join("\n"));
}

#[test]
fn a_world_writable_admin_file_is_told() {
    let house = House::new();
    house.write("admin/admin.json", "{\"enabled\": false}");
    house.write(
        "home/.config/toolwarden/toolwarden.toml",
        &format!("[admin]\nfile = {:?}\n", house.path("admin/admin.json")),
    );
    let path = house.path("admin/admin.json");
    assert!(fs::set_permissions(&path, Permissions::from_mode(0o666)).is_ok());
    let text = told(&house, "world-writable admin file");
    // Who is not root cannot make a file of root's; then the owner is what is wrong.
    if fs::metadata(&path).is_ok_and(|found| found.uid() == 0) {
        insta::assert_snapshot!("broken_admin", text);
    } else {
        assert!(text.contains("not to root"), "{text}");
    }
}
