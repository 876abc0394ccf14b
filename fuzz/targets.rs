//! What the fuzzers do with bytes: every reader, the wire, and the shell reader. Shared by the instrumented
//! fuzzers and by the replay test that runs in CI.

#[path = "wire.rs"]
mod wire;

use std::path::Path;

use toolwarden_core::json::{Document, Limits};
use toolwarden_core::{Digest, Entry, Layer, Origin};
use toolwarden_policy::input::RuleFile;
use toolwarden_policy::rules::Rules;
use toolwarden_policy::servers::Servers;
use toolwarden_policy::shell;
use toolwarden_sources::{SourceKind, check_bytes};

/// One target.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

pub const TARGETS: [Target; 15] = [
    Target { name: "json", run: json },
    Target { name: "shell", run: shell_line },
    Target { name: "entries", run: entries },
    Target { name: "permissions", run: |bytes| read(SourceKind::Permissions, bytes) },
    Target { name: "servers", run: |bytes| read(SourceKind::Servers, bytes) },
    Target { name: "modes", run: |bytes| read(SourceKind::Modes, bytes) },
    Target { name: "config", run: |bytes| read(SourceKind::Config, bytes) },
    Target { name: "admin", run: |bytes| read(SourceKind::Admin, bytes) },
    Target { name: "catalog", run: |bytes| read(SourceKind::Catalog, bytes) },
    Target { name: "rules", run: rules },
    Target { name: "message", run: wire::read_message },
    Target { name: "scanner", run: wire::scanner },
    Target { name: "events", run: wire::events },
    Target { name: "headers", run: wire::header_values },
    Target { name: "methods", run: wire::methods },
];

fn read(kind: SourceKind, bytes: &[u8]) {
    for finding in check_bytes("fuzz", kind, bytes) {
        // What is shown to people must not carry what reorders or hides text.
        assert!(!finding.to_string().chars().any(toolwarden_core::name::is_deceptive), "{finding:?}");
    }
}

/// A document reads back as itself, and its digest does not depend on white space around it.
fn json(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(document) = Document::parse(text, Limits { bytes: 1 << 20, depth: 64 }) else { return };
    let again = Document::parse(document.root().raw(), Limits { bytes: 1 << 20, depth: 64 });
    assert_eq!(again.map(|again| Digest::of_params(&again)), Ok(Digest::of_params(&document)));
}

/// Whatever a line is, judging it ends; and an offered entry really covers its command.
fn shell_line(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(line) = shell::read(text) else { return };
    let _ = shell::deletes(&line);
    let _ = shell::command_names(&line);
    let _ = shell::redirections_stay_inside(&line, Path::new("/w"), Path::new("/w"));
    let _ = shell::changes_toolwarden(&line, &["/w/toolwarden.toml".into()], Path::new("/w"), None);
    for command in &line.commands {
        if let Some(entry) = shell::candidate(command) {
            let entry = shell::ShellEntry::parse(&entry);
            assert!(entry.is_ok_and(|entry| entry.matches(command)), "{text}");
        }
    }
}

fn entries(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(entry) = Entry::parse(text) {
        assert!(Entry::parse(text).is_ok_and(|again| again.covers(&entry)));
    }
    let _ = shell::ShellEntry::parse(text);
}

fn rules(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let file = RuleFile { origin: Origin::new(Layer::Config, "fuzz", 1, 1), text: text.to_owned() };
    if let Ok(rules) = Rules::compile(&[file]) {
        let _ = rules.validate(&Servers::compile(&[]));
    }
}
