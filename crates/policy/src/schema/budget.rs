//! A bound on the work of checking a value against a schema (WORK-1).
//!
//! A schema is a small program: `anyOf` over shared references doubles at every level. Every place of a schema where
//! the check can branch, or a text is searched by a pattern, counts its visits, and over the budget the check ends and
//! the call is denied. The count is exact and depends on nothing but schema and value.

use std::cell::Cell;
use std::collections::BTreeSet;

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value};
use toolwarden_core::{Weakness, weak};

use super::patterns::Measured;
use super::positions;

/// The most steps of one check.
pub(super) const MOST_STEPS: u64 = 300_000;
/// The most steps of a check that is to be brief: a millisecond or two.
const MOST_BRIEF: u64 = 10_000;
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
    /// How many there may be.
    static MOST: Cell<u64> = const { Cell::new(MOST_STEPS) };
    /// Whether a check that was to be brief was given up.
    static GIVEN_UP: Cell<bool> = const { Cell::new(false) };
}

/// Does something on a thread that others wait for: its checks may take few steps. None where one takes more, and then it
/// says nothing: it is to be done again, where nobody waits.
pub fn briefly<T>(work: impl FnOnce() -> T) -> Option<T> {
    struct Until;
    impl Drop for Until {
        fn drop(&mut self) {
            MOST.set(MOST_STEPS);
        }
    }
    GIVEN_UP.set(false);
    MOST.set(MOST_BRIEF);
    let until = Until;
    let done = work();
    drop(until);
    (!GIVEN_UP.get()).then_some(done)
}

/// Whether so much work is too much at this place; gives up where it is to be brief.
pub(super) fn is_too_much(steps: u64, most: u64) -> bool {
    if weak::is(Weakness::Limits) {
        return false;
    }
    if is_brief() && steps > MOST_BRIEF.min(most) {
        GIVEN_UP.set(true);
        return true;
    }
    steps > most
}

fn is_brief() -> bool {
    MOST.get() < MOST_STEPS
}

/// Runs a check and counts its steps; none where it went over the budget.
pub(super) fn counted<T>(check: impl FnOnce() -> T) -> (Option<T>, u64) {
    TAKEN.set(0);
    let fits = check();
    let taken = TAKEN.get();
    let is_over = taken > limit();
    GIVEN_UP.set(GIVEN_UP.get() || (is_over && is_brief()));
    ((!is_over).then_some(fits), taken)
}

fn limit() -> u64 {
    u64::try_from(weak::limit(usize::try_from(MOST.get()).unwrap_or(usize::MAX))).unwrap_or(u64::MAX)
}

/// How many steps a text is.
pub(super) fn steps_of(bytes: usize) -> u64 {
    u64::try_from(1 + bytes / SIZE_OF_A_STEP).unwrap_or(u64::MAX)
}

struct Steps {
    fan_out: u64,
    /// What a pattern costs for each step of a text, and those of names for each step of these.
    of_text: u64,
    of_names: u64,
}

impl Steps {
    fn take(&self, instance: &Value) -> bool {
        let (size, searched) = match instance {
            Value::String(text) => (text.len(), self.of_text.saturating_mul(steps_of(text.len()))),
            Value::Array(items) => (items.len(), 0),
            Value::Object(members) if self.of_names > 0 => {
                let names: u64 = members.keys().map(|name| steps_of(name.len())).sum();
                (members.len(), self.of_names.saturating_mul(names))
            }
            Value::Object(members) => (members.len(), 0),
            Value::Null | Value::Bool(_) | Value::Number(_) => (0, 0),
        };
        let branches = self.fan_out.saturating_mul(steps_of(size));
        let taken = TAKEN.get().saturating_add(branches).saturating_add(searched);
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
    let number = |place: usize| value.get(place).and_then(Value::as_u64);
    let (fan_out, of_text, of_names) = (number(0).unwrap_or(1), number(1).unwrap_or(0), number(2).unwrap_or(0));
    Ok(Box::new(Steps { fan_out, of_text, of_names }))
}

pub(super) const fn name() -> &'static str {
    KEYWORD
}

/// The schema with a count at every place that branches or searches. Pointers into it stay valid: nothing is moved but
/// patterns, which nothing can point at.
pub(super) fn with_counts(schema: &Value, places: &BTreeSet<String>, patterns: &Measured) -> Value {
    let mut counted = schema.clone();
    for place in places {
        let Some(Value::Object(members)) = counted.pointer_mut(place) else { continue };
        let of_text = patterns.of_texts.get(place).copied();
        if of_text.is_none() && !BRANCHING.iter().any(|keyword| members.contains_key(*keyword)) {
            continue;
        }
        // No list: the library refuses it.
        if members.get("allOf").is_some_and(|all| !all.is_array()) {
            continue;
        }
        let of_names = patterns.of_names.get(place).copied().unwrap_or(0);
        let fan_out = positions::fan_out(members);
        let step = serde_json::json!({ KEYWORD: [fan_out, of_text.unwrap_or(0), of_names] });
        // Where it stands the library searches before it counts.
        let pattern = of_text.and_then(|_| members.remove("pattern"));
        let pattern = pattern.map(|pattern| serde_json::json!({ "pattern": pattern }));
        let all = members.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(all) = all {
            all.extend([Some(step), pattern].into_iter().flatten());
        }
    }
    counted
}
