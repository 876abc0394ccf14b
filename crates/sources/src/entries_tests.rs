//! ALLOW-4 and SHELL-2: valid entries, and which covers which.

use super::List;

#[test]
fn shell_2_which_terminal_entries_are_valid() {
    for text in ["git", "git:status", "npm:install*", "./run.sh", "git:*", "docker compose"] {
        assert_eq!(List::Terminal.fault(text), None, "{text}");
    }
    for text in ["", " ", "*", " * ", ":x", "git*", "*:x", "a\nb", "git:\u{202e}"] {
        assert!(List::Terminal.fault(text).is_some(), "{text:?}");
    }
}

#[test]
fn allow_4_a_wider_terminal_entry_covers_a_narrower_one() {
    for (wide, narrow, covers) in [
        ("git", "git:status", true),
        ("git:*", "git", true),
        ("git:status", "git", false),
        ("git:status", "git:status -s", false),
        ("npm:install*", "npm:install --save*", true),
        ("npm:install*", "npm:inst*", false),
        ("npm:install*", "npm:*", false),
        ("npm:a*b*", "npm:axb", false),
        ("git", "Git", false),
        ("*", "git", false),
    ] {
        assert_eq!(List::Terminal.covers(wide, narrow), covers, "{wide} {narrow}");
    }
}

#[test]
fn allow_4_mcp_entries_are_the_same_in_any_ascii_case() {
    assert!(List::Mcp.same("GitHub:x", "github:X"));
    assert!(!List::Terminal.same("Git", "git"));
    assert!(List::Mcp.covers("*:*", "a:b") && !List::Mcp.covers("a:b", "a:*") && !List::Mcp.covers("bad", "bad"));
}

#[test]
fn allow_4_an_entry_over_arguments_is_one_by_its_exact_text() {
    let entry = r#"notes:write where {"/name":{"equals":"plan"}}"#;
    assert_eq!(List::Mcp.fault(entry), None);
    assert!(
        List::Mcp.fault(r#"notes:* where {"/name":{"equals":"plan"}}"#).is_some_and(|fault| fault.contains("one tool"))
    );
    assert!(
        List::Mcp
            .fault(r#"notes:write where {"/name":{"equals": 1}}"#)
            .is_some_and(|fault| fault.contains("write it as"))
    );
    assert_eq!(List::Mcp.fault("notes:write where"), None, "a tool may be called so");
    assert!(List::Mcp.same(entry, entry) && !List::Mcp.same(entry, &entry.replace("plan", "Plan")));
    for wide in ["*:*", "notes:*", "NOTES:write"] {
        assert!(List::Mcp.covers(wide, entry), "{wide}");
    }
    assert!(!List::Mcp.covers(entry, "notes:write") && !List::Mcp.covers("notes:read", entry));
}
