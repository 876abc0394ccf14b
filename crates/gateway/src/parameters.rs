//! Parameters that a tool's schema wants repeated as headers (`x-mcp-header`): compared with the body.
//!
//! The body is what is judged and sent; a header that says otherwise would be acted on by whoever
//! trusts headers, so the call is refused.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value as Schema;
use toolwarden_core::json::{Kind, Value};
use toolwarden_core::{Weakness, weak};
use toolwarden_mcp::headers::{PARAMETER_PREFIX, decode};
use toolwarden_mcp::ladder::{self, Rung};
use toolwarden_mcp::{Era, headers};

use crate::arrival::Via;
use crate::gateway::Gateway;
use crate::refusal::Refusal;
use crate::resolve::{Asked, What, text_member};

/// Deepest schema that is followed.
const DEPTH: usize = 16;

/// Checks a modern tool call that came over HTTP.
pub(crate) fn check(gateway: &Gateway, asked: &Asked) -> Result<(), Refusal> {
    let is_modern_http = asked.arrival.via == Via::Http && asked.arrival.version.era() == Era::Modern;
    if !is_modern_http || !matches!(asked.what, What::Call) || weak::is(Weakness::Ladder) {
        return Ok(());
    }
    let policy = gateway.live.policy();
    let tool = policy.servers().get(&asked.upstream.name).and_then(|server| server.tool(&asked.query.call.tool));
    let schema = tool.and_then(|tool| tool.definition.as_ref()?.input_schema.as_ref());
    let Some(schema) = schema else { return Ok(()) };
    let arguments = asked.query.call.arguments.as_ref().map(toolwarden_core::json::Part::value);
    follow(schema, arguments, &asked.arrival.headers, 0).map_err(|what| Refusal::Rung(Rung::Header(what)))
}

/// Annotations count where they are reached through `properties` alone.
fn follow(schema: &Schema, value: Option<Value<'_>>, headers: &HeaderMap, depth: usize) -> Result<(), String> {
    let properties = schema.get("properties").and_then(Schema::as_object);
    if depth > DEPTH {
        return Ok(());
    }
    for (key, property) in properties.into_iter().flatten() {
        let inner = value.and_then(|value| value.get(key));
        match property.get("x-mcp-header").and_then(Schema::as_str) {
            Some(name) => compare(name, inner, headers)?,
            None => follow(property, inner, headers, depth + 1)?,
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

/// The headers that mirror a modern request which came without any: over a pipe.
pub(crate) fn mirrors(gateway: &Gateway, asked: &Asked) -> HeaderMap {
    let mut made = HeaderMap::new();
    if let Ok(method) = HeaderValue::from_str(&asked.method) {
        made.insert(headers::METHOD, method);
    }
    let params = asked.query.call.params.as_ref();
    let name = ladder::named_by(&asked.method).and_then(|key| text_member(params, key));
    if let Some(name) = name {
        made.insert(headers::NAME, headers::encode(&name));
    }
    let policy = gateway.live.policy();
    let tool = policy.servers().get(&asked.upstream.name).and_then(|server| server.tool(&asked.query.call.tool));
    let schema = tool.and_then(|tool| tool.definition.as_ref()?.input_schema.as_ref());
    let arguments = asked.query.call.arguments.as_ref().map(toolwarden_core::json::Part::value);
    if let (Some(schema), What::Call) = (schema, &asked.what) {
        repeat(schema, arguments, &mut made, 0);
    }
    made
}

fn repeat(schema: &Schema, value: Option<Value<'_>>, made: &mut HeaderMap, depth: usize) {
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
