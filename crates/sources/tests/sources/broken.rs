//! Bad input: every broken file has its messages in one golden list, and none of them grants.

use std::fs;
use std::path::{Path, PathBuf};

use toolwarden_core::Entry;
use toolwarden_sources::{Loaded, Refusal, SourceKind, WorkspaceTrust, check_file};

use crate::home::{Home, Outcome};

fn fixtures() -> Result<Vec<PathBuf>, std::io::Error> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let mut paths: Vec<_> = fs::read_dir(directory)?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Where a file of this name stands in a home, and what is needed to have it read.
fn place(home: &mut Home, name: &str) -> Option<String> {
    if let Some(record) = ["trust.json"].iter().find(|record| name.ends_with(**record)) {
        return Some(format!("data/{record}"));
    }
    Some(match SourceKind::of(Path::new(name))? {
        SourceKind::Permissions => "home/.cursor/permissions.json".to_owned(),
        SourceKind::Modes => {
            home.locations.workspace_trust = WorkspaceTrust::AsTheyAre;
            "work/.roomodes".to_owned()
        }
        SourceKind::Servers => {
            home.locations.workspace_trust = WorkspaceTrust::AsTheyAre;
            "work/.cursor/mcp.json".to_owned()
        }
        SourceKind::Config => "config/toolwarden.toml".to_owned(),
        SourceKind::Admin | SourceKind::Catalog | SourceKind::Rules | SourceKind::Record => return None,
    })
}

/// What a load with a broken file may still hold: no entry that matches, no server that is on, and
/// no usable mode besides the built-in ones.
fn assert_grants_nothing(name: &str, loaded: &Loaded) {
    for file in loaded.input.local.here() {
        for entry in file.mcp_allowlist.iter().flatten() {
            assert!(Entry::parse(&entry.value).is_err(), "{name} grants {}", entry.value);
        }
        let valid = |text: &str| toolwarden_sources::List::Terminal.fault(text).is_none();
        assert!(!file.terminal_allowlist.iter().flatten().any(|entry| valid(&entry.value)), "{name} grants a command");
    }
    assert!(loaded.input.users.values().all(|user| user.mcp_allowlist.is_empty()), "{name}");
    assert!(!loaded.input.servers.iter().any(|server| server.enabled), "{name} adds a server");
    let custom = loaded.input.base.modes.iter().filter(|mode| mode.origin.source.as_ref() != "built-in");
    assert!(custom.into_iter().all(|mode| !mode.faults.is_empty()), "{name} adds a mode");
}

/// Whoever owns it, a broken admin file stops the start.
#[test]
fn allow_10_every_broken_admin_file_is_refused() -> Outcome {
    for path in fixtures()?.iter().filter(|path| SourceKind::of(path) == Some(SourceKind::Admin)) {
        let mut home = Home::new()?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        home.locations.system_admin_file = Some(home.write(&format!("config/{name}"), fs::read(path)?)?);
        assert!(matches!(home.load(), Err(Refusal::Faults { .. })), "{name}");
    }
    Ok(())
}

#[test]
fn every_broken_file_is_told_and_grants_nothing() -> Outcome {
    let mut golden = Vec::new();
    let fixtures = fixtures()?;
    assert!(fixtures.len() >= 70, "only {} broken files", fixtures.len());
    for path in fixtures {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut home = Home::new()?;
        golden.push(format!("## {name}"));
        let Some(relative) = place(&mut home, &name) else {
            let findings = check_file(&path);
            assert!(findings.iter().any(toolwarden_sources::Finding::is_error), "{name} is not told");
            let directory = format!("{}/", path.parent().unwrap_or(Path::new("")).display());
            golden.extend(findings.iter().map(|finding| finding.to_string().replace(&directory, "")));
            continue;
        };
        home.write(&relative, fs::read(&path)?)?;
        match home.load() {
            Ok(loaded) => {
                assert!(!loaded.findings.is_empty(), "{name} is not told");
                golden.extend(home.shown(&loaded.findings));
                assert_grants_nothing(&name, &loaded);
            }
            Err(Refusal::Faults { findings, .. }) => {
                golden.push("refused:".to_owned());
                golden.extend(home.shown(&findings));
            }
            Err(other) => golden.push(other.to_string()),
        }
    }
    insta::assert_snapshot!("broken_files", golden.join("\n"));
    Ok(())
}
