//! Parameters that a tool's schema wants repeated as headers (`x-mcp-header`): compared, and made.

use http::{HeaderMap, HeaderName};
use serde_json::Value as Schema;
use toolwarden_core::json::{Kind, Value};

use crate::headers::{self, PARAMETER_PREFIX, decode};

/// Deepest schema that is followed.
const DEPTH: usize = 16;

/// Compares the headers of a request with its arguments. Annotations count where they are reached through
/// `properties` alone.
///
/// # Errors
/// A header says otherwise than the body.
pub fn compare_all(schema: &Schema, value: Option<Value<'_>>, headers: &HeaderMap, depth: usize) -> Result<(), String> {
    let properties = schema.get("properties").and_then(Schema::as_object);
    if depth > DEPTH {
        return Ok(());
    }
    for (key, property) in properties.into_iter().flatten() {
        let inner = value.and_then(|value| value.get(key));
        match property.get("x-mcp-header").and_then(Schema::as_str) {
            Some(name) => compare(name, inner, headers)?,
            None => compare_all(property, inner, headers, depth + 1)?,
        }
    }
    Ok(())
}

fn compare(name: &str, value: Option<Value<'_>>, headers: &HeaderMap) -> Result<(), String> {
    let header = format!("{PARAMETER_PREFIX}{}", name.to_ascii_lowercase());
    let sent = headers.get(&header);
    let expected = value.filter(|value| value.kind() != Kind::Null);
    match (sent, expected) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(format!("header `{header}` is missing; the body has a value for it")),
        (Some(_), None) => Err(format!("header `{header}` has a value, the body has none")),
        (Some(sent), Some(value)) => {
            let text = sent.to_str().ok().and_then(|text| decode(text.trim()));
            let same = text.is_some_and(|text| matches(&text, value));
            if same { Ok(()) } else { Err(format!("header `{header}` does not say what the body says")) }
        }
    }
}

/// The headers that repeat arguments.
pub fn repeat(schema: &Schema, value: Option<Value<'_>>, made: &mut HeaderMap, depth: usize) {
    let properties = schema.get("properties").and_then(Schema::as_object);
    for (key, property) in properties.into_iter().flatten().filter(|_| depth <= DEPTH) {
        let inner = value.and_then(|value| value.get(key)).filter(|value| value.kind() != Kind::Null);
        match property.get("x-mcp-header").and_then(Schema::as_str) {
            None => repeat(property, inner, made, depth + 1),
            Some(name) => {
                let header = HeaderName::try_from(format!("{PARAMETER_PREFIX}{}", name.to_ascii_lowercase()));
                let text =
                    inner.map(|value| value.as_str().map_or(value.raw().to_owned(), std::borrow::Cow::into_owned));
                if let (Ok(header), Some(text)) = (header, text) {
                    made.insert(header, headers::encode(&text));
                }
            }
        }
    }
}

fn matches(text: &str, value: Value<'_>) -> bool {
    match value.kind() {
        Kind::String => value.as_str().is_some_and(|own| own == text),
        Kind::True => text == "true",
        Kind::False => text == "false",
        // Integers are compared as numbers: 1 and 1.0 are the same parameter.
        Kind::Number => value.raw() == text || number(text).is_some_and(|sent| number(value.raw()) == Some(sent)),
        Kind::Null | Kind::Array | Kind::Object => false,
    }
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| text.strip_suffix(".0").and_then(|whole| whole.parse().ok()))
}
