//! A bound on `unevaluatedProperties` and `unevaluatedItems` (WORK-1).
//!
//! For each of these keywords the library compiles once more whatever its schema applies to the same value, with every
//! reference written out, and again for such a keyword within. A few kilobytes could take gigabytes, or more stack than a
//! thread has, before any value is checked.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::positions;

/// The keywords meant here.
const KEYWORDS: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
/// Keywords for parts of the value that are compiled again as well.
const OF_PARTS: [&str; 6] =
    ["additionalProperties", "additionalItems", "items", "contains", "unevaluatedProperties", "unevaluatedItems"];
/// The most schemas that are compiled for these keywords of one schema.
pub(super) const MOST_SCHEMAS: usize = 2_000;
/// The deepest a schema may be nested below such a keyword, references included.
const DEEPEST: usize = 64;

/// How many schemas the library compiles for these keywords; none where it is more than a schema may take.
pub(super) fn compiled_again(root: &Value, places: &BTreeSet<String>) -> Option<usize> {
    let mut left = MOST_SCHEMAS;
    for place in places {
        let members = root.pointer(place).and_then(Value::as_object);
        if let Some(members) = members.filter(|members| has_keyword(members)) {
            below(root, place, members, 0, &mut left)?;
        }
    }
    Some(MOST_SCHEMAS - left)
}

fn has_keyword(members: &Map<String, Value>) -> bool {
    KEYWORDS.iter().any(|keyword| members.contains_key(*keyword))
}

/// Visits the schemas below a place, references written out.
fn below(root: &Value, place: &str, members: &Map<String, Value>, depth: usize, left: &mut usize) -> Option<()> {
    if depth > DEEPEST {
        return None;
    }
    let inside = positions::inside(members).into_iter();
    let inner = inside.filter(|(is_same, inner)| *is_same || is_of_parts(inner));
    let mut next: Vec<String> = inner.map(|(_, inner)| format!("{place}/{inner}")).collect();
    // A reference that cannot be followed was refused before.
    next.extend(positions::target(members, place).ok().flatten());
    for place in next {
        *left = left.checked_sub(1)?;
        let Some(members) = root.pointer(&place).and_then(Value::as_object) else { continue };
        // Compiled for itself, and once more for the keyword above it.
        for _ in 0..=usize::from(has_keyword(members)) {
            below(root, &place, members, depth + 1, left)?;
        }
    }
    Some(())
}

fn is_of_parts(inner: &str) -> bool {
    OF_PARTS.contains(&inner.split('/').next().unwrap_or_default())
}
