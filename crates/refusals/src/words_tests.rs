//! No text for agents holds a command line.

use super::{ask_for_approval, without_commands};

#[test]
fn self_7_command_lines_are_left_out() {
    for (text, told) in [
        ("nothing of ours", "nothing of ours"),
        ("see `toolwarden modes list`", "see Toolwarden"),
        (
            "compare with `toolwarden tools diff x`, accept with `toolwarden tools accept x`.",
            "compare with Toolwarden, accept with Toolwarden.",
        ),
        ("never closed `toolwarden approvals approve 1", "never closed Toolwarden"),
        ("`arguments` stay", "`arguments` stay"),
    ] {
        assert_eq!(without_commands(text), told);
    }
    assert_eq!(ask_for_approval("a1"), "ask the user to approve call a1 in Toolwarden, then repeat it");
}
