//! Random roles: one of its own, and changes to shipped ones.

use std::collections::BTreeMap;

use toolwarden_policy::input::{ArgumentCondition, RoleInput, Scope};

use crate::tape::{Tape, sourced};

const PATTERNS: [&str; 14] = [
    "*",
    "db.*",
    "get",
    "db:*",
    "web:get",
    "web:db.*",
    "resources/read",
    "Get",
    "builtin:*",
    "shell.run",
    "api.call",
    "artifact.*",
    "prompts/*",
    "cursor-ide-browser:*",
];
const DENIED: [&str; 6] = ["DB.*", "db:get", "WEB:Api.*", "shell.run", "artifact.get", "resources/*"];

pub fn roles(tape: &mut Tape<'_>) -> Vec<RoleInput> {
    let mut roles = Vec::new();
    let mut own = tape.section(48);
    if own.chance(90) {
        roles.push(RoleInput {
            name: sourced("scout"),
            scope: Some(own.pick(Scope::Pm, &[Scope::Sandbox])),
            allow: own.maybe_list(95, 35, &PATTERNS),
            disallow: own.maybe_list(40, 8, &DENIED),
            conditions: conditions(&mut own, 12, &["get", "db.*", "web:*", "API.call"]),
            explain: None,
        });
    }
    for name in ["worker", "pm", "pa"] {
        let mut section = tape.section(32);
        if section.chance(30) {
            roles.push(RoleInput {
                name: sourced(name),
                scope: None,
                allow: section.maybe_list(30, 40, &PATTERNS),
                disallow: section.maybe_list(30, 20, &DENIED),
                conditions: conditions(&mut section, 40, &["db.write", "db:db.write"]),
                explain: None,
            });
        }
    }
    roles
}

fn conditions(tape: &mut Tape<'_>, percent: u32, patterns: &[&str]) -> Vec<ArgumentCondition> {
    let chosen = tape.some(percent, patterns);
    chosen
        .into_iter()
        .map(|pattern| {
            let mut arguments = BTreeMap::new();
            arguments.insert("table".to_owned(), tape.texts(60, &["findings*", "other", "5"]));
            if tape.chance(20) {
                arguments.insert("k".to_owned(), vec!["v".to_owned()]);
            }
            ArgumentCondition { tool: sourced(pattern), arguments }
        })
        .collect()
}
