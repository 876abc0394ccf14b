//! Task scoping is in the arguments (GATE-11): the ids a task-scoped tool requires must be there,
//! and each id the credential carries must be equal.

use toolwarden_core::json::Value;
use toolwarden_core::{Caller, Reason};

use crate::input::Scope;
use crate::pattern::Reach;
use crate::subject::{Arguments, Subject};
use crate::verdict::{RuleRef, Step};

/// The argument names that carry ids.
pub const FIELDS: [&str; 4] = ["task_id", "run_id", "job_id", "project_id"];

pub(super) fn task_scope(subject: &Subject<'_>) -> Step {
    let (required, rule) = required_fields(subject);
    if required.is_empty() {
        return Step::NOT_APPLICABLE;
    }
    let unbound = required.iter().find(|field| carried(subject.caller, field).is_none());
    let sandboxed = subject.role.is_some_and(|role| role.side == Scope::Sandbox);
    if let Some(field) = unbound.filter(|_| sandboxed) {
        return Step::because(Reason::TaskUnbound).by(rule).noting(format!("`{field}`"));
    }
    let Arguments::Known(arguments) = subject.arguments else { return Step::PASS };
    // Persons are not bound to a task; what their arguments lack is for the tool's schema to say.
    let missing = required.iter().find(|field| argument(arguments, field).is_none());
    if let Some(field) = missing.filter(|_| subject.caller.is_agent()) {
        return Step::because(Reason::TaskIdMissing).by(rule).noting(format!("`{field}`"));
    }
    let differs = |field: &&str| {
        let carried = carried(subject.caller, field);
        argument(arguments, field).zip(carried).is_some_and(|(given, own)| given.as_str().as_deref() != Some(own))
    };
    match FIELDS.iter().find(|field| differs(field)) {
        Some(field) => Step::because(Reason::TaskIdMismatch).by(rule).noting(format!("`{field}`")),
        None => Step::PASS.by(rule),
    }
}

/// The ids a call needs: what the tool's config says, and what the role binds to its own task.
fn required_fields<'a>(subject: &'a Subject<'_>) -> (Vec<&'a str>, Option<RuleRef>) {
    let tool = subject.names.tool_name;
    let narrowed = subject.names.server.map(|server| server.narrowed(tool));
    let mut fields: Vec<&str> =
        narrowed.map(|narrowed| narrowed.task_scoped.iter().map(String::as_str).collect()).unwrap_or_default();
    let mut rule = narrowed.and_then(|narrowed| narrowed.task_rule.clone());
    let own_task = subject.role.and_then(|role| role.own_task.find(subject.names.server_name, tool, Reach::WithBare));
    if let Some(own) = own_task {
        if !fields.contains(&"task_id") {
            fields.push("task_id");
        }
        rule = rule.or_else(|| Some(own.clone()));
    }
    (fields, rule)
}

fn carried<'a>(caller: &'a Caller, field: &str) -> Option<&'a str> {
    let context = &caller.context;
    let value = match field {
        "task_id" => &context.task,
        "run_id" => &context.run,
        "job_id" => &context.job,
        "project_id" => &context.project,
        _ => return None,
    };
    value.as_deref()
}

fn argument<'a>(arguments: Option<Value<'a>>, field: &str) -> Option<Value<'a>> {
    arguments?.get(field)
}
