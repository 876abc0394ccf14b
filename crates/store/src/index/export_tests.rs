//! Every form of an export against names that mean harm, and golden lines of each.

use serde_json::Value;
use toolwarden_core::name::is_deceptive;

use super::super::row::Row;
use super::{CSV_HEADER, quoted};

/// Quotes, brackets, backslashes, line breaks, escapes of terminals in both forms, bidirectional controls.
const HOSTILE: &str = "a\"]\\ b=\"c\n<0>1 - - - - - -\r\u{1b}[31m\u{9b}2J\u{202e}é,;\u{7}";

fn denied() -> Row {
    Row {
        time: "2026-11-16T08:00:00.1234567Z".to_owned(),
        kind: "refusal".to_owned(),
        decision: Some("deny".to_owned()),
        stage: Some("rules".to_owned()),
        reason: Some("rule_forbid".to_owned()),
        status: Some("denied".to_owned()),
        server: Some("notes".to_owned()),
        tool: Some("write".to_owned()),
        user: Some("ada".to_owned()),
        door: Some("mcp_http".to_owned()),
        method: Some("tools/call".to_owned()),
        groups: vec!["dev".to_owned(), "ops".to_owned()],
        session: Some("5f".to_owned()),
        rule: Some("no-writes".to_owned()),
        rule_source: Some("rules.cedar:3:1".to_owned()),
        policy_version: Some(0),
        request_bytes: Some(120),
        node: "serve-1".to_owned(),
        call: 7,
        sequence: 9,
        hash: "ab".to_owned(),
        ..Row::default()
    }
}

fn hostile() -> Row {
    let text = || Some(HOSTILE.to_owned());
    Row {
        server: text(),
        tool: text(),
        user: text(),
        method: text(),
        rule: text(),
        detail: text(),
        kind: HOSTILE.to_owned(),
        node: HOSTILE.to_owned(),
        groups: vec![HOSTILE.to_owned()],
        ..denied()
    }
}

#[test]
fn a_row_is_one_line_in_every_form_and_drives_no_terminal() {
    let row = hostile();
    for line in [row.to_json_line(), row.to_csv_line(), row.to_ocsf_line(), row.to_syslog_line()] {
        assert!(line.ends_with('\n') && line.lines().count() == 1, "{line:?}");
        let inside = line.trim_end_matches('\n').replace('\u{feff}', "");
        assert!(!inside.chars().any(is_deceptive), "{line:?}");
    }
    let json: Value = serde_json::from_str(&row.to_json_line()).unwrap_or_default();
    assert_eq!(json.get("tool").and_then(Value::as_str), Some(HOSTILE), "its meaning is the same");
    let ocsf: Value = serde_json::from_str(&row.to_ocsf_line()).unwrap_or_default();
    assert_eq!(ocsf.pointer("/api/operation").and_then(Value::as_str), Some(HOSTILE));
}

/// The cells of one line, read as RFC 4180 says.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut rest = line.trim_end_matches('\n').chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '"' if is_quoted && rest.peek() == Some(&'"') => cell.extend(rest.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(std::mem::take(&mut cell)),
            other => cell.push(other),
        }
    }
    cells.push(cell);
    cells
}

#[test]
fn csv_keeps_its_columns_and_runs_no_formula() {
    let columns = CSV_HEADER.trim_end().split(',').count();
    assert_eq!(cells(&hostile().to_csv_line()).len(), columns);
    for formula in ["=1+1", "+1", "-1", "@sum", "\t=1", " =1", "\r=1", "\n=cmd|' /C calc'!A0"] {
        let row = Row { tool: Some(formula.to_owned()), ..denied() };
        let cell = cells(&row.to_csv_line()).get(7).cloned().unwrap_or_default();
        assert!(cell.starts_with('\''), "{formula:?}: {cell:?}");
    }
    assert_eq!(quoted("a;=1+1"), "\"a;=1+1\"");
    assert_eq!(quoted("plain-name"), "plain-name");
    assert_eq!(
        denied().to_csv_line(),
        "2026-11-16T08:00:00.1234567Z,refusal,deny,rules,rule_forbid,denied,notes,write,ada,,,,,,mcp_http,tools/call,\
         dev ops,,,,,5f,no-writes,rules.cedar:3:1,0,120,,,,serve-1,7,9,ab,,,,,\n"
    );
}

