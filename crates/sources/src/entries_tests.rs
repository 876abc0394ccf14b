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
