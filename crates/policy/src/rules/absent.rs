//! Finds rules that a call escapes by leaving out an argument, or something of the context that is not always there.
//!
//! `forbid .. when { context.arguments has amount && context.arguments.amount > 1000 }` says nothing about a call
//! without `amount`, and the server may have a default. Each argument whose value a rule reads is supposed absent,
//! everything else unknown; a rule that then lets the call through is reported, unless the tool's schema requires
//! the argument. `context has task_id && ..` says as little about a call without a task.

use std::collections::BTreeSet;

use cedar_policy::Effect;
use serde_json::Value;

use super::mentions::{path_of, plain_path, tag_of};
use super::parse::Rule;
use crate::finding::Finding;

/// Names below the context from the outside in.
type Path = Vec<String>;

/// What the context has only sometimes.
const OPTIONAL: [&str; 11] =
    ["url", "scheme", "host", "port", "mode", "task_id", "project_id", "run_id", "job_id", "session_id", "token_id"];
const ARGUMENTS: &str = "arguments";

pub(super) fn escaped_by_absence(rule: &Rule, schema: Option<&Value>) -> Option<Finding> {
    let json = rule.policy.to_json().ok()?;
    let conditions = json.get("conditions")?.as_array()?;
    let mut read = BTreeSet::new();
    conditions.iter().for_each(|condition| collect(condition, &mut read));
    let lets_through = |absent: &[String]| match rule.effect {
        Effect::Forbid => applies(conditions, absent) == Truth::No,
        Effect::Permit => applies(conditions, absent) == Truth::Yes,
    };
    // The empty path is no argument: a rule that says the same whatever is absent is none of these.
    if lets_through(&[]) {
        return None;
    }
    let is_required = |path: &Path| {
        let argument = path.split_first().filter(|(first, _)| *first == ARGUMENTS).map(|(_, rest)| rest);
        argument.zip(schema).is_some_and(|(argument, schema)| requires(schema, argument))
    };
    let escapes = read.iter().rev().filter(|path| !is_required(path) && lets_through(path));
    // The value itself rather than what holds it.
    let path = escapes.max_by_key(|path| path.len())?;
    Some(finding(rule, path))
}

fn finding(rule: &Rule, absent: &Path) -> Finding {
    let argument = absent.split_first().filter(|(first, _)| *first == ARGUMENTS).map(|(_, rest)| rest);
    let shown = toolwarden_core::name::shown(&argument.unwrap_or(absent).join(".")).into_owned();
    let (what, holder, otherwise) = match argument {
        Some(_) => (format!("the argument `{shown}`"), "context.arguments", ", or let the tool's schema require it"),
        None => (format!("`context.{shown}`"), "context", ""),
    };
    let (message, advice) = match rule.effect {
        Effect::Forbid => (
            format!("a call without {what} escapes rule `{}`", rule.name),
            format!("forbid calls without it too, with `if {holder} has {shown} then .. else true`{otherwise}"),
        ),
        Effect::Permit => (
            format!("rule `{}` permits every call without {what}", rule.name),
            format!("permit only calls that have it{otherwise}"),
        ),
    };
    Finding::warning("rule_escaped_by_absence", rule.origin.clone(), message).suggesting(advice)
}

/// Everything that may be absent and whose value is read.
fn collect(expression: &Value, read: &mut BTreeSet<Path>) {
    if let Some(path) = plain_path(expression) {
        let may_be_absent = match path.split_first() {
            Some((&ARGUMENTS, rest)) => !rest.is_empty(),
            Some((first, _)) => OPTIONAL.contains(first),
            None => false,
        };
        if may_be_absent {
            insert(&path.into_iter().map(str::to_owned).collect::<Path>(), read);
        }
        return;
    }
    match tag_of(expression) {
        Some(tag) if tag.is_read => {
            pointed(tag.pointer).into_iter().for_each(|path| insert(&path, read));
        }
        _ => match expression {
            Value::Array(items) => items.iter().for_each(|item| collect(item, read)),
            Value::Object(members) => members.values().for_each(|operand| collect(operand, read)),
            _ => {}
        },
    }
}

/// A value, and the objects it is read from: any of them may be absent.
fn insert(path: &[String], read: &mut BTreeSet<Path>) {
    let shortest = if path.first().is_some_and(|first| first == ARGUMENTS) { 2 } else { 1 };
    read.extend((shortest..=path.len()).filter_map(|length| path.get(..length)).map(<[String]>::to_vec));
}

/// The argument at a pointer.
fn pointed(pointer: &str) -> Option<Path> {
    let parts = pointer.strip_prefix('/')?.split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
    Some(std::iter::once(ARGUMENTS.to_owned()).chain(parts).collect())
}

/// What is known of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    Yes,
    No,
    Unknown,
}

impl Truth {
    fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Unknown,
        }
    }
}

/// Whether a rule applies to a call without this.
fn applies(conditions: &[Value], absent: &[String]) -> Truth {
    conditions.iter().fold(Truth::Yes, |all, condition| {
        let body = condition.get("body").map_or(Truth::Unknown, |body| truth(body, absent));
        let is_unless = condition.get("kind").and_then(Value::as_str) == Some("unless");
        all.and(if is_unless { body.not() } else { body })
    })
}

fn truth(expression: &Value, absent: &[String]) -> Truth {
    let operand = |operands: &Value, name: &str| operands.get(name).map_or(Truth::Unknown, |side| truth(side, absent));
    let Some((operator, operands)) = expression.as_object().and_then(|members| members.iter().next()) else {
        return Truth::Unknown;
    };
    match operator.as_str() {
        "Value" => match operands {
            Value::Bool(true) => Truth::Yes,
            Value::Bool(false) => Truth::No,
            _ => Truth::Unknown,
        },
        "!" => operand(operands, "arg").not(),
        "&&" => operand(operands, "left").and(operand(operands, "right")),
        "||" => operand(operands, "left").not().and(operand(operands, "right").not()).not(),
        "if-then-else" => match operand(operands, "if") {
            Truth::Yes => operand(operands, "then"),
            Truth::No => operand(operands, "else"),
            Truth::Unknown => {
                let (then, otherwise) = (operand(operands, "then"), operand(operands, "else"));
                if then == otherwise { then } else { Truth::Unknown }
            }
        },
        "has" => match path_of(expression) {
            Some(path) => lacks(path, absent),
            None => Truth::Unknown,
        },
        "hasTag" => match tag_of(expression).and_then(|tag| pointed(tag.pointer)) {
            Some(path) => lacks(path.iter().map(String::as_str), absent),
            None => Truth::Unknown,
        },
        _ => Truth::Unknown,
    }
}

/// No where what is absent is looked for, or holds what is.
fn lacks<'a>(path: impl IntoIterator<Item = &'a str>, absent: &[String]) -> Truth {
    let mut path = path.into_iter();
    let is_within = !absent.is_empty() && absent.iter().all(|name| path.next() == Some(name));
    if is_within { Truth::No } else { Truth::Unknown }
}

/// Whether a schema demands an argument, and everything that holds it.
fn requires(schema: &Value, path: &[String]) -> bool {
    let mut schema = Some(schema);
    path.iter().all(|name| {
        let Some(here) = schema else { return false };
        let required = here.get("required").and_then(Value::as_array);
        schema = here.get("properties").and_then(|properties| properties.get(name));
        required.is_some_and(|required| required.iter().any(|known| known == name))
    })
}
