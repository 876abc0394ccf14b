//! One event, one line: what hostile text cannot do in either format.

use toolwarden_core::name::is_deceptive;

use super::{LONGEST_VALUE, LogFormat};
use crate::paper::Paper;

fn logged(format: LogFormat, events: impl FnOnce()) -> String {
    let paper = Paper::default();
    let guard = paper.take_log(format);
    events();
    drop(guard);
    paper.text()
}

const TEXT: LogFormat = LogFormat::Text { colours: false };
/// A forged line, an escape sequence, its eight-bit form, a carriage return, bidirectional controls.
const HOSTILE: &str = "x\n2027-01-15T08:00:00Z  INFO all is well\u{1b}[2J\u{9b}31m\r\u{202e}gnp\u{2066}\u{85}\u{7}";

fn hostile_event() {
    tracing::warn!(server = HOSTILE, error = %HOSTILE, "it said: {HOSTILE}");
    tracing::info!("next");
}

#[test]
fn an_event_is_one_line_of_text() {
    let log = logged(TEXT, || {
        let node = "a b\"c";
        tracing::warn!(server = "notes", node, count = 3, fine = true, "it \"ended\": {}", "why");
    });
    let expected =
        "2027-01-15T08:00:00.000000Z  WARN it \"ended\": why server=notes node=\"a b\\\"c\" count=3 fine=true\n";
    assert_eq!(log, expected);
}

#[test]
fn an_event_is_one_object_of_json() {
    let log = logged(LogFormat::Json, || {
        tracing::error!(server = "no\"tes", count = 3, below = -1, fine = true, "it \"ended\": {}", "w\thy");
    });
    let value: serde_json::Value = serde_json::from_str(&log).unwrap_or_default();
    let expected = serde_json::json!({
        "time": "2027-01-15T08:00:00.000000Z",
        "level": "error",
        "target": "toolwarden_telemetry::log::tests",
        "message": "it \"ended\": w\thy",
        "fields": { "server": "no\"tes", "count": 3, "below": -1, "fine": true },
    });
    assert_eq!(value, expected, "{log}");
}

#[test]
fn hostile_text_neither_ends_a_line_nor_drives_a_terminal() {
    for format in [TEXT, LogFormat::Json] {
        let log = logged(format, hostile_event);
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(lines.len(), 2, "{log}");
        assert!(lines.iter().all(|line| !line.chars().any(is_deceptive)), "{log:?}");
    }
    let log = logged(LogFormat::Json, hostile_event);
    let first: serde_json::Value = serde_json::from_str(log.lines().next().unwrap_or_default()).unwrap_or_default();
    assert_eq!(first.pointer("/fields/server").and_then(serde_json::Value::as_str), Some(HOSTILE));
}

#[test]
fn a_value_is_cut_at_its_bound() {
    let long = "é".repeat(LONGEST_VALUE);
    let log = logged(TEXT, || tracing::info!(error = %long, "m"));
    assert!(log.len() < LONGEST_VALUE + 200 && log.trim_end().ends_with("..\""), "{}", log.len());
}

#[test]
fn colours_are_ours_alone() {
    let log = logged(LogFormat::Text { colours: true }, || tracing::warn!("{HOSTILE}"));
    assert_eq!(log.matches('\u{1b}').count(), 2, "{log:?}");
}
