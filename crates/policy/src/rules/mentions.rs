//! Which facts about a call a rule mentions: attributes of the context, and places in the arguments.
//!
//! Only these are put before Cedar, and only these must be representable (WORK-2): a value that a rule at hand
//! mentions and Cedar cannot hold denies the call; a value that no rule mentions does not matter.

use std::collections::BTreeMap;

use cedar_policy::Policy;
use serde_json::Value;

use super::comparisons::{self, Comparison};

/// Attributes of the context in the order of their bits.
pub(crate) const ATTRIBUTES: [&str; 18] = [
    "arguments",
    "args",
    "commands",
    "url",
    "scheme",
    "host",
    "port",
    "now",
    "seen",
    "door",
    "operation",
    "mode",
    "task_id",
    "project_id",
    "run_id",
    "job_id",
    "session_id",
    "token_id",
];

/// Everything a rule, or several, mention.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Attributes of the context, one bit each.
    attributes: u32,
    /// Places in `context.arguments`; a place stands for all below it.
    pub(crate) arguments: Places,
    /// Pointers of `context.args`, by their parts as written.
    pub(crate) tags: Places,
    /// Whether a tag is chosen while the rule is evaluated, so that any may be meant.
    pub(crate) any_tag: bool,
    /// Arguments that are compared, each with the kind of value it must be.
    pub(crate) comparisons: Vec<Comparison>,
}

/// Places in the arguments, as a tree of names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) is_named: bool,
    pub(crate) below: BTreeMap<String, Places>,
}

impl Places {
    fn add<'a>(&mut self, path: impl IntoIterator<Item = &'a str>) {
        let mut place = self;
        for name in path {
            place = place.below.entry(name.to_owned()).or_default();
        }
        place.is_named = true;
    }

    fn unite(&mut self, other: &Self) {
        self.is_named |= other.is_named;
        for (name, places) in &other.below {
            self.below.entry(name.clone()).or_default().unite(places);
        }
    }
}

impl Needs {
    /// `arguments` to `port`: what a caller writes into the call.
    const CALL: u32 = 0b111_1111;
    /// `url` to `port`.
    const ADDRESS: u32 = 0b111_1000;
    const NOW: u32 = 1 << 7;

    /// What a policy mentions.
    pub(crate) fn of(policy: &Policy) -> Result<Self, Box<cedar_policy::PolicyToJsonError>> {
        let json = policy.to_json().map_err(Box::new)?;
        let mut needs = Self::default();
        needs.walk(json.get("conditions").unwrap_or(&Value::Null));
        Ok(needs)
    }

    fn walk(&mut self, expression: &Value) {
        if let Some(path) = path_of(expression) {
            return self.take(&path);
        }
        if let Some(tag) = tag_of(expression) {
            self.attributes |= bit("args").unwrap_or(0);
            return self.take_tag(tag.pointer);
        }
        for comparison in comparisons::of_expression(expression) {
            if !self.comparisons.contains(&comparison) {
                self.comparisons.push(comparison);
            }
        }
        match expression {
            Value::Array(items) => items.iter().for_each(|item| self.walk(item)),
            Value::Object(members) => members.values().for_each(|operand| self.walk(operand)),
            _ => {}
        }
    }

    fn take(&mut self, path: &[&str]) {
        let first = path.first().and_then(|name| bit(name));
        // The context as a whole, or something nobody knows of: everything may matter.
        self.attributes |= first.unwrap_or(u32::MAX);
        match path.split_first() {
            Some((&"arguments", rest)) => self.arguments.add(rest.iter().copied()),
            Some((&"args", _)) => self.any_tag = true,
            _ if first.is_none() => {
                self.arguments.add([]);
                self.any_tag = true;
            }
            _ => {}
        }
    }

    fn take_tag(&mut self, pointer: &str) {
        // No argument has a pointer that begins otherwise.
        if let Some(rest) = pointer.strip_prefix('/') {
            self.tags.add(rest.split('/'));
        }
    }

    pub(crate) fn unite(&mut self, other: &Self) {
        self.attributes |= other.attributes;
        self.arguments.unite(&other.arguments);
        self.tags.unite(&other.tags);
        self.any_tag |= other.any_tag;
        let new = other.comparisons.iter().filter(|one| !self.comparisons.contains(one)).cloned().collect::<Vec<_>>();
        self.comparisons.extend(new);
    }

    pub(crate) fn depends_on_arguments(&self) -> bool {
        self.attributes & Self::CALL != 0
    }

    pub(crate) fn depends_on_time(&self) -> bool {
        self.attributes & Self::NOW != 0
    }

    pub(crate) fn depends_on_labels_met(&self) -> bool {
        self.has("seen")
    }

    /// Whether the address of a fetch is mentioned, or a part of it.
    pub(crate) fn mentions_an_address(&self) -> bool {
        self.attributes & Self::ADDRESS != 0
    }

    pub(crate) fn mentions_typed_arguments(&self) -> bool {
        self.has("arguments")
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        bit(name).is_some_and(|bit| self.attributes & bit != 0)
    }
}

fn bit(name: &str) -> Option<u32> {
    ATTRIBUTES.iter().position(|known| *known == name).map(|position| 1 << position)
}

/// The attributes an expression looks up in the context, from the outside in: `context.arguments.a` or
/// `context.arguments has a`. Empty for the context itself.
pub(super) fn path_of(expression: &Value) -> Option<Vec<&str>> {
    let mut path = match expression.get("has") {
        Some(operands) => {
            let mut path = plain_path(operands.get("left")?)?;
            path.extend(names(operands.get("attr")?)?);
            return Some(path);
        }
        None => Vec::new(),
    };
    path.extend(plain_path(expression)?);
    Some(path)
}

/// The same for attributes that are read.
pub(super) fn plain_path(expression: &Value) -> Option<Vec<&str>> {
    let mut reversed = Vec::new();
    let mut left = expression;
    while let Some(operands) = left.get(".") {
        reversed.push(operands.get("attr")?.as_str()?);
        left = operands.get("left")?;
    }
    if left.get("Var")?.as_str()? != "context" {
        return None;
    }
    reversed.reverse();
    Some(reversed)
}

/// One name, or those of `has a.b.c`.
fn names(attribute: &Value) -> Option<Vec<&str>> {
    match attribute {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => names.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// A question for a tag whose pointer is written in the rule.
pub(super) struct Tag<'a> {
    pub(super) pointer: &'a str,
    /// Whether its text is read, rather than only looked for.
    pub(super) is_read: bool,
}

/// `context.args.hasTag("/a")` or `context.args.getTag("/a")`.
pub(super) fn tag_of(expression: &Value) -> Option<Tag<'_>> {
    let (operands, is_read) = match (expression.get("getTag"), expression.get("hasTag")) {
        (Some(operands), _) => (operands, true),
        (None, Some(operands)) => (operands, false),
        (None, None) => return None,
    };
    (plain_path(operands.get("left")?)? == ["args"]).then_some(())?;
    let pointer = operands.get("right")?.get("Value")?.as_str()?;
    Some(Tag { pointer, is_read })
}
