//! Random modes: lists, groups, hours, conditions, inheritance, conflicts.

use std::collections::BTreeMap;

use toolwarden_core::{Sourced, ToolIdentity};
use toolwarden_policy::input::{ModeInput, Window};

use crate::tape::{Tape, here, sourced};

const SERVERS: [&str; 6] = ["db", "web", "builtin", "cursor-ide-browser", "DB", "custom-user-tools"];
const TOOLS: [(&str, &str); 9] = [
    ("db", "get"),
    ("db", "db.read"),
    ("web", "get"),
    ("web", "api.call"),
    ("db", "api.call"),
    ("DB", "GET"),
    ("builtin", "shell.run"),
    ("builtin", "web.fetch"),
    ("web", "artifact.get"),
];

pub fn modes(tape: &mut Tape<'_>) -> Vec<ModeInput> {
    let mut modes = Vec::new();
    for slug in ["m1", "m2", "m3", "code"] {
        let mut section = tape.section(64);
        if section.chance(if slug == "code" { 10 } else { 90 }) {
            modes.push(mode(slug, &mut section));
        }
    }
    modes
}

fn mode(slug: &str, tape: &mut Tape<'_>) -> ModeInput {
    ModeInput {
        extends: tape.chance(30).then(|| sourced(tape.pick("m1", &["m2", "m3", "m1", "m2", "code", "ghost-mode"]))),
        groups: tape.chance(25).then(|| tape.texts(65, &["mcp", "command", "browser"])),
        allowed_servers: tape.maybe_list(30, 60, &SERVERS),
        disallowed_servers: tape.list(3, &SERVERS),
        allowed_tools: tape.chance(12).then(|| tools(tape, 60)),
        disallowed_tools: tools(tape, 3),
        window: tape.chance(12).then(|| window(tape)),
        conditions: conditions(tape),
        auto_review: tape.chance(15).then(|| tape.chance(50)),
        faults: tape.texts(3, &["a fault"]),
        ..ModeInput::unrestricted(slug, slug, here())
    }
}

fn tools(tape: &mut Tape<'_>, percent: u32) -> Vec<Sourced<ToolIdentity>> {
    let chosen = TOOLS.iter().filter(|_| tape.chance(percent));
    chosen.map(|(server, tool)| Sourced::new(ToolIdentity::new(*server, *tool), here())).collect()
}

fn window(tape: &mut Tape<'_>) -> Window {
    Window {
        origin: here(),
        days: if tape.chance(60) {
            tape.texts(50, &["mon", "tue", "wed", "thu", "fri", "sat", "sun"])
        } else {
            Vec::new()
        },
        hours: if tape.chance(70) {
            tape.texts(50, &["08:00-17:30", "22:00-06:00", "02:15-02:45", "12:00-13:00"])
        } else {
            Vec::new()
        },
        time_zone: tape.pick("UTC", &["Europe/Berlin", "America/New_York"]).to_owned(),
    }
}

fn conditions(tape: &mut Tape<'_>) -> BTreeMap<String, Vec<String>> {
    let mut conditions = BTreeMap::new();
    for (key, texts) in
        [("task", ["t1", "x*"]), ("group", ["dev", "o*"]), ("user", ["bob", "a*"]), ("role", ["pm", "s*"])]
    {
        if tape.chance(4) {
            conditions.insert(key.to_owned(), tape.texts(60, &texts));
        }
    }
    conditions
}
