//! Arguments against the input schema and the limits (GATE-12, GATE-13), for the small schemas the
//! generator makes: an object with typed properties, required keys and `additionalProperties`.

use serde_json::Value;
use toolwarden_core::{Operation, Reason};

use crate::naive::{Case, Kind};

pub fn schema(case: &Case<'_>) -> Option<Reason> {
    if !matches!(case.kind, Kind::Mcp(Operation::CallTool)) && case.query.call.arguments.is_none() {
        return None;
    }
    if case.query.call.requested_operation() != Operation::CallTool {
        return None;
    }
    let listed = case.definition().and_then(|server| server.catalog.as_ref())?;
    let tool = listed.iter().find(|tool| tool.name == case.named.tool)?;
    let schema = tool.input_schema.as_ref()?;
    // A schema that cannot be compiled denies its tool (WORK-1).
    let is_known = |name: &str| ["object", "string", "integer"].contains(&name);
    if !schema.get("type").and_then(Value::as_str).is_none_or(is_known) {
        return Some(Reason::SchemaUnusable);
    }
    // Before anybody chose arguments there is nothing to check.
    if case.query.arguments_omitted {
        return None;
    }
    (!fits(schema, &case.arguments)).then_some(Reason::SchemaViolation)
}

fn fits(schema: &Value, value: &Value) -> bool {
    let right_type = match schema.get("type").and_then(Value::as_str) {
        Some("object") => value.is_object(),
        Some("string") => value.is_string(),
        // Of any size: JSON Schema asks for a zero fraction only.
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    };
    let Some(object) = value.as_object() else { return right_type };
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    right_type
        && required.into_iter().flatten().filter_map(Value::as_str).all(|key| object.contains_key(key))
        && object.iter().all(|(key, value)| match properties.and_then(|properties| properties.get(key)) {
            Some(schema) => fits(schema, value),
            None => !closed,
        })
}

pub fn limits(case: &Case<'_>) -> Option<Reason> {
    let arguments = case.query.call.arguments.as_ref()?;
    let tools = case.tool_configs();
    let bytes = tools.iter().filter_map(|tool| tool.limits.request_bytes).min();
    let levels = tools.iter().filter_map(|tool| tool.limits.depth).min();
    let server = case.definition().map(|server| server.limits).unwrap_or_default();
    let gateway = case.input.base.limits;
    if bytes.or(server.request_bytes).or(gateway.request_bytes).is_some_and(|most| arguments.raw().len() > most) {
        return Some(Reason::RequestTooLarge);
    }
    let depth = levels.or(server.depth).or(gateway.depth);
    depth.is_some_and(|most| depth_of(&case.arguments) > most).then_some(Reason::RequestTooDeep)
}

fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth_of).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
