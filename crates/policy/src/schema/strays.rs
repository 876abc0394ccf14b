//! Schemas that only a reference leads to (WORK-1): `"$ref": "#/foo"`, where `foo` is no keyword.
//!
//! The library holds a schema to the rules of its dialect through keywords alone, and drops a keyword whose value it does
//! not understand. So what stands elsewhere is held to these rules here.

use serde_json::Value;

/// The most values of such schemas that are looked at.
const MOST_VALUES: usize = 50_000;

/// Holds each of these places to the rules of the schema's dialect.
///
/// # Errors
/// Which of them is no schema.
pub(super) fn check(root: &Value, places: &[String]) -> Result<(), String> {
    let mut left = MOST_VALUES;
    for place in places {
        let Some(stray) = root.pointer(place) else { continue };
        left = left
            .checked_sub(super::size(stray).0)
            .ok_or_else(|| format!("the schemas that references alone lead to hold more than {MOST_VALUES} values"))?;
        let mut stray = stray.clone();
        if let (Some(members), Some(dialect)) = (stray.as_object_mut(), root.get("$schema")) {
            members.entry("$schema").or_insert_with(|| dialect.clone());
        }
        jsonschema::meta::validate(&stray).map_err(|error| format!("`#{place}` is no schema: {}", error.masked()))?;
    }
    Ok(())
}
