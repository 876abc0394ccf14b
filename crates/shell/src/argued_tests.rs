//! Which arguments of tools are command lines that change Toolwarden, and which only speak of it.

use std::path::{Path, PathBuf};

use super::{text_changes_toolwarden, words_change_toolwarden};
use crate::places::Places;

fn held(text: &str) -> bool {
    let places = Places::compile(
        &[PathBuf::from("/home/u/.config/toolwarden"), PathBuf::from("/w/.cursor/hooks.json")],
        Some(Path::new("/home/u")),
    );
    text_changes_toolwarden(text, &places, Path::new("/w")).is_some()
}

#[test]
fn self_1_lines_in_arguments_are_held() {
    for text in [
        "toolwarden allow x:y",
        "/opt/bin/Toolwarden allow x:y",
        "sh -c 'toolwarden trust .'",
        "sudo toolwarden approvals approve 1",
        "cd /tmp && toolwarden --json servers add x",
        "t=toolwarden; $t allow x",
        "toolwarden $verb x",
        "echo 'unclosed; toolwarden allow x",
        "don't ask; `toolwarden approvals approve 7`",
        "git status\ntoolwarden modes set x",
        "rm -rf ~/.config",
        "cd .cursor && tee hooks.json",
        "echo {} > .cursor/hooks.json",
        "tool''warden approvals approve 7",
        "tool\"\"warden allow x",
        "tool\\warden allow x",
        "'tool'warden allow x",
        "bash -c 'tool\"\"warden allow x'",
        "bash <<E\ntoolwarden allow a:b\nE",
        "printf 'toolwarden allow a:b' | sh",
        "import os; os.system('toolwarden allow a:b')",
        "{/opt/,}toolwarden allow a:b",
    ] {
        assert!(held(text), "{text}");
    }
}

#[test]
fn prose_and_reading_are_not() {
    for text in [
        "toolwarden is a gate between agents and tools",
        "Please install toolwarden and look at the policy",
        "toolwarden explain db:get",
        "toolwarden approvals list",
        "I don't know whether toolwarden holds this",
        "`explain` of toolwarden\nshows why",
        "Start toolwarden on every machine",
        "what does the .cursor directory hold?",
        "git status && make test",
        "",
    ] {
        assert!(!held(text), "{text}");
    }
}

#[test]
fn self_1_words_of_a_list_are_held() {
    let held = |words: &[&str]| words_change_toolwarden(words.iter().copied()).is_some();
    assert!(held(&["toolwarden", "allow", "x"]));
    assert!(held(&["sudo", "-E", "/usr/bin/toolwarden", "--json", "servers", "add", "x"]));
    assert!(!held(&["toolwarden", "servers", "list"]));
    assert!(!held(&["security", "toolwarden", "mcp"]));
    assert!(!held(&["toolwarden"]));
    assert!(!held(&["allow", "x"]));
}
