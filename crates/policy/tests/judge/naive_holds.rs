//! Rules and the holds nobody's allowlist lifts (CORE-4, GATE-10, GATE-12, SELF-1).

use std::path::Path;

use toolwarden_core::{CallKind, Operation, Reason};
use toolwarden_policy::Definition;

use crate::naive::{Case, Kind};
use crate::naive_allowlist::deny_entry_matches;
use crate::naive_context::Chosen;
use crate::naive_places;
use crate::naive_self::line_changes_us;
use crate::rule::{Effect, Facts, Rule, Truth};

fn answers(case: &Case<'_>) -> Vec<(Effect, Truth)> {
    let mut labels: Vec<&str> = Vec::new();
    labels.extend(case.definition().iter().flat_map(|server| server.labels.iter()).map(String::as_str));
    labels.extend(case.tool_configs().iter().flat_map(|tool| tool.labels.iter()).map(String::as_str));
    let mode = match &case.mode {
        Chosen::Mode { slug, .. } => Some(slug.as_str()),
        Chosen::None | Chosen::Denied(_) => None,
    };
    let facts = Facts {
        caller: &case.query.caller,
        roles: case.role_names(),
        server: &case.named.server,
        tool: &case.named.tool,
        labels,
        arguments: &case.arguments,
        mode,
        seen: &case.query.seen,
    };
    let answer = |rule: &Rule| if rule.cannot_look(&facts) { Truth::Error } else { rule.applies(&facts) };
    case.rules.iter().map(|rule| (rule.effect, answer(rule))).collect()
}

/// Default deny, forbid wins, an error denies; holds hold only what is permitted.
pub fn rules(case: &Case<'_>) -> Option<Reason> {
    let answers = answers(case);
    if answers.iter().any(|(_, truth)| *truth == Truth::Error) {
        return Some(Reason::RuleError);
    }
    if answers.contains(&(Effect::Forbid, Truth::Yes)) {
        return Some(Reason::RuleForbid);
    }
    (!answers.contains(&(Effect::Permit, Truth::Yes))).then_some(Reason::RuleNoPermit)
}

/// Mandatory holds, the strictest first.
pub fn mandatory(case: &Case<'_>) -> Vec<Reason> {
    let mut holds = Vec::new();
    match case.query.definition {
        Definition::Accepted => {}
        Definition::Changed | Definition::ServerChanged => holds.push(Reason::DefinitionChanged),
        Definition::New => holds.push(Reason::DefinitionNew),
    }
    if changes_us(case) {
        holds.push(Reason::SelfProtection);
    }
    if case.input.base.auto_run.ask.iter().any(|entry| deny_entry_matches(&entry.value, case)) {
        holds.push(Reason::MandatoryAsk);
    }
    if case.tool_configs().iter().any(|tool| tool.human_review) {
        holds.push(Reason::HumanReview);
    }
    if answers(case).contains(&(Effect::Hold, Truth::Yes)) {
        holds.push(Reason::RuleHold);
    }
    holds
}

/// Whether the caller's own answer would not do.
pub fn needs_another_person(case: &Case<'_>) -> bool {
    case.input.base.approvers.second_person.iter().any(|entry| deny_entry_matches(&entry.value, case))
}

fn changes_us(case: &Case<'_>) -> bool {
    let command = match &case.kind {
        Kind::Shell(command) => command,
        Kind::Mcp(Operation::ReadResource) | Kind::Fetch(_) => return false,
        Kind::Mcp(_) => return naive_places::changes_us(case),
    };
    line_changes_us(command, Path::new(&directory(case)), case)
}

/// Where the command would run: the given directory, else the workspace, else unknown.
pub fn directory(case: &Case<'_>) -> String {
    let given = match &case.query.call.kind {
        CallKind::Shell { directory, .. } => directory.as_ref().map(|path| path.to_string_lossy().into_owned()),
        CallKind::Mcp { .. } => case.arguments.get("cwd").and_then(|cwd| cwd.as_str()).map(str::to_owned),
        CallKind::Fetch { .. } => None,
    };
    let workspace = case.query.workspace().map(|path| path.to_string_lossy().into_owned());
    given.or(workspace).unwrap_or_else(|| "/".to_owned())
}
