//! Role lists, scope, settings and task scope, for agents (GATE-5, GATE-6, GATE-7, GATE-11).

use toolwarden_core::{Caller, Reason};
use toolwarden_policy::input::Scope;

use crate::naive::Case;
use crate::naive_context::Role;
use crate::naive_modes::fits;
use crate::naive_names::same;
use crate::naive_servers::is_operators;
use crate::naive_shipped::scope_of_name;
use crate::rule::text;

/// How two texts are compared.
#[derive(Clone, Copy)]
enum Letters {
    Exact,
    AnyCase,
}

fn pattern_fits(pattern: &str, name: &str, letters: Letters) -> bool {
    let (pattern, name) = match letters {
        Letters::Exact => (pattern.to_owned(), name.to_owned()),
        Letters::AnyCase => (pattern.to_ascii_lowercase(), name.to_ascii_lowercase()),
    };
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

/// A restricting pattern: reaches every server, in any case.
fn restricts(pattern: &str, case: &Case<'_>) -> bool {
    match pattern.split_once(':') {
        Some((server, tool)) => {
            same(server, &case.named.server) && pattern_fits(tool, &case.named.tool, Letters::AnyCase)
        }
        None => pattern_fits(pattern, &case.named.tool, Letters::AnyCase),
    }
}

/// A permitting pattern: exact names; without a server only on servers an operator declared.
fn permits(pattern: &str, case: &Case<'_>) -> bool {
    match pattern.split_once(':') {
        Some((server, tool)) => server == case.named.server && pattern_fits(tool, &case.named.tool, Letters::Exact),
        None => is_operators(case) && pattern_fits(pattern, &case.named.tool, Letters::Exact),
    }
}

fn agent_role<'c, 'a>(case: &'c Case<'a>) -> Option<&'c Role<'a>> {
    case.role.as_ref().filter(|_| case.is_agent())
}

pub fn disallowed(case: &Case<'_>) -> Option<Reason> {
    let role = agent_role(case)?;
    role.disallow().iter().any(|pattern| restricts(pattern, case)).then_some(Reason::RoleDisallowed)
}

pub fn allowed(case: &Case<'_>) -> Option<Reason> {
    let role = agent_role(case)?;
    if !role.allow().iter().any(|pattern| permits(pattern, case)) {
        return Some(Reason::RoleNotAllowed);
    }
    let only = role.shipped.map(|role| role.only_task_tools).unwrap_or_default();
    let whole = format!("{}:{}", case.named.server, case.named.tool);
    let listed = case.query.caller.token.task_tools.iter().any(|tool| *tool == case.named.tool || *tool == whole);
    if !listed && only.iter().any(|pattern| restricts(pattern, case)) {
        return Some(Reason::TaskToolMissing);
    }
    let matching: Vec<_> = role.conditions().iter().filter(|one| restricts(&one.tool.value, case)).collect();
    let conditional = role.shipped.map(|role| role.conditional).unwrap_or_default();
    if matching.is_empty() && conditional.iter().any(|pattern| restricts(pattern, case)) {
        return Some(Reason::RoleCondition);
    }
    let unmet = matching.iter().flat_map(|one| one.arguments.iter()).any(|(key, texts)| {
        let value = text(case.arguments.get(key));
        !value.is_some_and(|value| fits(&value, texts))
    });
    unmet.then_some(Reason::RoleCondition)
}

pub fn scope(case: &Case<'_>) -> Option<Reason> {
    let role = agent_role(case)?;
    let preset = is_operators(case).then(|| scope_of_name(&case.named.tool)).flatten();
    let Some(scope) = case.tool_config().and_then(|tool| tool.scope).or(preset) else {
        return Some(Reason::ScopeMissing);
    };
    let mine = role.scope();
    (scope != Scope::Both && mine != Some(scope)).then_some(Reason::ScopeMismatch)
}

pub fn setting(case: &Case<'_>) -> Option<Reason> {
    let shipped = agent_role(case).and_then(|role| role.shipped).map(|role| role.settings).unwrap_or_default();
    let mut needed: Vec<&str> =
        shipped.iter().filter(|(tool, _)| restricts(tool, case)).map(|(_, setting)| *setting).collect();
    needed.extend(case.tool_configs().iter().filter_map(|tool| tool.requires_setting.as_deref()));
    let is_on = |key: &&str| {
        case.input.base.settings.get(*key).is_some_and(|value| value.value == serde_json::Value::Bool(true))
    };
    (!needed.iter().all(is_on)).then_some(Reason::SettingOff)
}

fn carried<'c>(caller: &'c Caller, id: &str) -> Option<&'c str> {
    let context = &caller.context;
    match id {
        "task_id" => context.task.as_deref(),
        "project_id" => context.project.as_deref(),
        "run_id" => context.run.as_deref(),
        "job_id" => context.job.as_deref(),
        _ => None,
    }
}

/// The ids this call must carry.
pub fn required_ids<'c>(case: &'c Case<'_>) -> Vec<&'c str> {
    let mut ids: Vec<&str> =
        case.tool_configs().iter().flat_map(|tool| tool.task_scoped.iter().map(String::as_str)).collect();
    let own = agent_role(case).and_then(|role| role.shipped).map(|role| role.own_task).unwrap_or_default();
    if own.iter().any(|pattern| restricts(pattern, case)) && !ids.contains(&"task_id") {
        ids.push("task_id");
    }
    ids
}

pub fn task_scope(case: &Case<'_>) -> Option<Reason> {
    let required = required_ids(case);
    if required.is_empty() {
        return None;
    }
    let caller = &case.query.caller;
    let is_sandbox = agent_role(case).is_some_and(|role| role.scope() == Some(Scope::Sandbox));
    if is_sandbox && required.iter().any(|id| carried(caller, id).is_none()) {
        return Some(Reason::TaskUnbound);
    }
    if case.is_agent() && required.iter().any(|id| case.arguments.get(id).is_none()) {
        return Some(Reason::TaskIdMissing);
    }
    let differs = |id: &&str| match (case.arguments.get(id), carried(caller, id)) {
        (Some(given), Some(mine)) => text(Some(given)).as_deref() != Some(mine),
        _ => false,
    };
    ["task_id", "project_id", "run_id", "job_id"].iter().any(differs).then_some(Reason::TaskIdMismatch)
}
