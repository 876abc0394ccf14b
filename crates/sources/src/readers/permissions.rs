//! `permissions.json` (PERM-1): allowlists and instructions of the person at this machine.
//!
//! Takes JSON with comments; gives the keys it defines, invalid entries included (ALLOW-3); a wrong
//! type or a text that cannot be parsed makes the whole file broken (PERM-3).

use toolwarden_core::{Layer, Sourced, name};
use toolwarden_policy::input::PermissionsInput;

use crate::entries::{List, terminal_fault};
use crate::readers::known::Section;
use crate::report::{Reading, Report};
use crate::tree::{Format, Node, Place};

/// Reads one permissions.json.
#[must_use]
pub fn read_bytes(path: &str, layer: Layer, bytes: &[u8]) -> Reading<PermissionsInput> {
    let mut report = Report::lenient(path, layer);
    let input = report.parse(bytes, Format::Jsonc).map(|root| read(&mut report, &root));
    match input {
        Some(input) if !report.has_errors() => report.finish(input, false),
        _ => report.finish(PermissionsInput { broken: true, ..PermissionsInput::default() }, true),
    }
}

fn read(report: &mut Report, root: &Node) -> PermissionsInput {
    let mut input = PermissionsInput::default();
    for (key, node) in report.keys(Section::Permissions, "permissions.json", root) {
        match key.text.as_str() {
            "mcpAllowlist" => {
                input.mcp_allowlist = report.texts(&key.text, node);
                warn_mcp(report, input.mcp_allowlist.as_deref().unwrap_or_default(), |text| List::Mcp.fault(text));
            }
            "terminalAllowlist" => {
                input.terminal_allowlist = report.texts(&key.text, node);
                warn_terminal(report, input.terminal_allowlist.as_deref().unwrap_or_default());
            }
            "autoRun" => read_instructions(report, node, &mut input),
            _ => report.unread(key),
        }
    }
    input
}

fn read_instructions(report: &mut Report, node: &Node, input: &mut PermissionsInput) {
    for (key, node) in report.keys(Section::Instructions, "autoRun", node) {
        match key.text.as_str() {
            "allow_instructions" => input.allow_instructions = report.texts(&key.text, node),
            "block_instructions" => input.block_instructions = report.texts(&key.text, node),
            _ => report.unread(key),
        }
    }
}

/// Warns about entries that can never match; they stay in the list (ALLOW-3).
pub(crate) fn warn_mcp(report: &mut Report, entries: &[Sourced<String>], fault: impl Fn(&str) -> Option<String>) {
    for entry in entries {
        if let Some(fault) = fault(&entry.value) {
            let message = format!("Invalid MCP allowlist entry: {}", name::shown(&entry.value));
            report.warning(place(entry), "invalid_entry", message);
            report.help(fault);
        }
    }
}

pub(crate) fn warn_terminal(report: &mut Report, entries: &[Sourced<String>]) {
    for entry in entries {
        if let Some(fault) = terminal_fault(&entry.value) {
            let message = format!("Invalid terminal allowlist entry: {}", name::shown(&entry.value));
            report.warning(place(entry), "invalid_entry", message);
            report.help(fault);
        }
    }
}

fn place(entry: &Sourced<String>) -> Place {
    Place { line: entry.origin.line, column: entry.origin.column }
}
