//! A row as a line of syslog (RFC 5424), its fields as structured data.

use std::fmt::Write;

use jiff::Timestamp;
use serde_json::Value;
use toolwarden_core::name::shown;

use super::row::Row;

/// Facility 13: log audit.
const FACILITY: u32 = 13;
/// The number the registry keeps for those who have none of their own.
const DATA_ID: &str = "toolwarden@32473";
/// Bounds of the header's fields.
const LONGEST_PROCESS: usize = 128;
const LONGEST_KIND: usize = 32;

impl Row {
    /// One line. The host is left to whoever sends it on.
    #[must_use]
    pub fn to_syslog_line(&self) -> String {
        let time = self.time.parse::<Timestamp>().map_or("-".to_owned(), |time| format!("{time:.6}"));
        let (process, kind) = (header(&self.node, LONGEST_PROCESS), header(&self.kind, LONGEST_KIND));
        let mut line = format!("<{}>1 {time} - toolwarden {process} {kind} [{DATA_ID}", self.priority());
        let fields = serde_json::to_value(self).unwrap_or_default();
        for (name, value) in fields.as_object().into_iter().flatten() {
            let text = match value {
                Value::Null => continue,
                Value::String(text) => text.clone(),
                Value::Array(items) if items.is_empty() => continue,
                Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
                other => other.to_string(),
            };
            let _ = write!(line, " {name}=\"{}\"", parameter(&text));
        }
        let message = shown(&self.summary()).into_owned();
        // A message that is not ASCII says so with the mark the standard asks for.
        let mark = if message.is_ascii() { "" } else { "\u{feff}" };
        let _ = writeln!(line, "] {mark}{message}");
        line
    }

    /// Warnings for what was denied or broke, notices for what was held, else information.
    fn priority(&self) -> u32 {
        let severity = match (self.decision.as_deref(), self.status.as_deref()) {
            (Some("deny"), _) => 4,
            (_, Some("upstream_error" | "timeout" | "too_large")) => 4,
            (Some("hold"), _) => 5,
            (_, Some("tool_error" | "cancelled" | "unknown")) => 5,
            _ => 6,
        };
        FACILITY * 8 + severity
    }
}

/// A field of the header: visible ASCII, or nothing.
fn header(text: &str, longest: usize) -> String {
    let text: String = text.chars().filter(char::is_ascii_graphic).take(longest).collect();
    if text.is_empty() { "-".to_owned() } else { text }
}

/// The value of a parameter: three characters end it or escape, so they are escaped; what would break the
/// line is written out.
fn parameter(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for character in shown(text).chars() {
        if matches!(character, '"' | '\\' | ']') {
            value.push('\\');
        }
        value.push(character);
    }
    value
}
