//! The fuzz targets in the ordinary test profile: the whole corpus, then bounded random changes of it.
//!
//! Instrumented runs are `make fuzz`; this keeps what they found from coming back, and would notice a
//! crash or a hang that is easy to reach.

#[path = "../../../../fuzz/targets.rs"]
mod targets;

use std::fs;
use std::path::Path;

use targets::TARGETS;

/// Random changes per target.
const CHANGES: usize = 4000;

/// A small deterministic generator: the same changes in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).unwrap_or(1)).unwrap_or(0)
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let files: Vec<Vec<u8>> = paths.into_iter().filter_map(|path| fs::read(path).ok()).collect();
    assert!(!files.is_empty(), "no corpus in {}", directory.display());
    files
}

/// Cuts, repeats, swaps and overwrites, and splices in a piece of another file.
fn change(chance: &mut Chance, files: &[Vec<u8>]) -> Vec<u8> {
    const PIECES: [&[u8]; 14] = [
        b"\0",
        b"\xff",
        b"\"",
        b"{",
        b"}",
        b"[",
        b":",
        b"*",
        b"$(",
        b"`",
        b"\r\n",
        "\u{202e}".as_bytes(),
        b"\\u0000",
        b"9999999999999999999",
    ];
    let mut bytes = files.get(chance.below(files.len())).cloned().unwrap_or_default();
    bytes.truncate(4096);
    for _ in 0..=chance.below(4) {
        let start = chance.below(bytes.len() + 1);
        let end = (start + chance.below(16)).min(bytes.len());
        let piece: Vec<u8> = match chance.below(4) {
            0 => Vec::new(),
            1 => PIECES.get(chance.below(PIECES.len())).map(|piece| piece.to_vec()).unwrap_or_default(),
            2 => bytes.get(start..end).map(|part| part.repeat(1 + chance.below(40))).unwrap_or_default(),
            _ => {
                let other = files.get(chance.below(files.len())).cloned().unwrap_or_default();
                let from = chance.below(other.len() + 1);
                other.get(from..(from + 40).min(other.len())).unwrap_or_default().to_vec()
            }
        };
        bytes.splice(start..end, piece);
    }
    bytes
}

fn replay(name: &str) {
    let found = TARGETS.iter().find(|target| target.name == name);
    assert!(found.is_some(), "no target `{name}`");
    let Some(target) = found else { unreachable!("asserted") };
    let files = corpus(name);
    files.iter().for_each(|bytes| (target.run)(bytes));
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    for _ in 0..CHANGES {
        (target.run)(&change(&mut chance, &files));
    }
}

macro_rules! replays {
    ($($test:ident $name:literal;)+) => { $(#[test] fn $test() { replay($name); })+ };
}

replays! {
    fuzz_json "json";
    fuzz_shell "shell";
    fuzz_entries "entries";
    fuzz_permissions "permissions";
    fuzz_servers "servers";
    fuzz_modes "modes";
    fuzz_config "config";
    fuzz_admin "admin";
    fuzz_catalog "catalog";
    fuzz_rules "rules";
    fuzz_message "message";
    fuzz_scanner "scanner";
    fuzz_events "events";
    fuzz_headers "headers";
    fuzz_methods "methods";
}

#[test]
fn every_target_is_replayed_and_run() {
    let (manifest, script) = (include_str!("../../../../fuzz/Cargo.toml"), include_str!("../../../../fuzz/run"));
    let text = include_str!("main.rs");
    for target in &TARGETS {
        assert!(text.contains(&format!("fuzz_{0} \"{0}\";", target.name)), "{} is not replayed", target.name);
        assert!(manifest.contains(&format!("name = \"{}\"", target.name)), "{} has no fuzzer", target.name);
        assert!(script.contains(&format!(" {}", target.name)), "{} is not run by `make fuzz`", target.name);
    }
}
