//! Who may depend on whom, as ARCHITECTURE.md says: rooms, and heavy kinds of crates.

use std::collections::BTreeMap;
use std::process::Command;

use crate::workspace::{read, root};

/// Room → rooms it may use.
const ROOMS: [(&str, &[&str]); 27] = [
    ("core", &[]),
    ("shell", &[]),
    ("policy", &["core", "shell"]),
    ("advice", &["core", "policy"]),
    ("trees", &["core"]),
    ("sources", &["core", "policy", "trees"]),
    ("mcp", &["core"]),
    ("store", &["core"]),
    ("vault", &["core"]),
    ("net", &["core"]),
    ("telemetry", &["core", "net"]),
    ("classifier", &["core", "net"]),
    ("guard", &["core", "policy", "sources"]),
    ("pins", &["core", "policy", "sources", "guard"]),
    ("conversations", &["core", "policy", "sources", "mcp", "store"]),
    ("refusals", &["core", "policy", "mcp", "conversations"]),
    ("review", &["core", "policy", "store"]),
    (
        "steps",
        &[
            "core",
            "policy",
            "advice",
            "sources",
            "mcp",
            "store",
            "guard",
            "pins",
            "conversations",
            "telemetry",
            "classifier",
            "refusals",
            "review",
        ],
    ),
    ("gateway", &["core", "policy", "mcp", "pins", "conversations", "refusals", "review", "steps"]),
    ("doors", &["core", "mcp", "conversations", "telemetry", "gateway"]),
    ("control", &["core", "policy", "sources", "store", "pins", "advice"]),
    ("console", &["core", "control"]),
    ("notices", &["core", "store", "net", "control"]),
    ("watch", &["core", "control"]),
    ("cli", &["core"]),
    ("demo", &[]),
    (
        "toolwarden",
        &[
            "core",
            "policy",
            "advice",
            "sources",
            "mcp",
            "store",
            "vault",
            "telemetry",
            "classifier",
            "pins",
            "review",
            "gateway",
            "doors",
            "control",
            "console",
            "notices",
            "watch",
            "cli",
            "demo",
        ],
    ),
];

/// Heavy crate → rooms that may name it.
const HEAVY: [(&str, &[&str]); 12] = [
    ("cedar-policy", &["policy"]),
    ("tree-sitter", &["shell"]),
    ("tree-sitter-bash", &["shell"]),
    ("jsonschema", &["policy"]),
    ("anyhow", &["toolwarden"]),
    ("clap", &["cli", "toolwarden"]),
    (
        "tokio",
        &[
            "mcp",
            "net",
            "store",
            "telemetry",
            "classifier",
            "guard",
            "conversations",
            "review",
            "steps",
            "gateway",
            "doors",
            "control",
            "console",
            "notices",
            "watch",
            "toolwarden",
        ],
    ),
    ("hyper", &["mcp", "net", "doors", "console", "toolwarden"]),
    ("axum", &["console"]),
    ("reqwest", &[]),
    ("sqlx", &["store"]),
    ("aws-lc-rs", &["vault"]),
];

/// Crates that must not be in the tree at all.
const BANNED: [&str; 4] = ["ring", "openssl-sys", "native-tls", "serde_yaml"];

/// The names under `[dependencies]` of a room.
fn dependencies(room: &str) -> Vec<String> {
    let manifest = read(&format!("crates/{room}/Cargo.toml"));
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let names = section.lines().filter_map(|line| line.split(['.', '=', ' ']).next());
    names.filter(|name| !name.is_empty() && !name.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn rooms_depend_as_the_table_says() {
    let table: BTreeMap<&str, &[&str]> = ROOMS.into_iter().collect();
    let directories = std::fs::read_dir(root().join("crates")).into_iter().flatten().flatten();
    let mut seen = 0;
    for room in directories.filter_map(|entry| entry.file_name().into_string().ok()) {
        let allowed = table.get(room.as_str());
        assert!(allowed.is_some(), "the room `{room}` is not in the table of this test and of ARCHITECTURE.md");
        let used = dependencies(&room);
        assert!(!used.is_empty(), "no dependencies read for `{room}`");
        for other in used.iter().filter_map(|name| name.strip_prefix("toolwarden-")) {
            assert!(allowed.is_some_and(|rooms| rooms.contains(&other)), "`{room}` must not use `{other}`");
        }
        for (heavy, rooms) in HEAVY {
            let names = used.iter().any(|name| name == heavy);
            assert!(!names || rooms.contains(&room.as_str()), "`{room}` must not use `{heavy}`");
        }
        seen += 1;
    }
    assert_eq!(seen, ROOMS.len());
}

/// Whether a crate is built for this machine; Cargo.lock alone also names what no feature switches on.
fn is_built(name: &str) -> bool {
    let arguments = ["tree", "--workspace", "--offline", "--invert", name];
    let output = Command::new("cargo").args(arguments).current_dir(root()).output();
    output.is_ok_and(|output| output.status.success() && !output.stdout.is_empty())
}

#[test]
fn one_crypto_stack_and_nothing_unmaintained() {
    for name in BANNED {
        assert!(!is_built(name), "`{name}` is in the tree");
    }
    assert!(is_built("aws-lc-rs"), "the way this test asks does not work");
}

#[test]
fn heavy_crates_come_once() {
    let lock = read("Cargo.lock");
    for name in
        ["cedar-policy", "cedar-policy-core", "tree-sitter", "jsonschema", "jiff", "clap", "toml_edit", "hashbrown"]
    {
        let versions = lock.matches(&format!("name = \"{name}\"\n")).count();
        assert!(versions <= 1 || name == "hashbrown", "`{name}` is in the tree {versions} times");
    }
}
