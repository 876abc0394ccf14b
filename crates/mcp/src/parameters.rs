//! Parameters that a tool's schema wants repeated as headers (`x-mcp-header`): compared, and made.

use std::collections::HashSet;

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
/// A header says otherwise than the body, or repeats nothing of it.
pub fn compare_all(schema: &Schema, value: Option<Value<'_>>, headers: &HeaderMap) -> Result<(), String> {
    let mut declared = HashSet::new();
    compare_below(schema, value, headers, &mut declared, 0)?;
    // Such a header is sent on, and nobody looks at it: it must say what the body says.
    let is_strange =
        |name: &&HeaderName| name.as_str().starts_with(PARAMETER_PREFIX) && !declared.contains(name.as_str());
    match headers.keys().find(is_strange) {
        Some(name) => Err(format!("header `{name}` repeats no parameter of this tool")),
        None => Ok(()),
    }
}

fn compare_below(
    schema: &Schema,
    value: Option<Value<'_>>,
    headers: &HeaderMap,
    declared: &mut HashSet<String>,
    depth: usize,
) -> Result<(), String> {
    let properties = schema.get("properties").and_then(Schema::as_object);
    if depth > DEPTH {
        return Ok(());
    }
    for (key, property) in properties.into_iter().flatten() {
        let inner = value.and_then(|value| value.get(key));
        match property.get("x-mcp-header").and_then(Schema::as_str) {
            Some(name) => {
                compare(name, inner, headers)?;
                declared.insert(format!("{PARAMETER_PREFIX}{}", name.to_ascii_lowercase()));
            }
            None => compare_below(property, inner, headers, declared, depth + 1)?,
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

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};
    use serde_json::json;
    use toolwarden_core::json::{Document, Limits};

    use super::compare_all;

    fn compared(schema: &serde_json::Value, arguments: &str, headers: &[(&str, &str)]) -> Result<(), String> {
        let document = Document::parse(arguments, Limits::DEFAULT).ok();
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::try_from(*name).ok();
            let value = HeaderValue::from_str(value).ok();
            sent.extend(name.zip(value).map(|(name, value)| (Some(name), value)));
        }
        compare_all(schema, document.as_ref().map(Document::root), &sent)
    }

    #[test]
    fn review_5_a_header_that_repeats_no_parameter_is_refused() {
        let schema = json!({ "properties": { "region": { "type": "string", "x-mcp-header": "Region" },
            "o": { "$ref": "#/$defs/o" } }, "$defs": { "o": { "properties": { "amount": { "x-mcp-header": "Amount" } } } } });
        let arguments = r#"{"region":"eu","o":{"amount":5}}"#;
        assert_eq!(compared(&schema, arguments, &[("mcp-param-region", "eu")]), Ok(()));
        assert_eq!(compared(&schema, arguments, &[("mcp-param-region", "eu"), ("x-other", "1")]), Ok(()));
        for strange in ["mcp-param-data", "Mcp-Param-Amount", "mcp-param-"] {
            let refused = compared(&schema, arguments, &[("mcp-param-region", "eu"), (strange, "5000")]);
            assert!(refused.is_err_and(|why| why.contains("repeats no parameter")), "{strange}");
        }
        assert!(compared(&json!(null), "{}", &[("mcp-param-data", "x")]).is_err(), "a tool without a schema has none");
    }
}
