//! What documents say of metrics is what is rendered: the list in `docs/telemetry.md`, and Grafana's dashboard.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use toolwarden_core::Status;

use crate::{Door, JournalObserved, Observed, ProcessObserved, ServerObserved, Telemetry, render};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn document(path: &str) -> std::io::Result<String> {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(path))
}

/// A page where every metric has a line.
fn page() -> String {
    let telemetry = Telemetry::new(["notes".into()], None, Timestamp::UNIX_EPOCH);
    let server = telemetry.metrics.server(Some("notes"));
    server.left(Duration::ZERO, 1);
    server.ended(Door::Http, Status::Ok, Duration::ZERO, 1);
    let observed = Observed {
        servers: vec![ServerObserved { name: "notes".to_owned(), state: "idle", lines: 1 }],
        journal: JournalObserved { behind: Some(0), ..JournalObserved::default() },
        process: ProcessObserved { resident_bytes: Some(1), open_files: Some(1) },
        ..Observed::default()
    };
    render(&telemetry, &observed)
}

/// Every metric as a row of the table in the document: name, kind, labels, meaning.
fn rows(page: &str) -> BTreeMap<String, String> {
    let mut rows = BTreeMap::new();
    for head in page.split("# HELP ").skip(1) {
        let (about, lines) = head.split_once('\n').unwrap_or_default();
        let (name, help) = about.split_once(' ').unwrap_or_default();
        let kind = lines.lines().next().and_then(|line| line.rsplit(' ').next()).unwrap_or_default();
        let samples: Vec<&str> = lines.lines().skip(1).collect();
        assert!(!samples.is_empty(), "{name} has no line");
        let mut labels = Vec::new();
        for pair in samples.iter().filter_map(|line| line.split_once('{')).flat_map(|(_, rest)| rest.split(',')) {
            let label = pair.split_once("=\"").map_or("", |(label, _)| label);
            let is_new = !label.is_empty() && label != "le" && !labels.contains(&label);
            labels.extend(is_new.then_some(label));
        }
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        rows.insert(name.to_owned(), format!("| `{name}` | {kind} | {} | {help} |", labels.join(", ")));
    }
    rows
}

#[test]
fn the_list_of_metrics_is_what_is_rendered() -> Outcome {
    let document = document("telemetry.md")?;
    let listed: BTreeSet<&str> = document.lines().filter(|line| line.starts_with("| `toolwarden_")).collect();
    let rows = rows(&page());
    let rendered: BTreeSet<&str> = rows.values().map(String::as_str).collect();
    let missing: Vec<_> = rendered.difference(&listed).collect();
    let stale: Vec<_> = listed.difference(&rendered).collect();
    assert!(missing.is_empty() && stale.is_empty(), "missing:\n{missing:#?}\nnot rendered:\n{stale:#?}");
    assert!(listed.len() > 20);
    Ok(())
}

/// Every text below a value.
fn texts<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(members) => members.values().for_each(|member| texts(member, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_asks_for_nothing_that_is_not_rendered() -> Outcome {
    let dashboard: Value = serde_json::from_str(&document("grafana/toolwarden.json")?)?;
    let rows = rows(&page());
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut found = Vec::new();
    texts(&dashboard, &mut found);
    let mut used = BTreeSet::new();
    for word in found.iter().flat_map(|text| text.split(|character| !is_word(character))) {
        if !word.starts_with("toolwarden_") {
            continue;
        }
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end));
        let histogram = family.filter(|name| rows.get(*name).is_some_and(|row| row.contains("| histogram |")));
        let name = histogram.unwrap_or(word);
        assert!(rows.contains_key(name), "`{word}` is not rendered");
        used.insert(name);
    }
    let unused: Vec<_> = rows.keys().filter(|name| !used.contains(name.as_str())).collect();
    assert_eq!(unused, ["toolwarden_policy_version"], "metrics no panel shows");
    let panels = dashboard.get("panels").and_then(Value::as_array).into_iter().flatten();
    let ids: Vec<_> = panels.filter_map(|panel| panel.get("id")?.as_u64()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "panels have ids of their own");
    Ok(())
}
