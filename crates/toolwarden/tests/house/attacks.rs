//! SECURITY.md lists the attacks of `tests/hostile`, each of them and no others; and nobody else can switch guards off.

use std::collections::BTreeMap;

use crate::workspace::{read, root, rust_files};

/// So many attacks there are at least.
const FEWEST: usize = 80;

/// The attacks of the tables in the kit's test files: `theme::name` and the sentence.
fn tried() -> BTreeMap<String, String> {
    let mut attacks = BTreeMap::new();
    for file in rust_files().iter().filter(|file| file.path.starts_with("tests/hostile/tests/attacks/")) {
        let theme = file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        let Some((_, table)) = file.text.split_once("\nattacks! {\n") else { continue };
        for row in table.split("\n}\n").next().unwrap_or_default().lines() {
            let (name, rest) = row.trim().split_once(": ").unwrap_or_default();
            // Behind the sentence there may be a reason for what the row switches off.
            let quoted = rest.split_once(", \"").and_then(|(_, words)| words.rsplit_once('"'));
            let sentence = quoted.map(|(sentence, _)| sentence).unwrap_or_default();
            assert!(!name.is_empty() && !sentence.is_empty(), "{}: `{row}` cannot be read", file.path);
            attacks.insert(format!("{theme}::{name}"), sentence.to_owned());
        }
    }
    attacks
}

/// The attacks of SECURITY.md.
fn told() -> BTreeMap<String, String> {
    let page = read("SECURITY.md");
    let rows = page.lines().filter_map(|line| {
        let (name, sentence) = line.strip_prefix("| `")?.split_once("` | ")?;
        let sentence = sentence.strip_suffix(" |")?;
        name.contains("::").then(|| (name.to_owned(), sentence.to_owned()))
    });
    rows.collect()
}

#[test]
fn every_attack_is_told_of_and_every_one_told_of_is_tried() {
    let (tried, told) = (tried(), told());
    for (name, sentence) in &tried {
        assert_eq!(told.get(name), Some(sentence), "SECURITY.md does not tell of `{name}` in these words");
    }
    for name in told.keys() {
        assert!(tried.contains_key(name), "SECURITY.md tells of `{name}`, which nobody tries");
    }
    assert!(tried.len() >= FEWEST, "only {} attacks", tried.len());
}

#[test]
fn only_the_hostile_kit_can_switch_guards_off() {
    let directories = ["crates", "bench", "tests", "fuzz"].map(|part| root().join(part));
    let mut manifests =
        vec![root().join("Cargo.toml"), root().join("fuzz/Cargo.toml"), root().join("bench/Cargo.toml")];
    for directory in directories.iter().filter_map(|directory| std::fs::read_dir(directory).ok()) {
        manifests
            .extend(directory.flatten().map(|entry| entry.path().join("Cargo.toml")).filter(|path| path.is_file()));
    }
    let mut switches = Vec::new();
    for path in manifests {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if text.contains("\"weak\"") || text.contains("/weak") {
            switches.push(path);
        }
    }
    assert_eq!(switches, [root().join("tests/hostile/Cargo.toml")]);
    let manifest = read("Cargo.toml");
    assert!(manifest.contains("default-members = [\"crates/toolwarden\"]"), "a plain build must not contain the kit");
}
