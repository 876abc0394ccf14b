//! `[telemetry]`: how the log is written, and where traces go.

use std::collections::BTreeMap;

use toolwarden_core::Secret;

use super::Standing;
use crate::readers::known::Section;
use crate::readers::server::secrets;
use crate::report::Report;
use crate::tree::{Key, Node};

/// `[telemetry]`.
#[derive(Debug, Clone, Default)]
pub struct TelemetrySection {
    /// `text` or `json`.
    pub log: Option<String>,
    /// The collector: an address traces are posted to.
    pub otlp: Option<String>,
    /// What the collector wants to see, such as a token.
    pub otlp_headers: BTreeMap<String, Secret>,
}

pub(super) fn read(report: &mut Report, standing: Standing, node: &Node) -> TelemetrySection {
    let mut section = TelemetrySection::default();
    for (key, value) in report.keys(Section::Telemetry, "telemetry", node) {
        let what = key.text.as_str();
        match what {
            "log" => section.log = report.word(what, value, &["text", "json"]),
            "otlp" => section.otlp = read_collector(report, standing, key, value),
            "otlp_headers" if is_own(report, standing, key) => section.otlp_headers = secrets(report, key, value),
            "otlp_headers" => {}
            _ => report.unread(key),
        }
    }
    section
}

/// The address of a collector. The text is not repeated in the message: it may carry a password.
pub(super) fn read_collector(report: &mut Report, standing: Standing, key: &Key, node: &Node) -> Option<String> {
    let url = report.text(&key.text, node)?;
    let known = ["http://", "https://"].iter().any(|start| url.starts_with(start));
    if !known {
        let message = format!("`{}` must begin with `http://` or `https://`", key.text);
        report.error(node.place, "unknown_value", message);
    }
    (known && is_own(report, standing, key)).then_some(url)
}

/// Traces say what is called: a workspace does not choose who hears of it.
fn is_own(report: &mut Report, standing: Standing, key: &Key) -> bool {
    let is_own = standing == Standing::Operator;
    if !is_own {
        let message = format!("`{}` counts only in the user's own config", key.text);
        report.warning(key.place, "not_counted", message);
    }
    is_own
}

#[cfg(test)]
#[path = "telemetry_tests.rs"]
mod tests;