#[test]
fn syslog_of_a_denied_call() {
    assert_eq!(
        denied().to_syslog_line(),
        "<108>1 2026-11-16T08:00:00.123456Z - toolwarden serve-1 refusal [toolwarden@32473 \
         time=\"2026-11-16T08:00:00.1234567Z\" kind=\"refusal\" decision=\"deny\" stage=\"rules\" \
         reason=\"rule_forbid\" status=\"denied\" server=\"notes\" tool=\"write\" user=\"ada\" door=\"mcp_http\" \
         method=\"tools/call\" groups=\"dev ops\" session=\"5f\" rule=\"no-writes\" rule_source=\"rules.cedar:3:1\" \
         policy_version=\"0\" request_bytes=\"120\" node=\"serve-1\" call=\"7\" sequence=\"9\" hash=\"ab\"] \
         deny notes:write rule_forbid\n"
    );
}

#[test]
fn syslog_is_left_neither_by_quote_nor_by_bracket() {
    let line = hostile().to_syslog_line();
    // Read the structured data as the standard says: up to the bracket that is not escaped.
    let (_, data) = line.split_once(" [toolwarden@32473 ").unwrap_or_default();
    let mut is_escaped = false;
    let end = data.find(|character| {
        let ends = character == ']' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        ends
    });
    let (data, message) = data.split_at(end.unwrap_or_default());
    assert!(data.ends_with("hash=\"ab\""), "{line}");
    assert!(data.contains(r#"tool="a\"\]\\ b=\"c\\u{a}<0>1"#), "{line}");
    assert!(message.starts_with("] \u{feff}deny "), "a message beyond ASCII is marked: {line}");
    let head: Vec<&str> = line.split(' ').take(6).collect();
    assert!(head.iter().all(|field| field.bytes().all(|byte| byte.is_ascii_graphic())), "{head:?}");
    assert!(head.get(5).is_some_and(|kind| kind.len() <= 32), "{head:?}");
}

#[test]
fn severities_follow_decision_and_status() {
    let of = |decision: Option<&str>, status: &str| Row {
        decision: decision.map(str::to_owned),
        status: Some(status.to_owned()),
        ..denied()
    };
    for (row, priority, severity, status, action) in [
        (of(Some("allow"), "ok"), 110, 1, 1, 1),
        (of(Some("allow"), "tool_error"), 109, 1, 2, 1),
        (of(Some("allow"), "timeout"), 108, 2, 2, 1),
        (of(Some("allow"), "unknown"), 109, 2, 0, 1),
        (of(Some("hold"), "held"), 109, 2, 2, 2),
        (of(Some("deny"), "denied"), 108, 3, 2, 2),
        (of(None, "upstream_error"), 108, 2, 2, 0),
    ] {
        let line = row.to_syslog_line();
        assert!(line.starts_with(&format!("<{priority}>1 ")), "{line}");
        let event: Value = serde_json::from_str(&row.to_ocsf_line()).unwrap_or_default();
        let number = |name: &str| event.get(name).and_then(Value::as_u64);
        assert_eq!(number("severity_id"), Some(severity), "{event}");
        assert_eq!((number("status_id"), number("action_id")), (Some(status), Some(action)), "{event}");
    }
}

#[test]
fn ocsf_of_a_denied_call() {
    let event: Value = serde_json::from_str(&denied().to_ocsf_line()).unwrap_or_default();
    let mut mapped = event.clone();
    let unmapped = mapped.as_object_mut().and_then(|members| members.remove("unmapped")).unwrap_or_default();
    let expected = serde_json::json!({
        "category_uid": 6, "category_name": "Application Activity",
        "class_uid": 6003, "class_name": "API Activity",
        "activity_id": 99, "activity_name": "Other",
        "type_uid": 600_399, "type_name": "API Activity: Other",
        "time": 1_794_816_000_123_i64,
        "severity_id": 3, "severity": "Medium",
        "status_id": 2, "status": "Failure", "status_detail": "denied",
        "action_id": 2, "action": "Denied", "disposition_id": 2, "disposition": "Blocked",
        "message": "deny notes:write rule_forbid",
        "metadata": {
            "version": "1.3.0",
            "product": { "name": "Toolwarden", "vendor_name": "Toolwarden", "version": env!("CARGO_PKG_VERSION") },
            "profiles": ["security_control"], "log_name": "audit", "uid": "serve-1/9", "sequence": 9,
            "original_time": "2026-11-16T08:00:00.1234567Z",
        },
        "actor": {
            "user": { "name": "ada", "groups": [{ "name": "dev" }, { "name": "ops" }] },
            "session": { "uid": "5f" },
        },
        "api": {
            "operation": "write", "service": { "name": "notes" },
            "request": { "uid": "serve-1/7" }, "response": { "error": "denied" },
        },
        "src_endpoint": { "name": "mcp_http" },
        "policy": { "name": "no-writes", "desc": "rules.cedar:3:1" },
    });
    assert_eq!(mapped, expected);
    assert_eq!(unmapped.get("stage"), Some(&Value::from("rules")));
    assert_eq!(unmapped.get("hash"), Some(&Value::from("ab")));
}
