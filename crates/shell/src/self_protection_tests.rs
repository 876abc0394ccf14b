//! Which lines would change Toolwarden.

use std::path::{Path, PathBuf};

use crate::{changes_toolwarden, read};

fn held(text: &str) -> bool {
    let protected = [
        PathBuf::from("/home/u/.config/toolwarden"),
        PathBuf::from("/home/u/.cursor/hooks.json"),
        PathBuf::from("/w/.cursor/permissions.json"),
    ];
    read(text).is_ok_and(|line| {
        changes_toolwarden(&line, &protected, Path::new("/w/sub"), Some(Path::new("/home/u"))).is_some()
    })
}

#[test]
fn changing_verbs_are_held() {
    for verb in [
        "allow x",
        "disallow x",
        "trust .",
        "servers add x",
        "servers remove x",
        "servers reload",
        "tools enable a:b",
        "tools accept a:b",
        "modes set x",
        "modes delete x",
        "roles set x",
        "rules add x",
        "rules remove x",
        "settings set a b",
        "admin set x",
        "policy rollback 1",
        "tokens issue",
        "tokens list",
        "leases inspect x",
        "grants issue",
        "grants revoke x",
        "approvals approve 1",
        "approvals deny 1",
        "vault login",
        "vault rotate-key",
        "init",
        "import",
        "connect cursor",
        "serve",
        "unknown",
        "$x",
        "--strange list allow x",
        "--config f allow x",
        "--data-dir=d allow x",
        "--json allow x",
        "sessions mode x",
    ] {
        assert!(held(&format!("toolwarden {verb}")), "{verb}");
        assert!(held(&format!("sudo -E /opt/toolwarden {verb}")), "{verb}");
    }
    assert!(held("sh -c 'toolwarden allow x'"));
    assert!(held("t=toolwarden; $t allow x"));
    assert!(held("toolwarden run -- toolwarden allow x"));
}

#[test]
fn reading_verbs_are_not() {
    for verb in [
        "explain git:status",
        "lint",
        "describe --mode x",
        "allowlist",
        "servers list",
        "servers show x",
        "tools diff a:b",
        "modes show x",
        "roles list",
        "rules check",
        "settings get x",
        "admin show",
        "policy history",
        "approvals list --json",
        "audit query",
        "vault status",
        "doctor",
        "--help",
        "--version",
        "--config f servers list",
        "--json servers list",
        "",
    ] {
        assert!(!held(&format!("toolwarden {verb}")), "{verb}");
    }
}

#[test]
fn protected_paths_are_watched() {
    for text in [
        "echo x > ~/.config/toolwarden/a",
        "echo x >> $HOME/.cursor/hooks.json",
        "echo x > \"$HOME/.cursor/hooks.json\"",
        "echo x > ../.cursor/permissions.json",
        "tee ../.cursor/permissions.json",
        "cp a ~/.config/toolwarden",
        "rm -rf ~/.config",
        "rm -rf ~/.con*",
        "rm -rf ..",
        "mv /home/u /tmp",
        "dd of=/home/u/.cursor/hooks.json",
        "x --file=/home/u/.cursor/hooks.json",
        "x -o/home/u/.cursor/hooks.json",
        "sudo tee /home/u/.cursor/hooks.json",
        "find ~/.config -delete",
        "sh -c 'echo x; tee ~/.cursor/hooks.json'",
        "cd ~/.config/toolwarden && vim policy.toml",
        "cd ~ && rm -rf .config",
        "cd ~/.cursor; cp x hooks.json",
        "sed -i s/a/b/ ${HOME}/.cursor/hooks.json",
    ] {
        assert!(held(text), "{text}");
    }
    for text in [
        "cat ~/.config/toolwarden/a",
        "grep x ../.cursor/permissions.json",
        "cat < ~/.cursor/hooks.json",
        "eslint .",
        "git add .",
        "git add ..",
        "rm -rf build",
        "echo x > notes.txt",
        "ls ~/.config",
        "cp a b",
        "cd src && make",
    ] {
        assert!(!held(text), "{text}");
    }
}
