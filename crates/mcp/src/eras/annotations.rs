//! `x-mcp-header` in a tool's input schema: parameters a modern client repeats as headers.
//!
//! Whoever speaks to a modern server must leave out tools whose annotations cannot be followed.

use std::collections::HashSet;

use toolwarden_core::json::{Kind, Value, unescape};

const ANNOTATION: &str = "x-mcp-header";

/// Whether every annotation of a schema can be followed: reached through `properties` alone, on a
/// text, whole number or truth value, under a name that can be a header's, each name once.
pub(super) fn are_usable(schema: Value<'_>) -> bool {
    let mut names = HashSet::new();
    in_properties(schema, &mut names)
}

fn in_properties(schema: Value<'_>, names: &mut HashSet<String>) -> bool {
    schema.entries().all(|(key, value)| match &*unescape(key) {
        "properties" if value.kind() == Kind::Object => {
            value.entries().all(|(_, property)| is_followed(property, names) && in_properties(property, names))
        }
        ANNOTATION => true,
        // Examples and defaults are data, not schema.
        "default" | "const" | "enum" | "examples" => true,
        _ => has_none(value),
    })
}

fn is_followed(property: Value<'_>, names: &mut HashSet<String>) -> bool {
    let Some(annotation) = property.get(ANNOTATION) else { return true };
    let kind = property.get("type").and_then(|kind| kind.as_str());
    let is_simple = matches!(kind.as_deref(), Some("string" | "integer" | "boolean"));
    let name = annotation.as_str().unwrap_or_default();
    is_simple && is_token(&name) && names.insert(name.to_ascii_lowercase())
}

/// An annotation somewhere else could not be followed.
fn has_none(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::Object => value.entries().all(|(key, inner)| unescape(key) != ANNOTATION && has_none(inner)),
        Kind::Array => value.items().all(has_none),
        Kind::Null | Kind::True | Kind::False | Kind::Number | Kind::String => true,
    }
}

fn is_token(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_part)
}
