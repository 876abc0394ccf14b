//! The hard gate: may this caller ever do this? The stages of CORE-1, in order; each passes or denies.
//!
//! A deny cannot be paid for. Rules may also ask for a person (`@hold`); that is carried on to the
//! mandatory holds, it is not a pass.

mod context;
mod limits;
mod roles;
mod task_scope;

use std::collections::BTreeSet;

use toolwarden_core::{CallKind, Door, Operation, Reason, Stage, Weakness, weak};

use crate::hosts::{self, Address};
use crate::modes::Asked;
use crate::query::{Definition, Tracing};
use crate::rules::Facts;
use crate::servers::{ServerState, Tool};
use crate::shell;
use crate::subject::{Arguments, ModeChoice, Subject};
use crate::verdict::{RuleRef, Step};

/// Said where `explain` was asked without arguments.
const SCHEMA_NOT_CHECKED: &str = "arguments not given, schema not checked";

/// What judges in a stage.
type Judge = fn(&Subject<'_>) -> Step;

/// The stages and what judges in each: CORE-1 as a table.
const STAGES: [(Stage, Judge); 13] = [
    (Stage::Names, names),
    (Stage::Context, context::context),
    (Stage::Server, server),
    (Stage::Switch, switch),
    (Stage::Mode, mode),
    (Stage::RoleDisallow, roles::disallow),
    (Stage::RoleAllow, roles::allow),
    (Stage::Scope, roles::scope),
    (Stage::Setting, roles::setting),
    (Stage::TaskScope, task_scope::task_scope),
    (Stage::Rules, rules),
    (Stage::Schema, schema),
    (Stage::Limits, limits::limits),
];

/// What authorization found.
#[derive(Debug, Default)]
pub(crate) struct Authorization {
    pub(crate) denied: Option<(Stage, Step)>,
    /// The rule that demands a person.
    pub(crate) hold: Option<Step>,
    pub(crate) trace: Vec<(Stage, Step)>,
}

pub(crate) fn authorize(subject: &Subject<'_>) -> Authorization {
    let mut found = Authorization::default();
    for (stage, judge) in STAGES {
        let step = if is_off(stage) { Step::PASS } else { judge(subject) };
        if step.denies() && found.denied.is_none() {
            found.denied = Some((stage, step.clone()));
            if subject.query.tracing == Tracing::Off {
                break;
            }
        }
        if step.reason() == Some(Reason::RuleHold) {
            found.hold = Some(step.clone());
        }
        if subject.query.tracing == Tracing::Full {
            found.trace.push((stage, step));
        }
    }
    found
}

/// The stages that speak of the server alone, for messages that are no calls.
pub(crate) fn authorize_server(subject: &Subject<'_>) -> Option<(Stage, Step)> {
    let stages =
        STAGES.iter().filter(|(stage, _)| matches!(stage, Stage::Names | Stage::Context | Stage::Server | Stage::Mode));
    let stages = stages.filter(|(stage, _)| !is_off(*stage));
    stages.map(|(stage, judge)| (*stage, judge(subject))).find(|(_, step)| step.denies())
}

/// Whether a stage is switched off, which only the hostile kit can do: one stage at a time, to show that an attack is
/// refused by this one.
fn is_off(stage: Stage) -> bool {
    match stage {
        Stage::Server => weak::is(Weakness::Servers),
        Stage::Switch => weak::is(Weakness::Switches),
        Stage::Mode => weak::is(Weakness::Modes),
        Stage::Schema => weak::is(Weakness::Arguments),
        Stage::Limits => weak::is(Weakness::Limits),
        _ => false,
    }
}

/// Ambiguous or reserved names. An invalid one passes: auto-run holds it.
fn names(subject: &Subject<'_>) -> Step {
    if weak::is(Weakness::Names) {
        return Step::PASS;
    }
    if !subject.query.several.is_empty() {
        let tools: Vec<String> = subject.query.several.iter().map(ToString::to_string).collect();
        return Step::because(Reason::NameAmbiguous).noting(format!("it may mean {}", tools.join(" or ")));
    }
    if subject.names.ambiguous {
        return Step::because(Reason::NameAmbiguous).noting("several known names differ from it only in case");
    }
    if subject.operation() == Operation::CallTool && subject.names.tool_name.contains('/') {
        return Step::because(Reason::NameReserved)
            .noting("`/` in a tool name is reserved for resources, prompts and completion");
    }
    Step::PASS
}

fn server(subject: &Subject<'_>) -> Step {
    let Some(server) = subject.names.server else {
        return unknown(subject, "unknown server: judged as if it were configured");
    };
    let here = || Some(server.rule.clone());
    match &server.state {
        ServerState::Disabled => Step::because(Reason::ServerDisabled).by(here()),
        ServerState::Conflict(other) => {
            Step::because(Reason::ServerConflict).by(here()).noting(format!("the other definition is at {other}"))
        }
        // Prompts are never held (MODE-4), so what nobody accepted is refused (GATE-12).
        ServerState::Enabled
            if subject.operation() == Operation::GetPrompt && subject.query.definition != Definition::Accepted =>
        {
            Step::because(Reason::PromptNotAccepted).by(here())
        }
        ServerState::Enabled if !subject.names.tool_known => {
            unknown(subject, "unknown tool: judged as if its server listed it")
        }
        ServerState::Enabled => Step::PASS.by(here()),
    }
}

/// CORE-6.
fn unknown(subject: &Subject<'_>, note: &'static str) -> Step {
    match subject.query.door {
        Door::Explain => Step::PASS.noting(note),
        Door::Decide if !subject.caller.is_agent() => Step::PASS.noting(note),
        Door::Decide | Door::Mcp => Step::because(Reason::UnknownTool),
    }
}

fn switch(subject: &Subject<'_>) -> Step {
    let (server, tool) = (subject.names.server_name, subject.names.tool_name);
    let policy = subject.policy;
    if let Some(rule) = policy.base().settings.switched_off(server, tool) {
        return Step::because(Reason::ToolDisabled).by(Some(rule.clone()));
    }
    if let Some(origin) = subject.names.server.and_then(|server| server.switched_off(tool)) {
        return Step::because(Reason::ToolDisabled).by(Some(RuleRef::new(format!("{server}:{tool} is off"), origin)));
    }
    let block =
        policy.user(subject.caller).and_then(|user| user.blocks.find(server, tool, crate::allowlist::Twin::None));
    if let Some(rule) = block {
        return Step::because(Reason::UserBlocked).by(Some(rule.clone()));
    }
    match &subject.query.call.kind {
        CallKind::Fetch { url } if matches!(subject.arguments, Arguments::Known(_)) => {
            denied_domain(subject, url).unwrap_or(Step::PASS)
        }
        CallKind::Fetch { .. } | CallKind::Mcp { .. } | CallKind::Shell { .. } => Step::PASS,
    }
}

/// An admin's domain deny covers the domain and everything below it. Where domains are denied, an address that
/// cannot be read is denied too: the client may read it otherwise.
fn denied_domain(subject: &Subject<'_>, url: &str) -> Option<Step> {
    let denied = &subject.policy.base().admin.as_ref()?.denied_hosts;
    let host = match Address::read(url) {
        Address::Known(target) => target.host?,
        Address::None => return None,
        Address::Unreadable => {
            let (_, rule) = denied.first()?;
            let step = Step::because(Reason::DomainDenied).by(Some(rule.clone()));
            return Some(step.noting("the address cannot be read, so its domain cannot be checked"));
        }
    };
    let (_, rule) = denied.iter().find(|(domain, _)| hosts::covers(domain, &host))?;
    Some(Step::because(Reason::DomainDenied).by(Some(rule.clone())))
}

fn mode(subject: &Subject<'_>) -> Step {
    let server = subject.names.server;
    let default_enabled = server.is_none_or(|server| server.default_enabled);
    match subject.mode {
        ModeChoice::Chosen(mode) => mode.judge(&Asked {
            group: subject.group(),
            server: subject.names.server_name,
            tool: (subject.operation() == Operation::CallTool).then_some(subject.names.tool_name),
            default_enabled,
            caller: subject.caller,
            roles: subject.role_names(),
            time: subject.query.time,
        }),
        ModeChoice::None if default_enabled => Step::NOT_APPLICABLE.noting("no mode"),
        ModeChoice::None => {
            let rule = server.map(|server| server.rule.clone());
            Step::because(Reason::ModeServerOptIn).by(rule)
        }
        // The stage before has denied these.
        ModeChoice::Refused(_) | ModeChoice::Unknown(_) | ModeChoice::NotIssued(_) | ModeChoice::Required => {
            Step::NOT_APPLICABLE
        }
    }
}

fn rules(subject: &Subject<'_>) -> Step {
    let rules = &subject.policy.base().rules;
    let facts = facts(subject);
    match subject.arguments {
        Arguments::Known(_) => rules.judge(&facts),
        Arguments::Unknown if rules.may_pass(&facts) => Step::PASS,
        Arguments::Unknown => Step::because(Reason::RuleNoPermit),
    }
}

pub(crate) fn facts<'a>(subject: &'a Subject<'a>) -> Facts<'a> {
    let query = subject.query;
    Facts {
        caller: subject.caller,
        roles: subject.role_names(),
        mode: subject.chosen_mode().map(|mode| mode.slug.as_str()),
        server: subject.names.server_name,
        tool: subject.names.tool_name,
        labels: subject.labels(),
        arguments: match subject.arguments {
            Arguments::Known(arguments) => arguments,
            Arguments::Unknown => None,
        },
        operation: subject.operation().method(),
        commands: match &subject.line {
            Some(Ok(line)) => shell::command_names(line),
            // What cannot be parsed may run anything; rules can ask for this mark.
            Some(Err(_)) => BTreeSet::from(["?".to_owned()]),
            None => BTreeSet::new(),
        },
        address: match &query.call.kind {
            CallKind::Fetch { url } if matches!(subject.arguments, Arguments::Known(_)) => Address::read(url),
            CallKind::Fetch { .. } | CallKind::Mcp { .. } | CallKind::Shell { .. } => Address::None,
        },
        time: query.time,
        seen: &query.seen,
        door: door_of_rules(query.door, &query.call.kind),
    }
}

/// The door rules see. `explain` is none of its own: it answers what the usual door for such a call would (WORK-4).
fn door_of_rules(door: Door, kind: &CallKind) -> Door {
    match (door, kind) {
        (Door::Explain, CallKind::Mcp { .. }) => Door::Mcp,
        (Door::Explain, CallKind::Shell { .. } | CallKind::Fetch { .. }) => Door::Decide,
        (door, _) => door,
    }
}

fn schema(subject: &Subject<'_>) -> Step {
    if subject.operation() != Operation::CallTool {
        return Step::NOT_APPLICABLE;
    }
    let tool = subject.names.server.and_then(|server| server.tool(subject.names.tool_name));
    // Whatever the arguments: nobody could say whether they fit, or what comes back (WORK-1).
    if let Some((side, fault)) = tool.and_then(Tool::unusable).filter(|_| !weak::is(Weakness::Schemas)) {
        return Step::because(Reason::SchemaUnusable).noting(format!("{side} schema: {fault}"));
    }
    let Arguments::Known(arguments) = subject.arguments else { return Step::NOT_APPLICABLE };
    let Some(schema) = tool.and_then(|tool| tool.schema.as_ref()) else {
        return Step::NOT_APPLICABLE.noting("no input schema is known");
    };
    if subject.query.arguments_omitted {
        return Step::NOT_APPLICABLE.noting(SCHEMA_NOT_CHECKED);
    }
    match schema.check(arguments) {
        Ok(()) => Step::PASS,
        Err(fault) => Step::because(Reason::SchemaViolation).noting(fault),
    }
}
