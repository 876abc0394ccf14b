//! `[audit]`: how calls are recorded, what of their arguments, and for how long.

use std::time::Duration;

use regex::Regex;

use super::Standing;
use super::screening::compile;
use super::telemetry::read_collector;
use crate::readers::known::Section;
use crate::report::Report;
use crate::tree::{Key, Node, Value};

/// More names or patterns than this are refused.
const MOST: usize = 256;

/// `[audit]`.
#[derive(Debug, Clone, Default)]
pub struct AuditSection {
    /// `os`, `100ms`, `always` or `store`.
    pub sync: Option<String>,
    /// Whether records hold the arguments of calls, redacted.
    pub arguments: bool,
    pub redaction: RedactionRules,
    /// How long records are kept; none = for ever.
    pub retention: Option<Duration>,
    pub checkpoints: Option<Duration>,
    /// The same as `[telemetry] otlp`.
    pub otlp: Option<String>,
}

/// What is hidden of recorded arguments, besides what always is.
#[derive(Debug, Clone, Default)]
pub struct RedactionRules {
    /// Argument names whose values are hidden, at any depth, in small letters.
    pub names: Vec<String>,
    /// Parts of texts that are hidden.
    pub patterns: Vec<Regex>,
}

pub(super) fn read(report: &mut Report, standing: Standing, node: &Node) -> AuditSection {
    let mut section = AuditSection::default();
    for (key, value) in report.keys(Section::Audit, "audit", node) {
        let what = key.text.as_str();
        match what {
            "sync" => section.sync = report.word(what, value, &["os", "100ms", "always", "store"]),
            "arguments" | "retention" if standing == Standing::Workspace => {
                let message = format!("`{what}` counts only in the user's own config");
                report.warning(key.place, "not_counted", message);
            }
            "arguments" => section.arguments = report.boolean(what, value) == Some(true),
            "redaction" => section.redaction = read_redaction(report, key, value),
            "retention" => section.retention = read_retention(report, value),
            "checkpoints" => section.checkpoints = report.duration(what, value),
            "otlp" => section.otlp = read_collector(report, standing, key, value),
            _ => report.unread(key),
        }
    }
    section
}

fn read_retention(report: &mut Report, node: &Node) -> Option<Duration> {
    let time = report.duration("retention", node)?;
    if time.is_zero() {
        report.error(node.place, "out_of_range", "`retention` must not be nothing: records could never be read");
        return None;
    }
    Some(time)
}

/// A list of texts, each of which is an argument name and a pattern; or `{ names, patterns }`.
fn read_redaction(report: &mut Report, key: &Key, node: &Node) -> RedactionRules {
    let mut rules = RedactionRules::default();
    match &node.value {
        Value::List(_) => {
            rules.names = read_names(report, &key.text, node);
            rules.patterns = read_patterns(report, &key.text, node);
        }
        Value::Table(_) => {
            for (key, value) in report.keys(Section::Redaction, "redaction", node) {
                match key.text.as_str() {
                    "names" => rules.names = read_names(report, &key.text, value),
                    "patterns" => rules.patterns = read_patterns(report, &key.text, value),
                    _ => report.unread(key),
                }
            }
        }
        _ => report.wrong_type("redaction", node, "a list of texts, or { names, patterns }"),
    }
    rules
}

fn read_names(report: &mut Report, what: &str, node: &Node) -> Vec<String> {
    let names = report.plain_texts(what, node).unwrap_or_default();
    if names.len() > MOST || names.iter().any(|name| name.trim().is_empty()) {
        report.error(node.place, "out_of_range", format!("`{what}` has at most {MOST} names, none of them empty"));
    }
    names.iter().map(|name| name.to_lowercase()).collect()
}

fn read_patterns(report: &mut Report, what: &str, node: &Node) -> Vec<Regex> {
    let items = report.list(what, node).unwrap_or_default();
    if items.len() > MOST {
        report.error(node.place, "too_many", format!("at most {MOST} patterns"));
    }
    let mut patterns = Vec::new();
    for item in items.iter().take(MOST) {
        match &item.value {
            Value::String(text) => patterns.extend(compile(report, item, text)),
            // A list of texts says so itself.
            _ if what == "redaction" => {}
            _ => report.wrong_type(what, item, "a list of texts"),
        }
    }
    patterns
}
