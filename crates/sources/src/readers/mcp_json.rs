//! The server files of clients: `mcpServers` (Cursor, Roo, Claude Code) and `servers` (VS Code).
//!
//! Takes JSON with comments; gives server definitions declared by the workspace. A fault in one
//! server turns that one off; a text that cannot be parsed makes the whole file broken (MODE-7).

use std::time::Duration;

use toolwarden_core::{Layer, name};
use toolwarden_policy::input::{Declared, Launch};

use super::known::{Section, Unless};
use super::server::{self, Reach, ServerDefinition, Transport};
use crate::report::{Reading, Report};
use crate::tree::{Format, Key, Node, Value};

/// Keys of other clients and misspellings by which a file means to restrict a server. Ignoring one would open what its
/// author closed, so it turns the server off.
const RESTRICTIONS: [&str; 14] = [
    "disabled",
    "disabledtools",
    "disallowedtools",
    "disabletools",
    "excludetools",
    "excludedtools",
    "blockedtools",
    "includetools",
    "enabledtools",
    "allowedtools",
    "sandbox",
    "sandboxenabled",
    "readonly",
    "permissions",
];

/// Reads one client's server file.
#[must_use]
pub fn read_bytes(path: &str, bytes: &[u8]) -> Reading<Vec<ServerDefinition>> {
    let mut report = Report::lenient(path, Layer::WorkspaceFile);
    let Some(root) = report.parse(bytes, Format::Jsonc) else { return report.finish(Vec::new(), true) };
    if !matches!(root.value, Value::Table(_)) {
        report.wrong_type("mcp.json", &root, "a table");
        return report.finish(Vec::new(), true);
    }
    let mut servers = Vec::new();
    let mut broken = false;
    let mut sandbox = None;
    for (key, node) in report.keys(Section::ServersFile, "mcp.json", &root) {
        match key.text.as_str() {
            "sandbox" => sandbox = Some((key, node)),
            "mcpServers" | "servers" => {
                broken |= !matches!(node.value, Value::Table(_));
                read_servers(&mut report, key, node, &mut servers);
            }
            _ => report.unread(key),
        }
    }
    if let Some((key, _)) = sandbox.filter(|(_, node)| !Unless::False.covers(node) && !Unless::Empty.covers(node)) {
        refuse_sandboxed(&mut report, key, &mut servers);
    }
    if broken {
        servers.clear();
    }
    report.finish(servers.into_iter().map(|found| found.definition).collect(), broken)
}

/// `sandbox` of the whole file is for every server it starts that does not say `"sandboxEnabled": false`.
fn refuse_sandboxed(report: &mut Report, key: &Key, servers: &mut [Found]) {
    let is_meant = |found: &Found| matches!(found.definition.input.launch, Launch::Command { .. }) && !found.no_sandbox;
    let mut meant = servers.iter_mut().filter(|found| is_meant(found)).peekable();
    if meant.peek().is_none() {
        return;
    }
    report.not_built(Section::ServersFile, key, "the sandbox", Unless::Never);
    report.help("remove it, or write `\"sandboxEnabled\": false` at the servers that may run without one");
    meant.for_each(|found| found.definition.faulty = true);
}

/// A server, and what of the file's own settings is not for it.
struct Found {
    definition: ServerDefinition,
    /// `"sandboxEnabled": false`.
    no_sandbox: bool,
}

fn read_servers(report: &mut Report, key: &Key, node: &Node, servers: &mut Vec<Found>) {
    for (name_key, definition) in report.table(&key.text, node) {
        if !server::check_name(report, name_key) {
            continue;
        }
        if server::is_reserved(&name_key.text) {
            let message = format!("the server name `{}` is reserved", name::shown(&name_key.text));
            report.error(name_key.place, "reserved_name", message);
            report.help("rename the server");
            continue;
        }
        let no_sandbox = definition.get("sandboxEnabled").is_some_and(|node| Unless::False.covers(node));
        servers.push(Found { definition: read_server(report, name_key, definition), no_sandbox });
    }
}

fn read_server(report: &mut Report, name_key: &Key, node: &Node) -> ServerDefinition {
    let mark = report.mark();
    let mut found = server::blank(&name_key.text, report.origin(name_key.place), Declared::ByWorkspace);
    let mut reach = Reach::default();
    refuse_lost_restrictions(report, node);
    for (key, value) in report.keys(Section::ClientServer, &name_key.text, node) {
        if !read_reach(report, key, value, &mut found, &mut reach) {
            read_switches(report, key, value, &mut found);
        }
    }
    if matches!(node.value, Value::Table(_)) {
        found.connection.transport = reach.transport();
        found.input.launch = reach.launch(report, name_key);
    }
    found.faulty = !report.errors_since(mark).is_empty();
    found
}

/// Keys that tell how the server is reached; false for any other.
fn read_reach(report: &mut Report, key: &Key, value: &Node, found: &mut ServerDefinition, reach: &mut Reach) -> bool {
    match key.text.as_str() {
        "command" => reach.set_command(report, key, value),
        "args" => reach.arguments = report.plain_texts(&key.text, value).unwrap_or_default(),
        "env" => found.connection.env = server::secrets(report, key, value),
        "cwd" => found.connection.working_directory = report.text(&key.text, value),
        "envFile" => found.connection.env_file = report.text(&key.text, value),
        "url" | "httpUrl" => reach.set_url(report, key, value),
        "headers" => found.connection.headers = server::secrets(report, key, value),
        "type" | "transport" => reach.set_transport(report, key, value, &Transport::CLIENT_WORDS),
        "timeout" => found.connection.timeout = report.count(&key.text, value).map(Duration::from_secs),
        _ => return false,
    }
    true
}

fn read_switches(report: &mut Report, key: &Key, value: &Node, found: &mut ServerDefinition) {
    match key.text.as_str() {
        // What cannot be read as a switch counts as switched off.
        "disabled" => found.input.enabled &= report.boolean(&key.text, value) == Some(false),
        "enabled" => found.input.enabled &= report.boolean(&key.text, value) == Some(true),
        "defaultEnabled" => found.input.default_enabled = report.boolean(&key.text, value) == Some(true),
        "disabledTools" => {
            found.input.disabled_tools = server::tool_names(report, key, value, Layer::WorkspaceFile);
        }
        "alwaysAllow" | "autoApprove" => {
            found.offered_always_allow.extend(server::tool_names(report, key, value, Layer::Settings));
        }
        _ => report.unread(key),
    }
}

/// Unknown keys that look like a restriction.
fn refuse_lost_restrictions(report: &mut Report, node: &Node) {
    let Value::Table(entries) = &node.value else { return };
    for (key, _) in entries {
        let letters = key.text.chars().filter(char::is_ascii_alphanumeric);
        let plain: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
        let is_like = |known: &&str| strsim::damerau_levenshtein(known, &plain) <= usize::from(known.len() > 8);
        if Section::ClientServer.standing(&key.text).is_none() && RESTRICTIONS.iter().any(is_like) {
            let message = format!("`{}` restricts nothing here, so the server is off", name::shown(&key.text));
            report.error(key.place, "not_built", message);
            report.help("write `disabledTools` or `disabled`, or restrict the server with a mode or a rule");
        }
    }
}
