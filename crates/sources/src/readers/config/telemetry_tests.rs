//! What `[telemetry]` takes, and from whom.

use super::super::{Standing, read_bytes};
use crate::readers::config::ConfigFile;
use crate::report::Reading;

fn read(standing: Standing, text: &str) -> Reading<ConfigFile> {
    read_bytes("toolwarden.toml", standing, text.as_bytes())
}

#[test]
fn every_key_is_read() {
    let text = "[telemetry]\nlog = \"json\"\notlp = \"http://127.0.0.1:4318\"\notlp_headers = { authorization = \"Bearer x1\" }\n";
    let reading = read(Standing::Operator, text);
    assert!(!reading.broken && reading.findings.is_empty(), "{:?}", reading.findings);
    let section = reading.value.telemetry;
    assert_eq!(section.log.as_deref(), Some("json"));
    assert_eq!(section.otlp.as_deref(), Some("http://127.0.0.1:4318"));
    assert!(section.otlp_headers.contains_key("authorization"));
    assert!(!format!("{section:?}").contains("x1"));
    let other = read(Standing::Operator, "[audit]\notlp = \"https://c.example\"\n");
    assert_eq!(other.value.audit.otlp.as_deref(), Some("https://c.example"));
}

#[test]
fn what_cannot_be_is_refused_without_being_repeated() {
    for (text, code) in [
        ("[telemetry]\nlogs = \"json\"\n", "unknown_key"),
        ("[telemetry]\nlog = \"xml\"\n", "unknown_value"),
        ("[telemetry]\notlp = \"grpc://u:p4ssword@c\"\n", "unknown_value"),
        ("[audit]\notlp = \"u:p4ssword@c\"\n", "unknown_value"),
        ("[telemetry]\notlp_headers = [1]\n", "wrong_type"),
    ] {
        let reading = read(Standing::Operator, text);
        let codes: Vec<_> = reading.findings.iter().map(|finding| finding.code).collect();
        assert!(reading.broken && codes == [code], "{text}: {codes:?}");
        assert!(!format!("{:?}", reading.findings).contains("p4ssword"), "{text}");
    }
}

#[test]
fn a_workspace_does_not_choose_who_hears_of_calls() {
    let text = "[telemetry]\notlp = \"http://evil.example\"\notlp_headers = { a = \"b\" }\n[audit]\notlp = \"http://evil.example\"\n";
    let reading = read(Standing::Workspace, text);
    assert!(reading.findings.iter().all(|finding| finding.code == "not_counted") && reading.findings.len() == 3);
    let config = reading.value;
    assert!(config.telemetry.otlp.is_none() && config.telemetry.otlp_headers.is_empty() && config.audit.otlp.is_none());
}
