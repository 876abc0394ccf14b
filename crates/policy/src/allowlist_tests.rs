//! ALLOW-1 and ALLOW-5: what entries match, and which one is named. Examples of seeds 000 and 004.

use toolwarden_core::{Layer, Origin, Sourced};

use super::{Allowlist, Twin};

fn list(entries: &[&str]) -> Allowlist {
    let sourced: Vec<_> = entries
        .iter()
        .map(|entry| Sourced::new((*entry).to_owned(), Origin::record(Layer::Settings, "test")))
        .collect();
    Allowlist::compile(&sourced)
}

fn found(entries: &[&str], server: &str, tool: &str) -> Option<String> {
    list(entries).find(server, tool, Twin::None).map(|rule| rule.text.to_string())
}

#[test]
fn seed_000_and_004_entries() {
    let entries = ["github:create_issue", "linear:*", "*:read_file"];
    for (server, tool, expected) in [
        ("github", "create_issue", Some("github:create_issue")),
        ("GitHub", "Create_Issue", Some("github:create_issue")),
        ("github", "delete_repo", None),
        ("linear", "anything", Some("linear:*")),
        ("files", "read_file", Some("*:read_file")),
        ("files", "write_file", None),
    ] {
        assert_eq!(found(&entries, server, tool).as_deref(), expected, "{server}:{tool}");
    }
    assert_eq!(found(&["*:*"], "any", "thing").as_deref(), Some("*:*"));
    assert_eq!(found(&["custom-user-tools:x"], "custom-user-tools", "x").as_deref(), Some("custom-user-tools:x"));
}

#[test]
fn allow_5_the_widest_entry_is_named() {
    let all = ["s:t", "s:*", "*:t", "*:*"];
    for (skip, expected) in [(0, "*:*"), (1, "*:t"), (2, "s:*"), (3, "s:t")] {
        let fewer: Vec<_> = all.into_iter().take(4 - skip).collect();
        assert_eq!(found(&fewer, "s", "t").as_deref(), Some(expected));
    }
}

#[test]
fn allow_3_invalid_entries_match_nothing() {
    for entry in ["", "s", "s:t:u", "s:t*", "s*:t", ":", "*", "s:", ":t"] {
        assert!(list(&[entry]).is_empty(), "{entry}");
    }
}

#[test]
fn allow_5_twins_need_an_exact_match() {
    let entries = list(&["s:Delete", "*:drop", "w:*"]);
    assert!(entries.find("s", "Delete", Twin::Exists).is_some());
    assert!(entries.find("S", "Delete", Twin::Exists).is_some());
    assert!(entries.find("s", "delete", Twin::Exists).is_none());
    assert!(entries.find("x", "Drop", Twin::Exists).is_none());
    assert!(entries.find("x", "drop", Twin::Exists).is_some());
    // A whole server includes both twins.
    assert!(entries.find("w", "Any", Twin::Exists).is_some());
}

#[test]
fn mode_4_whole_server_entries() {
    let entries = list(&["s:resources/read", "docs:*"]);
    assert!(entries.find_whole_server("s").is_none());
    assert!(entries.find_whole_server("DOCS").is_some());
}
