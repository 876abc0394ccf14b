//! What is derived from a call's arguments for an entry: which there are, and what each counts as.

use std::collections::{BTreeMap, BTreeSet};

use toolwarden_core::json::{Kind, Value, unescape};

use super::{Demand, Likeness, quoted};

/// More arguments than this are not looked at.
const MOST_NAMES: usize = 256;
const DEEPEST: usize = 16;
/// Longer texts equal nothing.
const LONGEST: usize = 4_096;

/// The facts about one call.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Every argument, by its pointer; one that is free stands for all in it.
    pub(super) names: BTreeSet<String>,
    /// For each kind in the order of `Likeness::ALL`: what the arguments that are asked for count as.
    pub(super) counts_as: [BTreeMap<String, Vec<String>>; 4],
}

impl Facts {
    /// None where the arguments are no object, or more than anybody looks at.
    pub(super) fn of(arguments: Value<'_>, demands: &BTreeMap<String, Demand>) -> Option<Self> {
        let mut facts = Self::default();
        for (pointer, value) in leaves(arguments, &|pointer| demands.get(pointer) == Some(&Demand::Free))? {
            if let Some(Demand::Like(likeness, _)) = demands.get(&pointer) {
                let counts_as = counts_as(*likeness, value);
                if let Some(of_kind) = facts.counts_as.get_mut(likeness.index()) {
                    of_kind.insert(pointer.clone(), counts_as);
                }
            }
            // Never twice: the gate refuses JSON that names a member twice.
            if !facts.names.insert(pointer) {
                return None;
            }
        }
        Some(facts)
    }
}

pub(super) fn counts_as(likeness: Likeness, value: Value<'_>) -> Vec<String> {
    match likeness {
        Likeness::Equals => scalar(value).into_iter().collect(),
        _ => value.as_str().map(|text| likeness.of_text(&text)).unwrap_or_default(),
    }
}

/// A single value as JSON; a text in its one form, a number as it was written.
pub(super) fn scalar(value: Value<'_>) -> Option<String> {
    let text = match value.kind() {
        Kind::String => quoted(&value.as_str()?),
        Kind::Null | Kind::True | Kind::False | Kind::Number => value.raw().to_owned(),
        Kind::Array | Kind::Object => return None,
    };
    (text.len() <= LONGEST).then_some(text)
}

/// Every value that holds no others, with its pointer. Lists are values: their items have no names.
pub(super) fn leaves<'a>(arguments: Value<'a>, is_whole: &dyn Fn(&str) -> bool) -> Option<Vec<(String, Value<'a>)>> {
    let mut found = Vec::new();
    (arguments.kind() == Kind::Object).then_some(())?;
    collect(arguments, "", 0, is_whole, &mut found)?;
    Some(found)
}

fn collect<'a>(
    object: Value<'a>,
    pointer: &str,
    depth: usize,
    is_whole: &dyn Fn(&str) -> bool,
    found: &mut Vec<(String, Value<'a>)>,
) -> Option<()> {
    for (key, value) in object.entries() {
        let pointer = format!("{pointer}/{}", escaped(&unescape(key)));
        let is_branch = value.kind() == Kind::Object && value.entries().next().is_some() && !is_whole(&pointer);
        if is_branch {
            (depth < DEEPEST).then_some(())?;
            collect(value, &pointer, depth + 1, is_whole, found)?;
        } else {
            (found.len() < MOST_NAMES).then_some(())?;
            found.push((pointer, value));
        }
    }
    Some(())
}

/// A name as part of a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
