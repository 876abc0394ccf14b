//! Finds rules that a call escapes by leaving an argument out.
//!
//! `forbid .. when { context.arguments has amount && context.arguments.amount > 1000 }` says nothing about a call
//! without `amount`, and the server may have a default. Each argument whose value a rule reads is supposed absent,
//! everything else unknown; a rule that then lets the call through is reported, unless the tool's schema requires
//! the argument.

use std::collections::BTreeSet;

use cedar_policy::Effect;
use serde_json::Value;

use super::mentions::{path_of, plain_path, tag_of};
use super::parse::Rule;
use crate::finding::Finding;

/// Names from the outside in.
type Path = Vec<String>;

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
    let is_optional = |path: &&Path| schema.is_none_or(|schema| !requires(schema, path));
    let escaped: Vec<&Path> = read.iter().filter(is_optional).filter(|path| lets_through(path)).collect();
    let path = escaped.first()?;
    let shown = toolwarden_core::name::shown(&path.join(".")).into_owned();
    let message = match rule.effect {
        Effect::Forbid => format!("a call without the argument `{shown}` escapes rule `{}`", rule.name),
        Effect::Permit => format!("rule `{}` permits every call without the argument `{shown}`", rule.name),
    };
    let advice = match rule.effect {
        Effect::Forbid => format!(
            "forbid calls without it too, with `!(context.arguments has {shown}) || ..`, or let the tool's schema require it"
        ),
        Effect::Permit => "permit only calls that have it, or let the tool's schema require it".to_owned(),
    };
    Some(Finding::warning("rule_escaped_by_absence", rule.origin.clone(), message).suggesting(advice))
}

/// Every argument whose value is read.
fn collect(expression: &Value, read: &mut BTreeSet<Path>) {
    if let Some(path) = plain_path(expression) {
        if let Some((&"arguments", rest)) = path.split_first()
            && !rest.is_empty()
        {
            read.insert(rest.iter().map(|name| (*name).to_owned()).collect());
        }
        return;
    }
    match tag_of(expression) {
        Some(tag) if tag.is_read => {
            read.extend(pointed(tag.pointer));
        }
        _ => match expression {
            Value::Array(items) => items.iter().for_each(|item| collect(item, read)),
            Value::Object(members) => members.values().for_each(|operand| collect(operand, read)),
            _ => {}
        },
    }
}

fn pointed(pointer: &str) -> Option<Path> {
    let parts = pointer.strip_prefix('/')?.split('/');
    Some(parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect())
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

/// Whether a rule applies to a call without one argument.
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
        "has" => match path_of(expression).as_deref() {
            Some(["arguments", rest @ ..]) => lacks(rest.iter().copied(), absent),
            _ => Truth::Unknown,
        },
        "hasTag" => match tag_of(expression).and_then(|tag| pointed(tag.pointer)) {
            Some(path) => lacks(path.iter().map(String::as_str), absent),
            None => Truth::Unknown,
        },
        _ => Truth::Unknown,
    }
}

/// No where the absent argument is the one that is looked for, or holds it.
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
