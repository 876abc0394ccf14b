//! `lint`: findings for every policy file, with place and suggestion.

use std::path::{Path, PathBuf};

use anyhow::Result;
use toolwarden_core::{Layer, Origin};
use toolwarden_pins as pins;
use toolwarden_policy::{Finding, PolicyInput, Severity};
use toolwarden_sources::readers::{config, permissions, roomodes};
use toolwarden_sources::{ConfigFile, Loaded, Locations, Refusal, SourceKind, SourceState, WebhookSection, check_file};

use crate::clerk::Desk;
use crate::output::{self, BadInput, Exit, FindingOut, finding_text};
use crate::{serving, wire};
use toolwarden_cli::{Format, LintArguments, Places, PolicyArguments};

pub fn run(places: &Places, arguments: &LintArguments) -> Result<Exit> {
    let findings =
        if arguments.files.is_empty() { here(places, &arguments.policy)? } else { of_files(&arguments.files)? };
    print(&findings, arguments.format)
}

/// Everything that counts here, read and compiled.
pub(super) fn here(places: &Places, arguments: &PolicyArguments) -> Result<Vec<Finding>> {
    let desk = Desk::open(places, arguments.workspace.as_deref())?;
    if let Some(missing) = places.config.as_ref().filter(|path| !path.exists()) {
        return Err(BadInput(format!("{}: no such file", missing.display())).into());
    }
    match wire::load_here(&desk)? {
        Ok(loaded) => {
            let mut loaded = wire::complete(loaded, desk.locations(), arguments)?;
            // Tools that servers listed to a gateway. A record that cannot be read is `doctor`'s to say.
            let _ = pins::fill(desk.locations(), &mut loaded.input);
            let mut findings = toolwarden_sources::merged(&loaded.findings, toolwarden_advice::lint(&loaded.input));
            findings.extend(at_start(&loaded));
            findings.extend(not_trusted(&loaded, &findings)?);
            Ok(findings)
        }
        Err(Refusal::Faults { findings, .. }) => {
            Ok(findings.iter().map(toolwarden_sources::Finding::of_policy).collect())
        }
        Err(refusal @ Refusal::Untrusted { .. }) => Err(BadInput(refusal.to_string()).into()),
    }
}

/// What is wrong with files of the workspace as they are now, which do not count before somebody trusts them.
fn not_trusted(loaded: &Loaded, known: &[Finding]) -> Result<Vec<Finding>> {
    let waits = |state: SourceState| matches!(state, SourceState::Untrusted | SourceState::Changed);
    let waiting = loaded.sources.iter().filter(|source| waits(source.state) && source.path.is_file());
    let paths: Vec<PathBuf> = waiting.map(|source| source.path.clone()).collect();
    let mut findings = of_files(&paths)?;
    let is_known =
        |finding: &Finding| known.iter().any(|one| one.code == finding.code && one.message == finding.message);
    findings.retain(|finding| !is_known(finding));
    Ok(findings)
}

/// Schemas that cannot be used, of tools that servers listed to a gateway, for `doctor`.
pub(super) fn seen_schemas(locations: &Locations, input: &PolicyInput) -> Vec<Finding> {
    let mut seen = PolicyInput { servers: input.servers.clone(), ..PolicyInput::default() };
    seen.servers.retain(|server| server.catalog.is_none());
    if pins::fill(locations, &mut seen).is_err() {
        return Vec::new();
    }
    let mut findings = toolwarden_advice::lint(&seen);
    findings.retain(|finding| finding.code == "schema_unusable");
    findings
}

/// What `serve` would refuse although the files can be read.
pub(super) fn at_start(loaded: &Loaded) -> Vec<Finding> {
    let label =
        loaded.config_path.as_ref().map_or_else(|| "toolwarden.toml".to_owned(), |path| path.display().to_string());
    unusable(&loaded.config, &loaded.store.webhooks, &label)
}

fn unusable(config: &ConfigFile, webhooks: &[WebhookSection], label: &str) -> Vec<Finding> {
    let listen = serving::listen_address(config, None).err();
    let webhooks = webhooks.iter().filter_map(|webhook| serving::check_webhooks(std::slice::from_ref(webhook)).err());
    let faults = listen.into_iter().chain(webhooks).map(|error| format!("{error:#}"));
    faults
        .map(|message| Finding {
            // What is missing here may be there where the server starts.
            severity: if message.contains("has no value here") { Severity::Warning } else { Severity::Error },
            code: "refused_at_start",
            origin: Origin::new(Layer::Config, label, 0, 0),
            message,
            suggestion: Some("`toolwarden serve` does not start with this".to_owned()),
        })
        .collect()
}

/// Each file by itself; rule files are also checked against the schema.
fn of_files(files: &[PathBuf]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    if let Some(missing) = files.iter().find(|path| !path.exists()) {
        return Err(BadInput(format!("{}: no such file", missing.display())).into());
    }
    for path in files {
        let of_reader = check_file(path);
        let of_judge = if path.is_file() { judged_alone(path)? } else { Vec::new() };
        findings.extend(toolwarden_sources::merged(&of_reader, of_judge));
    }
    Ok(findings)
}

/// What the judge says of a policy that holds this file alone.
fn judged_alone(path: &Path) -> Result<Vec<Finding>> {
    let mut input = PolicyInput::default();
    let label = path.display().to_string();
    match SourceKind::of(path) {
        Some(SourceKind::Rules) => input.base.rules.push(wire::rule_file(path)?),
        Some(SourceKind::Permissions) => {
            input.local.files.push(permissions::read_bytes(&label, Layer::UserFile, &std::fs::read(path)?).value);
        }
        Some(SourceKind::Modes) => {
            input.base.modes = roomodes::read_bytes(&label, Layer::UserFile, &std::fs::read(path)?).value
        }
        Some(SourceKind::Config) => {
            let reading = config::read_bytes(&label, config::Standing::Operator, &std::fs::read(path)?);
            if !reading.broken {
                let webhooks = reading.value.control.webhooks.clone();
                return Ok(unusable(&reading.value, &webhooks, &label));
            }
        }
        _ => {}
    }
    // A file alone need not hold rules.
    Ok(toolwarden_advice::lint(&input).into_iter().filter(|finding| finding.code != "no_rules").collect())
}

/// Prints findings and a count; exit 1 where one is an error.
pub(super) fn print(findings: &[Finding], format: Format) -> Result<Exit> {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    if format.json {
        output::json(&findings.iter().map(FindingOut::from).collect::<Vec<_>>())?;
    } else if findings.is_empty() {
        output::text("no findings\n")?;
    } else {
        let mut lines: Vec<String> = findings.iter().map(finding_text).collect();
        lines.push(format!("{} finding(s), {errors} error(s)", findings.len()));
        output::text(&format!("{}\n", lines.join("\n")))?;
    }
    Ok(if errors > 0 { Exit::Failed } else { Exit::Done })
}
