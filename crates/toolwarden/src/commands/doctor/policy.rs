//! Whether the config is found, the policy compiles, and the workspace's files are trusted.

use toolwarden_core::Records;
use toolwarden_core::name::shown;
use toolwarden_pins as pins;
use toolwarden_policy::Severity;
use toolwarden_sources::{Loaded, Locations, Refusal, SourceState, load};

use super::Check;
use crate::commands::lint;
use crate::output::plain_finding_text;
use crate::wire;
use toolwarden_cli::PolicyArguments;

/// As many findings as are told here; `lint` tells all.
const MOST_FINDINGS: usize = 10;

/// The checks, and what was loaded where that went well.
pub(super) fn check(
    locations: &Locations,
    arguments: &PolicyArguments,
    (store, own): &(Records, Vec<String>),
) -> (Vec<Check>, Option<Loaded>) {
    let loaded = match load(locations, store) {
        Ok(loaded) => loaded,
        Err(Refusal::Untrusted { path, directory }) => {
            let path = shown(&path.to_string_lossy()).into_owned();
            let next = format!(
                "look at it, then run `toolwarden trust {}`, or use --config",
                shown(&directory.to_string_lossy())
            );
            let message = format!("{path} came with a workspace nobody trusted, so nothing is read");
            return (vec![Check::problem("config", message, next)], None);
        }
        Err(Refusal::Faults { findings, .. }) => {
            let errors: Vec<String> =
                findings.iter().filter(|finding| finding.is_error()).map(|finding| finding.to_string()).collect();
            let next = "repair the file; `toolwarden lint` shows all findings";
            return (vec![Check::problem("config", errors.join("\n"), next)], None);
        }
    };
    let config = match &loaded.config_path {
        Some(path) => Check::ok("config", format!("{} is used", shown(&path.to_string_lossy()))),
        None => Check::ok("config", "there is none, so defaults count"),
    };
    let trust = workspace(&loaded, locations);
    match wire::complete(loaded, locations, arguments) {
        Ok(loaded) => (vec![config, policy(&loaded, locations, (store, own)), trust], Some(loaded)),
        Err(error) => (vec![config, Check::problem("policy", format!("{error:#}"), "repair it")], None),
    }
}

/// What `lint` finds, of the same servers and tools. Schemas that cannot be used have a check of their own.
fn policy(loaded: &Loaded, locations: &Locations, (store, own): (&Records, &[String])) -> Check {
    let mut input = loaded.input.clone();
    input.servers.extend(own.iter().map(|name| wire::demo(name, store)));
    // A record that cannot be read is told of with its server.
    let _ = pins::fill(locations, &mut input);
    let mut findings = toolwarden_sources::merged(&loaded.findings, toolwarden_advice::lint(&input));
    findings.retain(|finding| finding.code != "schema_unusable");
    findings.extend(lint::at_start(loaded));
    let of = |severity: Severity| findings.iter().filter(move |finding| finding.severity == severity);
    let (errors, warnings) = (of(Severity::Error).count(), of(Severity::Warning).count());
    let first: Vec<String> =
        of(Severity::Error).chain(of(Severity::Warning)).take(MOST_FINDINGS).map(plain_finding_text).collect();
    let first = first.join("\n");
    match (errors, warnings) {
        (0, 0) => Check::ok("policy", "compiles, and nothing in it looks wrong"),
        (0, count) => {
            Check::warning("policy", format!("compiles, with {count} warning(s): {first}"), "run `toolwarden lint`")
        }
        (count, _) => Check::problem("policy", format!("has {count} error(s): {first}"), "run `toolwarden lint`"),
    }
}

fn workspace(loaded: &Loaded, locations: &Locations) -> Check {
    let root = locations.workspace_root().unwrap_or_else(|| locations.working_directory.clone());
    let root = shown(&root.to_string_lossy()).into_owned();
    let names = |state: SourceState| {
        let of_state = loaded.sources.iter().filter(|source| source.state == state);
        of_state.map(|source| shown(&source.path.to_string_lossy()).into_owned()).collect::<Vec<_>>().join(", ")
    };
    let (untrusted, changed) = (names(SourceState::Untrusted), names(SourceState::Changed));
    let next = format!("look at them, then run `toolwarden trust {root}`");
    if !changed.is_empty() {
        let message = format!("changed since they were trusted: {changed}; what was trusted counts");
        return Check::warning("workspace", message, next);
    }
    if !untrusted.is_empty() {
        return Check::warning("workspace", format!("not trusted, so only what they forbid counts: {untrusted}"), next);
    }
    Check::ok("workspace", format!("{root}: no file waits to be trusted"))
}
