//! The arguments of a call, as a plain JSON value.

use toolwarden_policy::Query;

/// What was sent; an empty object where nothing was.
pub fn arguments_of(query: &Query) -> serde_json::Value {
    let empty = || serde_json::Value::Object(serde_json::Map::new());
    match &query.call.arguments {
        Some(arguments) => serde_json::from_str(arguments.raw()).unwrap_or_else(|_| empty()),
        None => empty(),
    }
}
