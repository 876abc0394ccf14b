//! Results: what the modern era adds to each of them, and what either has no word for.

use toolwarden_core::json::{Kind, Value, unescape};

use super::{SERVER_INFO, annotations, is_per_hop};
use crate::compose::{object_with, quoted};

/// A modern server's result for a legacy client.
#[must_use]
pub fn result_to_legacy(method: &str, result: Value<'_>) -> String {
    let meta = result.get("_meta").map(without_hops);
    let mut changed: Vec<(&str, Option<&str>)> = vec![("resultType", None), ("ttlMs", None), ("cacheScope", None)];
    if let Some(meta) = &meta {
        changed.push(("_meta", (meta != "{}").then_some(meta)));
    }
    let replaced = match method {
        "tools/list" => Some(("tools", array(result, "tools", legacy_tool))),
        "tools/call" => as_text(result).map(|content| ("content", content)),
        _ => None,
    };
    if let Some((key, value)) = &replaced {
        changed.push((key, Some(value)));
    }
    if method == "tools/call" && has_other_structure(result) {
        changed.push(("structuredContent", None));
    }
    object_with(Some(result), &changed)
}

/// A legacy server's result for a modern client. `server` is its `serverInfo`, raw.
#[must_use]
pub fn result_to_modern(method: &str, result: Value<'_>, server: Option<&str>) -> String {
    let kept = result.get("_meta").filter(|meta| meta.kind() == Kind::Object);
    let meta = object_with(kept, &[(SERVER_INFO, server)]);
    let mut changed = vec![("resultType", Some("\"complete\"")), ("_meta", (meta != "{}").then_some(meta.as_str()))];
    if is_cached(method) {
        changed.extend([("ttlMs", Some("0")), ("cacheScope", Some("\"private\""))]);
    }
    let tools = (method == "tools/list").then(|| array(result, "tools", modern_tool));
    if let Some(tools) = &tools {
        changed.push(("tools", Some(tools)));
    }
    object_with(Some(result), &changed)
}

fn is_cached(method: &str) -> bool {
    matches!(method, "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" | "resources/read")
}

fn without_hops(meta: Value<'_>) -> String {
    let keys: Vec<_> = meta.entries().map(|(key, _)| unescape(key)).filter(|key| is_per_hop(key)).collect();
    let changed: Vec<(&str, Option<&str>)> = keys.iter().map(|key| (&**key, None)).collect();
    object_with(Some(meta), &changed)
}

/// The entries of a list, each in other words or left out.
fn array(result: Value<'_>, key: &str, entry: impl Fn(Value<'_>) -> Option<String>) -> String {
    let listed = result.get(key).filter(|list| list.kind() == Kind::Array);
    let entries: Vec<String> = listed.into_iter().flat_map(Value::items).filter_map(entry).collect();
    format!("[{}]", entries.join(","))
}

/// A legacy client knows only outputs that are objects. A tool whose headers cannot be sent is none.
fn legacy_tool(tool: Value<'_>) -> Option<String> {
    if tool.get("inputSchema").is_some_and(|schema| !annotations::are_usable(schema)) {
        return None;
    }
    let output = tool.get("outputSchema");
    if output.is_none_or(is_object_schema) {
        return Some(tool.raw().to_owned());
    }
    Some(object_with(Some(tool), &[("outputSchema", None)]))
}

/// Tasks of the older form cannot be offered to a modern client, and `execution` speaks of nothing else.
fn modern_tool(tool: Value<'_>) -> Option<String> {
    let support = tool.get("execution").and_then(|execution| execution.get("taskSupport"));
    if support.and_then(|support| support.as_str()).as_deref() == Some("required") {
        return None;
    }
    Some(object_with(Some(tool), &[("execution", None)]))
}

fn is_object_schema(schema: Value<'_>) -> bool {
    schema.get("type").and_then(|kind| kind.as_str()).as_deref() == Some("object")
}

fn has_other_structure(result: Value<'_>) -> bool {
    result.get("structuredContent").is_some_and(|content| content.kind() != Kind::Object)
}

/// Structured content that is no object, as a text, where there is no other.
fn as_text(result: Value<'_>) -> Option<String> {
    let structured = result.get("structuredContent").filter(|_| has_other_structure(result))?;
    let content = result.get("content").filter(|content| content.kind() == Kind::Array);
    let is_text = |block: Value<'_>| block.get("type").and_then(|kind| kind.as_str()).as_deref() == Some("text");
    if content.is_some_and(|content| content.items().any(is_text)) {
        return None;
    }
    let mut blocks: Vec<String> =
        content.into_iter().flat_map(Value::items).map(|block| block.raw().to_owned()).collect();
    blocks.push(format!(r#"{{"type":"text","text":{}}}"#, quoted(structured.raw())));
    Some(format!("[{}]", blocks.join(",")))
}
