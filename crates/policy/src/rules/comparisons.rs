//! Which arguments a rule compares, and with what kind of value.
//!
//! In Cedar values of different kinds are merely unequal, so `role == "admin"` says nothing about `["admin"]`, which a
//! server may read as the same. A call whose argument is of another kind than the rule compares it with is denied
//! (WORK-2). Orders (`<`) and patterns (`like`) need no such check: Cedar itself fails there.

use serde_json::Value as Json;
use toolwarden_core::json::{Kind, Value};

use super::mentions::plain_path;

/// A kind of value that can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    Number,
    Truth,
    List,
    Record,
}

/// An argument and what it is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comparison {
    path: Vec<String>,
    /// The items of the argument are compared, not the argument itself.
    of_items: bool,
    with: Vec<Operand>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operand {
    Shape(Shape),
    Argument(Vec<String>),
}

impl Comparison {
    /// The argument's path where its kind does not fit the comparison.
    pub(super) fn unfit<'c>(&'c self, arguments: Value<'_>) -> Option<&'c [String]> {
        let value = at(arguments, &self.path)?;
        let fits = |value: Value<'_>| {
            self.with.iter().any(|operand| match operand {
                Operand::Shape(shape) => shape_of(value) == Some(*shape),
                // An absent one fails in Cedar.
                Operand::Argument(path) => at(arguments, path).is_none_or(|other| shape_of(other) == shape_of(value)),
            })
        };
        let is_fit = match (self.of_items, value.kind()) {
            (true, Kind::Array) => value.items().all(fits),
            // Cedar fails where it looks for items in anything else.
            (true, _) => true,
            (false, _) => fits(value),
        };
        (!is_fit).then_some(&*self.path)
    }
}

/// The comparisons in an expression of Cedar's JSON form, without those inside its operands.
pub(super) fn of_expression(expression: &Json) -> Vec<Comparison> {
    let sides = |name: &str| expression.get(name).map(|operands| (operands.get("left"), operands.get("right")));
    if let Some((Some(left), Some(right))) = sides("==").or_else(|| sides("!=")) {
        return [(left, right), (right, left)]
            .into_iter()
            .filter_map(|(one, other)| compared(one, vec![other]))
            .collect();
    }
    if let Some((Some(set), Some(item))) = sides("contains") {
        let items = argument(set).and_then(|path| of_items(path, vec![item]));
        return items.into_iter().chain(compared(item, members(set))).collect();
    }
    if let Some((Some(left), Some(right))) = sides("containsAny").or_else(|| sides("containsAll")) {
        let of = |one: &Json, other: &Json| argument(one).and_then(|path| of_items(path, members(other)));
        return of(left, right).into_iter().chain(of(right, left)).collect();
    }
    Vec::new()
}

fn compared(one: &Json, with: Vec<&Json>) -> Option<Comparison> {
    let path = argument(one)?;
    let with: Option<Vec<Operand>> = with.into_iter().map(operand).collect();
    Some(Comparison { path, of_items: false, with: with.filter(|with| !with.is_empty())? })
}

fn of_items(path: Vec<String>, with: Vec<&Json>) -> Option<Comparison> {
    let with: Option<Vec<Operand>> = with.into_iter().map(operand).collect();
    Some(Comparison { path, of_items: true, with: with.filter(|with| !with.is_empty())? })
}

/// The path below `context.arguments`; empty for all of them.
fn argument(expression: &Json) -> Option<Vec<String>> {
    let path = plain_path(expression)?;
    let (first, rest) = path.split_first()?;
    (*first == "arguments").then(|| rest.iter().map(|name| (*name).to_owned()).collect())
}

fn members(set: &Json) -> Vec<&Json> {
    set.get("Set").and_then(Json::as_array).map(|items| items.iter().collect()).unwrap_or_default()
}

/// What an operand is; none where its kind is not known beforehand.
fn operand(expression: &Json) -> Option<Operand> {
    if let Some(path) = argument(expression) {
        return Some(Operand::Argument(path));
    }
    let shape = match expression.get("Value") {
        Some(Json::String(_)) => Shape::Text,
        Some(Json::Number(_)) => Shape::Number,
        Some(Json::Bool(_)) => Shape::Truth,
        Some(_) => return None,
        None if expression.get("neg").is_some() => Shape::Number,
        None if expression.get("Set").is_some() => Shape::List,
        None if expression.get("Record").is_some() => Shape::Record,
        None => attribute(expression)?,
    };
    Some(Operand::Shape(shape))
}

/// An attribute of the principal, the tool or the context.
fn attribute(expression: &Json) -> Option<Shape> {
    let operands = expression.get(".")?;
    match operands.get("attr")?.as_str()? {
        "groups" | "labels" | "seen" | "commands" => Some(Shape::List),
        "port" => Some(Shape::Number),
        "user" | "role" | "server" | "name" | "mode" | "operation" | "door" | "url" | "scheme" | "host" | "task_id"
        | "project_id" | "run_id" | "job_id" | "session_id" | "token_id" => Some(Shape::Text),
        _ => None,
    }
}

fn at<'v>(arguments: Value<'v>, path: &[String]) -> Option<Value<'v>> {
    path.iter().try_fold(arguments, |value, name| value.get(name))
}

fn shape_of(value: Value<'_>) -> Option<Shape> {
    Some(match value.kind() {
        Kind::String => Shape::Text,
        Kind::Number => Shape::Number,
        Kind::True | Kind::False => Shape::Truth,
        Kind::Array => Shape::List,
        Kind::Object => Shape::Record,
        Kind::Null => return None,
    })
}
