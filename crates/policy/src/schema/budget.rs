//! A bound on the work of checking a value against a schema (WORK-1).
//!
//! A schema is a small program: `anyOf` over shared references doubles at every level. Every place of a schema where
//! the check can branch counts its visits, and over the budget the check ends and the call is denied. The count is
//! exact and depends on nothing but schema and value.

use std::cell::Cell;
use std::collections::BTreeSet;

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value};

use super::positions;

/// The most steps of one check.
pub(super) const MOST_STEPS: u64 = 300_000;
/// The keyword that counts. It stands in an `allOf`, which is looked at before anything that branches further.
const KEYWORD: &str = "x-toolwarden-steps";
/// Keywords that look at the same value again, or at all its parts.
const BRANCHING: [&str; 12] = [
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "contains",
    "dependentSchemas",
    "dependencies",
    "patternProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "$ref",
];
/// So many bytes of a text, or items of a list, are one step.
const SIZE_OF_A_STEP: usize = 64;

thread_local! {
    /// Steps taken in the check of this thread.
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Runs a check and counts its steps; none where it went over the budget.
pub(super) fn counted(check: impl FnOnce() -> bool) -> (Option<bool>, u64) {
    TAKEN.set(0);
    let fits = check();
    let taken = TAKEN.get();
    ((taken <= limit()).then_some(fits), taken)
}

fn limit() -> u64 {
    u64::try_from(toolwarden_core::weak::limit(usize::try_from(MOST_STEPS).unwrap_or(usize::MAX))).unwrap_or(u64::MAX)
}

struct Steps {
    fan_out: u64,
}

impl Steps {
    fn take(&self, instance: &Value) -> bool {
        let size = match instance {
            Value::String(text) => text.len(),
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        };
        let size = u64::try_from(1 + size / SIZE_OF_A_STEP).unwrap_or(u64::MAX);
        let taken = TAKEN.get().saturating_add(self.fan_out.saturating_mul(size));
        TAKEN.set(taken);
        taken <= limit()
    }
}

impl<'i> Keyword<'i> for Steps {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.take(instance) { Ok(()) } else { Err(ValidationError::custom("the check takes too many steps")) }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.take(instance)
    }
}

/// The keyword's own validator.
#[expect(clippy::unnecessary_wraps, reason = "the library asks for a result")]
pub(super) fn keyword<'a>(
    _: &'a Map<String, Value>,
    value: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    Ok(Box::new(Steps { fan_out: value.as_u64().unwrap_or(1) }))
}

pub(super) const fn name() -> &'static str {
    KEYWORD
}

/// The schema with a count at every place that branches. Pointers into it stay valid: nothing is moved.
pub(super) fn with_counts(schema: &Value, places: &BTreeSet<String>) -> Value {
    let mut counted = schema.clone();
    for place in places {
        let Some(Value::Object(members)) = counted.pointer_mut(place) else { continue };
        if !BRANCHING.iter().any(|keyword| members.contains_key(*keyword)) {
            continue;
        }
        let fan_out = positions::fan_out(members);
        let step = serde_json::json!({ KEYWORD: fan_out });
        match members.get_mut("allOf") {
            Some(Value::Array(all)) => all.push(step),
            // No list: the library refuses it.
            Some(_) => {}
            None => {
                members.insert("allOf".to_owned(), Value::Array(vec![step]));
            }
        }
    }
    counted
}
