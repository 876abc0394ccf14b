//! Findings about servers and their tools: conflicting definitions, task scopes without a field,
//! schemas that cannot be used.

use toolwarden_policy::servers::{ServerState, Servers, task_scopes};
use toolwarden_policy::{Finding, PolicyInput};

/// Labels that mean something to the shipped rules (GATE-20).
const LABELS: [&str; 3] = ["reads_untrusted", "reads_private", "sends_out"];

pub(super) fn lint(input: &PolicyInput, servers: &Servers) -> Vec<Finding> {
    let mut findings = Vec::new();
    for server in servers.sorted() {
        if let ServerState::Conflict(other) = &server.state {
            let message = format!("server `{}` is off: another definition of this name is at {other}", server.name);
            findings.push(
                Finding::error("server_conflict", server.origin.clone(), message)
                    .suggesting("remove or rename one of the two definitions"),
            );
        }
        for definition in server.listed_tools() {
            let unusable = server.tool(&definition.name).and_then(|tool| tool.unusable());
            findings.extend(unusable.map(|(side, fault)| {
                let message = format!(
                    "the {side} schema of `{}:{}` cannot be used, so every call is denied: {fault}",
                    server.name, definition.name
                );
                Finding::warning("schema_unusable", server.origin.clone(), message)
                    .suggesting("have the server's author repair the schema, or switch the tool off")
            }));
        }
    }
    findings.extend(task_scopes(&input.servers, servers));
    findings.extend(labels(input));
    findings
}

fn labels(input: &PolicyInput) -> Vec<Finding> {
    let mut findings = Vec::new();
    for server in &input.servers {
        let of_tools =
            server.tools.values().flat_map(|tool| tool.labels.iter().map(move |label| (label, tool.origin.as_ref())));
        let all = server.labels.iter().map(|label| (label, None)).chain(of_tools);
        for (label, origin) in all.filter(|(label, _)| !LABELS.contains(&label.as_str())) {
            let message = format!("`{label}` is not a label the shipped rules know ({})", LABELS.join(", "));
            let origin = origin.unwrap_or(&server.origin).clone();
            findings.push(
                Finding::note("unknown_label", origin, message)
                    .suggesting("use it in a rule of your own, or correct it"),
            );
        }
    }
    findings
}
