//! `[roles.NAME]`: what agents of a kind may call (GATE-5).

use std::collections::BTreeMap;

use toolwarden_core::{Sourced, name};
use toolwarden_policy::input::{ArgumentCondition, RoleInput, Scope};

use crate::readers::known::Section;
use crate::report::Report;
use crate::tree::{Key, Node, Place};

pub(super) fn read(report: &mut Report, node: &Node) -> Vec<RoleInput> {
    let entries = report.table("roles", node);
    entries.iter().map(|(key, inner)| read_role(report, key, inner)).collect()
}

fn read_role(report: &mut Report, role: &Key, node: &Node) -> RoleInput {
    if let Err(fault) = name::check(&role.text) {
        report.error(role.place, "invalid_name", format!("invalid role name `{}`: {fault}", name::shown(&role.text)));
    }
    let mut found = RoleInput {
        name: Sourced::new(role.text.clone(), report.origin(role.place)),
        scope: None,
        allow: None,
        disallow: None,
        conditions: Vec::new(),
        explain: None,
    };
    for (key, value) in report.keys(Section::Role, &role.text, node) {
        let what = key.text.as_str();
        match what {
            "scope" => found.scope = report.word(what, value, &["pm", "sandbox"]).and_then(|word| Scope::parse(&word)),
            "allow" => found.allow = Some(patterns(report, what, value)),
            "disallow" => found.disallow = Some(patterns(report, what, value)),
            "conditions" => found.conditions = read_conditions(report, value),
            "explain" => found.explain = report.boolean(what, value),
            _ => report.unread(key),
        }
    }
    found
}

fn patterns(report: &mut Report, what: &str, node: &Node) -> Vec<Sourced<String>> {
    let found = report.texts(what, node).unwrap_or_default();
    for pattern in &found {
        let place = Place { line: pattern.origin.line, column: pattern.origin.column };
        check_pattern(report, place, &pattern.value);
    }
    found
}

/// `name`, `prefix*`, or one of them after `server:`; `*` only at the end.
fn check_pattern(report: &mut Report, place: Place, text: &str) {
    let (server, tool) = text.split_once(':').map_or((None, text), |(server, tool)| (Some(server), tool));
    let star_inside = tool.strip_suffix('*').unwrap_or(tool).contains('*');
    let server_valid = server.is_none_or(|server| server == "*" || name::check_written(server).is_ok());
    let tool_valid = tool == "*" || name::check_written(tool.strip_suffix('*').unwrap_or(tool)).is_ok();
    if star_inside || !server_valid || !tool_valid {
        report.error(place, "invalid_pattern", format!("`{}` is not a tool pattern", name::shown(text)));
        report.help("`db.read`, `db.*`, or `server:db.*`; `*` only at the end");
    }
}

/// `conditions = { "db.write" = { table = ["findings"] } }`.
fn read_conditions(report: &mut Report, node: &Node) -> Vec<ArgumentCondition> {
    let mut found = Vec::new();
    for (tool, inner) in report.table("conditions", node) {
        check_pattern(report, tool.place, &tool.text);
        let mut arguments = BTreeMap::new();
        for (key, value) in report.table(&tool.text, inner) {
            arguments.insert(key.text.clone(), report.text_or_texts(&key.text, value).unwrap_or_default());
        }
        if arguments.is_empty() {
            // A condition without arguments would be met by every call.
            report.error(
                tool.place,
                "missing_key",
                format!("the condition on `{}` names no argument", name::shown(&tool.text)),
            );
        }
        found.push(ArgumentCondition { tool: Sourced::new(tool.text.clone(), report.origin(tool.place)), arguments });
    }
    found
}
