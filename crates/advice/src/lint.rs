//! Findings about a policy that is not broken but does not do what it seems to: entries and rules
//! that can never match, are shadowed, match no known tool, or open more than was meant.

mod annotations;
mod entries;
mod modes;
mod roles;
mod servers;

use std::collections::HashSet;

pub use annotations::annotations;
pub use servers::LABELS;
use toolwarden_core::{Layer, Origin, name};
use toolwarden_policy::input::AutoRunMode;
use toolwarden_policy::modes::Modes;
use toolwarden_policy::rules::Rules;
use toolwarden_policy::servers::Servers;
use toolwarden_policy::{Finding, PolicyInput, Settings, Severity, shipped};

/// Every finding about a policy, by place. Works on policies that would be refused, too.
#[must_use]
pub fn lint(input: &PolicyInput) -> Vec<Finding> {
    let servers = Servers::compile(&input.servers);
    let mut findings = entries::lint(input, &servers);
    findings.extend(modes::lint(&input.base.modes, &servers));
    findings.extend(roles::lint(&input.base.roles, &servers));
    findings.extend(servers::lint(input, &servers));
    findings.extend(settings(input));
    findings.extend(unread(input));
    findings.extend(instructions(input));
    match Rules::compile(&input.base.rules) {
        Ok(rules) => {
            findings.extend(rules.validate(&servers));
            findings.extend(annotations(&rules));
        }
        Err(faults) => findings.extend(faults),
    }
    if let Err(faults) = Settings::compile(&input.base.settings) {
        findings.extend(faults);
    }
    findings.sort_by(|left, right| {
        let key = |finding: &Finding| {
            (finding.origin.source.clone(), finding.origin.line, finding.origin.column, finding.severity)
        };
        key(left).cmp(&key(right))
    });
    findings.dedup();
    findings
}

fn settings(input: &PolicyInput) -> Vec<Finding> {
    let settings = &input.base.auto_run;
    let place = settings
        .default_mode
        .as_ref()
        .map_or_else(|| Origin::record(Layer::Config, "[auto_run]"), |mode| mode.origin.clone());
    let place = Origin { line: 0, column: 0, ..place };
    let mut findings = Vec::new();
    if settings.auto_review && settings.mode == AutoRunMode::RunEverything {
        let message = "auto_review is on, so run_everything acts as use_allowlist".to_owned();
        findings.push(
            Finding::warning("auto_review_run_everything", place.clone(), message)
                .suggesting("set `mode = \"use_allowlist\"` to say what happens, or switch auto_review off"),
        );
    }
    if !settings.mcp_allowlists && !settings.mode_is_chosen {
        let message =
            "mcp_allowlists is off and no mode is chosen, so MCP calls are held for every user who chose none";
        let origin = Origin::record(Layer::Config, "[features]");
        findings.push(
            Finding::warning("gate_off_without_mode", origin, message.to_owned())
                .suggesting("name a mode in `[auto_run] mode`, or leave `mcp_allowlists` on"),
        );
    }
    if input.base.rules.is_empty() {
        let message = "there are no rules, so every call is denied".to_owned();
        let origin = Origin::record(Layer::Config, "[rules]");
        findings.push(
            Finding::warning("no_rules", origin, message)
                .suggesting("set `shipped = true`, or name files that permit something"),
        );
    }
    if settings.mode == AutoRunMode::RunEverything && !settings.auto_review {
        let message = "run_everything: every call that is not denied runs unasked, except what always asks".to_owned();
        findings.push(Finding::note("run_everything", place.clone(), message));
    }
    let runs = format!("every tool of {} runs unasked, even in ask_every_time", settings.browser_servers.join(", "));
    if !settings.browser_protection {
        let message = format!("browser protection is off: {runs}");
        findings.push(Finding::warning("browser_protection_off", place.clone(), message));
    }
    for (user, _) in input.users.iter().filter(|(_, user)| user.protections.browser == Some(false)) {
        let origin = Origin::record(Layer::Settings, format!("settings of {}", name::shown(user)));
        let message = format!("browser protection of {} is off: {runs}", name::shown(user));
        let help = "`toolwarden settings set auto_run.protections.browser true` switches it on again";
        findings.push(Finding::warning("browser_protection_off", origin, message).suggesting(help));
    }
    if let Some(mode) = &settings.default_mode {
        let known = Modes::compile(&input.base.modes);
        if known.get(&mode.value).is_none() {
            let message =
                format!("default_mode names the unknown mode `{}`: every call without a mode is denied", mode.value);
            findings.push(Finding {
                severity: Severity::Error,
                ..Finding::warning("unknown_mode", mode.origin.clone(), message)
            });
        }
    }
    findings
}

/// Settings that nothing reads: whoever wrote one relies on it (SELF-6).
fn unread(input: &PolicyInput) -> Vec<Finding> {
    let of_tools = input.servers.iter().flat_map(|server| server.tools.values());
    let of_roles = shipped::ROLES.iter().flat_map(|role| role.settings).map(|(_, setting)| *setting);
    let asked_for: HashSet<&str> =
        of_tools.filter_map(|tool| tool.requires_setting.as_deref()).chain(of_roles).collect();
    let unread = Settings::unread(&input.base.settings, &asked_for);
    unread
        .map(|(key, origin)| {
            let message = format!("nothing reads the setting `{}` yet", name::shown(key));
            let finding = Finding::warning("unused_setting", origin.clone(), message);
            match nearest(key, asked_for.iter().copied()) {
                Some(close) => finding.suggesting(format!("did you mean `{}`?", name::shown(close))),
                None => finding.suggesting("a tool asks for it with `requires_setting`"),
            }
        })
        .collect()
}

/// REVIEW-2: instructions steer a classifier; what must hold belongs elsewhere.
fn instructions(input: &PolicyInput) -> Vec<Finding> {
    let texts = input.local.here().flat_map(|file| file.block_instructions.iter().flatten());
    let note = |text: &toolwarden_core::Sourced<String>| {
        Finding::note(
            "block_instructions_steer",
            text.origin.clone(),
            "block_instructions steer the classifier, they do not enforce anything".to_owned(),
        )
        .suggesting(
            "for calls that must stop, use `[auto_run] ask`, a Cedar rule with `@hold`, or the admin's `blocked` list",
        )
    };
    texts.map(note).collect()
}

/// Whether any server's tools are known well enough to say that a name matches none.
fn is_known_server(servers: &Servers, name: &str) -> bool {
    servers.sorted().iter().any(|server| server.name.eq_ignore_ascii_case(name))
}

/// The known name nearest to one that is unknown.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let folded = name.to_ascii_lowercase();
    known
        .map(|candidate| (strsim::damerau_levenshtein(&folded, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
#[path = "lint_tests.rs"]
mod tests;
