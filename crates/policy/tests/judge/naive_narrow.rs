//! Entries over arguments, `server:tool where {..}`: read as JSON, every argument looked at one by one (REVIEW-3).

use serde_json::Value;
use toolwarden_core::Operation;

use crate::naive::{Case, Kind};
use crate::naive_allowlist::sides;

/// Whether an entry lets this call run unasked.
pub fn matches(entry: &str, case: &Case<'_>) -> bool {
    let Some((names, demands)) = entry.split_once(" where ") else { return false };
    let Some((server, tool)) = sides(names) else { return false };
    let is_tool = case.kind == Kind::Mcp(Operation::CallTool) && server == case.named.server && tool == case.named.tool;
    let Ok(Value::Object(demands)) = serde_json::from_str(demands) else { return false };
    // Written in the one way, in the order of the names, and asking for something.
    let is_canonical =
        entry.ends_with(&format!(" where {}", Value::Object(demands.clone()))) && demands.keys().is_sorted();
    let asks = demands.values().any(|demand| demand != "free");
    if !is_tool || !is_canonical || !asks || server == "*" || tool == "*" {
        return false;
    }
    let Value::Object(arguments) = &case.arguments else { return false };
    let is_sent = case.query.call.arguments.as_ref().is_some_and(|sent| sent.raw().starts_with('{'));
    let free = |pointer: &str| demands.get(pointer).is_some_and(|demand| demand == "free");
    let mut leaves: Vec<(String, &Value)> = Vec::new();
    for (name, value) in arguments {
        match value.as_object().filter(|inner| !inner.is_empty() && !free(&format!("/{name}"))) {
            // The generator makes nothing deeper that an entry names.
            Some(inner) => leaves.extend(inner.iter().map(|(key, value)| (format!("/{name}/{key}"), value))),
            None => leaves.push((format!("/{name}"), value)),
        }
    }
    let all_named = leaves.iter().all(|(pointer, _)| demands.contains_key(pointer));
    let all_met = demands
        .iter()
        .filter(|(_, demand)| *demand != "free")
        .all(|(pointer, demand)| leaves.iter().any(|(known, value)| known == pointer && is_like(demand, value)));
    is_sent && all_named && all_met
}

fn is_like(demand: &Value, value: &Value) -> bool {
    if let Some(wanted) = demand.get("equals") {
        return wanted == value;
    }
    let Some(text) = value.as_str() else { return false };
    let wanted = |kind: &str| demand.get(kind).and_then(Value::as_str);
    if let Some(directory) = wanted("path") {
        return is_plain(text) && text.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
    }
    if let Some(branch) = wanted("branch") {
        let is_ref = is_plain(text) && !text.starts_with('/') && !text.contains("/.") && !text.contains("..");
        return is_ref && (text == branch || text.starts_with(&format!("{branch}/")));
    }
    let Some(host) = wanted("host") else { return false };
    let ends = [String::new(), ":443".to_owned()];
    ends.iter().any(|port| {
        let address = format!("https://{host}{port}");
        let lower = text.to_ascii_lowercase();
        lower == host || lower == address || lower.starts_with(&format!("{address}/"))
    })
}

/// Names of letters, digits and dots between slashes; none that ends with a dot.
fn is_plain(text: &str) -> bool {
    let good = |part: &str| {
        !part.is_empty()
            && !part.ends_with('.')
            && part.chars().all(|sign| sign.is_ascii_alphanumeric() || "._-+@".contains(sign))
    };
    text.strip_prefix('/').unwrap_or(text).split('/').all(good)
}
