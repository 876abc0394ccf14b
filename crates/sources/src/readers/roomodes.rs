//! `.roomodes` and the global modes file: YAML or JSON (MODE-1, MODE-7).
//!
//! Takes `customModes: [..]`, a bare list, or a single mode; gives modes. A fault inside one mode
//! refuses that mode alone; a mode without a usable slug makes the file broken, because nobody can
//! tell which mode it meant to narrow.

use std::collections::HashMap;

use toolwarden_core::{Layer, name};
use toolwarden_policy::input::ModeInput;

use super::known::{Section, Standing};
use super::mcp_json::restricts;
use super::mode::{Draft, Field, Spelling};
use crate::report::{Reading, Report};
use crate::tree::{Format, Key, Node, Place, Value};

/// Reads one modes file.
#[must_use]
pub fn read_bytes(path: &str, layer: Layer, bytes: &[u8]) -> Reading<Vec<ModeInput>> {
    let mut report = Report::lenient(path, layer);
    let Some(root) = report.parse(bytes, Format::YamlOrJson) else { return report.finish(Vec::new(), true) };
    let Some(nodes) = mode_nodes(&mut report, &root) else { return report.finish(Vec::new(), true) };
    let read: Vec<_> = nodes.into_iter().map(|node| read_mode(&mut report, node)).collect();
    let broken = read.iter().any(Option::is_none);
    let mut modes: Vec<_> = read.into_iter().flatten().collect();
    refuse_duplicates(&mut report, &mut modes);
    if broken {
        modes.clear();
    }
    report.finish(modes, broken)
}

fn mode_nodes<'n>(report: &mut Report, root: &'n Node) -> Option<Vec<&'n Node>> {
    match &root.value {
        Value::List(items) => Some(items.iter().collect()),
        Value::Table(_) if root.get("slug").is_some() => Some(vec![root]),
        Value::Table(_) => {
            let mut modes = None;
            for (key, node) in report.keys(Section::ModesFile, "modes file", root) {
                match key.text.as_str() {
                    "customModes" => modes = Some(report.list(&key.text, node)?.iter().collect()),
                    _ => report.unread(key),
                }
            }
            if modes.is_none() {
                report.error(root.place, "missing_key", "a modes file needs `customModes`");
            }
            modes
        }
        _ => {
            report.wrong_type("modes file", root, "a table with `customModes`");
            None
        }
    }
}

fn read_mode(report: &mut Report, node: &Node) -> Option<ModeInput> {
    let mark = report.mark();
    let entries = report.table("customModes", node);
    let Some(slug_node) = node.get("slug") else {
        if matches!(node.value, Value::Table(_)) {
            report.error(node.place, "missing_key", "a mode needs a `slug`");
        }
        return None;
    };
    let slug = report.text("slug", slug_node)?;
    let mut draft = Draft::new(&slug, report.origin(slug_node.place), Spelling::Camel, mark);
    check_slug(report, slug_node.place, &slug);
    for (key, value) in entries {
        match (Section::RooMode.standing(&key.text), Spelling::Camel.field(&key.text)) {
            (Some(Standing::Informational(_)), _) => {}
            (Some(_), Some(field)) => draft.fill(report, field, key, value),
            (Some(_), None) if key.text == "mcpRestrictions" => read_restrictions(report, key, value, &mut draft),
            (Some(_), None) if key.text == "slug" => {}
            (Some(_), None) => report.unread(key),
            (None, _) => unknown_mode_key(report, key, value),
        }
    }
    if !draft.has(Field::Groups) && !draft.has(Field::Extends) {
        report.error(slug_node.place, "missing_key", format!("mode `{}` has no `groups`", name::shown(&slug)));
        report.help("for example `groups: [read, edit, command, mcp]`");
    }
    if !draft.has(Field::Name) {
        report.warning(slug_node.place, "missing_key", format!("mode `{}` has no `name`", name::shown(&slug)));
    }
    Some(draft.finish(report))
}

/// Restrictions written one level too high would silently restrict nothing.
fn unknown_mode_key(report: &mut Report, key: &Key, node: &Node) {
    if Spelling::Camel.field(&key.text).is_some() {
        report.error(key.place, "misplaced_key", format!("`{}` belongs into `mcpRestrictions`", key.text));
        return;
    }
    if looks_like_restriction(&key.text) || restricts(&key.text, node) {
        // Read as an unknown key it would leave the mode open.
        report.error(key.place, "unknown_key", format!("`{}` restricts nothing as written", name::shown(&key.text)));
        report.help(
            "write `mcpRestrictions` with allowedServers, disallowedServers, allowedTools or disallowedTools inside",
        );
        return;
    }
    report.unknown_key(key, &Section::RooMode.names());
}

/// Whether a key is a restriction in another spelling: snake case, other capitals, a letter missing.
fn looks_like_restriction(key: &str) -> bool {
    let plain: String =
        key.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    let keys =
        ["mcprestrictions", "restrictions", "allowedservers", "disallowedservers", "allowedtools", "disallowedtools"];
    keys.iter().any(|known| strsim::damerau_levenshtein(known, &plain) <= 2)
}

fn read_restrictions(report: &mut Report, key: &Key, node: &Node, draft: &mut Draft) {
    for (inner, value) in report.table(&key.text, node) {
        match (Section::RooRestrictions.standing(&inner.text), Spelling::Camel.field(&inner.text)) {
            (Some(_), Some(field)) => draft.fill(report, field, inner, value),
            _ => {
                // A misspelt restriction restricts nothing, so the mode is refused until it is repaired.
                report.error(inner.place, "unknown_key", format!("unknown restriction `{}`", name::shown(&inner.text)));
                report.help("allowedServers, disallowedServers, allowedTools, disallowedTools");
            }
        }
    }
}

pub(super) fn check_slug(report: &mut Report, place: Place, slug: &str) {
    let valid = !slug.is_empty() && slug.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !valid {
        report.error(place, "invalid_slug", format!("invalid slug `{}`", name::shown(slug)));
        report.help("letters, digits and `-` only");
    }
}

/// Two modes of one slug: neither can be told to be the one that was meant.
fn refuse_duplicates(report: &mut Report, modes: &mut [ModeInput]) {
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut pairs = Vec::new();
    for (index, mode) in modes.iter().enumerate() {
        match first.get(&mode.slug) {
            Some(earlier) => pairs.push((*earlier, index)),
            None => {
                first.insert(mode.slug.clone(), index);
            }
        }
    }
    for (earlier, later) in pairs {
        let first_line = modes.get(earlier).map_or(0, |mode| mode.origin.line);
        let Some(mode) = modes.get_mut(later) else { continue };
        let message = format!("duplicate slug `{}`, first at line {first_line}", name::shown(&mode.slug));
        let place = Place { line: mode.origin.line, column: mode.origin.column };
        report.error(place, "duplicate_slug", message.clone());
        mode.faults.push(message.clone());
        if let Some(mode) = modes.get_mut(earlier) {
            mode.faults.push(message);
        }
    }
}
