//! Findings about servers and their tools: conflicting definitions, task scopes without a field,
//! schemas that cannot be used.

use toolwarden_core::name::shown;
use toolwarden_core::{BUILTIN_SERVER, Operation};
use toolwarden_policy::input::ServerInput;
use toolwarden_policy::servers::{Server, ServerState, Servers, task_scopes};
use toolwarden_policy::{Finding, PolicyInput};

use super::nearest;

/// Labels that mean something to the shipped rules (GATE-20).
pub const LABELS: [&str; 3] = ["reads_untrusted", "reads_private", "sends_out"];

/// Tools that a finding names.
const MOST_NAMED: usize = 12;

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
        findings.extend(schemas(server));
    }
    findings.extend(task_scopes(&input.servers, servers));
    findings.extend(labels(input));
    findings.extend(input.servers.iter().flat_map(unlisted));
    findings
}

/// What a file says about tools that their server, whose list is known, does not have: whoever wrote it relies on it.
fn unlisted(server: &ServerInput) -> Vec<Finding> {
    let Some(listed) = server.catalog.as_deref().filter(|_| server.name != BUILTIN_SERVER) else { return Vec::new() };
    let is_listed = |name: &str| listed.iter().any(|tool| tool.name.eq_ignore_ascii_case(name));
    let is_reserved = |name: &str| Operation::from_reserved_name(name).is_some();
    let of_tools = server.tools.iter().map(|(name, tool)| (name, tool.origin.as_ref().unwrap_or(&server.origin)));
    let disabled = server.disabled_tools.iter().map(|text| (&text.value, &text.origin));
    let unknown = of_tools.chain(disabled).filter(|(name, _)| !is_listed(name) && !is_reserved(name));
    unknown
        .map(|(name, origin)| {
            let message = format!("`{}` lists no tool `{}`, so this does nothing", shown(&server.name), shown(name));
            let finding = Finding::warning("unknown_tool", origin.clone(), message);
            match nearest(name, listed.iter().map(|tool| tool.name.as_str())) {
                Some(close) => finding.suggesting(format!("did you mean `{}`?", shown(close))),
                None => finding,
            }
        })
        .collect()
}

/// The tools of a server whose schemas cannot be used, in one finding: a server can list very many.
fn schemas(server: &Server) -> Option<Finding> {
    let unusable = server.listed_tools().into_iter().filter_map(|definition| {
        let (side, fault) = server.tool(&definition.name)?.unusable()?;
        Some(format!("`{}:{}` ({side} schema: {})", shown(&server.name), shown(&definition.name), shown(fault)))
    });
    let all: Vec<String> = unusable.collect();
    let named: Vec<&str> = all.iter().take(MOST_NAMED).map(String::as_str).collect();
    let more = match all.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "{} tool(s) of `{}` have a schema that cannot be used, so every call of them is denied: {}{more}",
        all.len(),
        shown(&server.name),
        named.join(", ")
    );
    let suggestion = "have the server's author repair the schema, or switch the tool off";
    (!all.is_empty())
        .then(|| Finding::warning("schema_unusable", server.origin.clone(), message).suggesting(suggestion))
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
