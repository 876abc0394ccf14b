//! Help, completions and the manual page exist for every command; every command has an example.

use crate::house::House;

/// That every command is described, with an example, is checked from the definition itself (`help_tests.rs` of the command line).
#[test]
fn help_is_printed_for_commands_and_their_verbs() {
    let house = House::new();
    for command in [&["explain", "--help"][..], &["approvals", "--help"], &["approvals", "watch", "--help"]] {
        let ran = house.run(command);
        assert!(
            ran.code == 0 && ran.out.contains("Example") && ran.out.contains("--data-dir"),
            "{command:?}\n{}",
            ran.out
        );
    }
    assert!(house.run(&["--help"]).out.contains("Exit codes: 0 done or allow"));
}

#[test]
fn completions_and_manual_are_generated() {
    let house = House::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = house.run(&["completions", shell]);
        assert!(ran.code == 0 && ran.out.contains("explain"), "{shell}");
    }
    assert!(house.run(&["man"]).out.contains("toolwarden"));
}

#[test]
fn usage_errors_exit_2() {
    let house = House::new();
    for arguments in [&["explain"][..], &["nonsense"], &["explain", "a:b", "--bogus"], &["trust"]] {
        assert_eq!(house.run(arguments).code, 2, "{arguments:?}");
    }
}

#[test]
fn no_colour_where_nobody_sees_it() {
    let house = House::new();
    assert!(!house.run(&["explain", "a:b"]).out.contains('\u{1b}'));
}
