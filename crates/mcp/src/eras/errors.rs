//! Errors: codes that mean something in one era only.

use toolwarden_core::json::Value;

use crate::compose::object_with;

const INVALID_PARAMS: &str = "-32602";
const INTERNAL: &str = "-32603";
const NOT_FOUND: i64 = -32002;
/// Reserved by the modern revision for what is said between two neighbours.
const RESERVED: std::ops::RangeInclusive<i64> = -32099..=-32020;

/// A legacy server's error for a modern client. `uri` is the resource that was asked for, raw.
#[must_use]
pub fn error_to_modern(error: Value<'_>, uri: Option<&str>) -> String {
    match code(error) {
        Some(NOT_FOUND) => {
            let data = object_with(error.get("data"), &[("uri", uri)]);
            object_with(Some(error), &[("code", Some(INVALID_PARAMS)), ("data", Some(&data))])
        }
        Some(code) if RESERVED.contains(&code) => internal(error, code),
        _ => error.raw().to_owned(),
    }
}

/// A modern server's error for a legacy client.
#[must_use]
pub fn error_to_legacy(error: Value<'_>) -> String {
    match code(error) {
        Some(code) if RESERVED.contains(&code) => internal(error, code),
        _ => error.raw().to_owned(),
    }
}

/// As a number: clients read -32042.0 and -32042 alike.
fn code(error: Value<'_>) -> Option<i64> {
    let code: f64 = error.get("code")?.raw().parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "every code that means something is small and whole")]
    (code.fract() == 0.0 && code.abs() < 1e9).then_some(code as i64)
}

/// Between the gateway and the server something was not in order; that is not the client's affair.
fn internal(error: Value<'_>, code: i64) -> String {
    let data = format!("{{\"upstreamCode\":{code}}}");
    object_with(Some(error), &[("code", Some(INTERNAL)), ("data", Some(&data))])
}
