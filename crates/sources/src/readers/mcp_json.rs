//! The server files of clients: `mcpServers` (Cursor, Roo, Claude Code) and `servers` (VS Code).
//!
//! Takes JSON with comments; gives server definitions declared by the workspace. A fault in one
//! server turns that one off; a text that cannot be parsed makes the whole file broken (MODE-7).

use std::time::Duration;

use toolwarden_core::{Layer, name};
use toolwarden_policy::input::Declared;

use super::server::{self, Reach, ServerDefinition, Transport};
use crate::report::{Reading, Report};
use crate::tree::{Format, Key, Node, Value};

const FILE_KEYS: [&str; 2] = ["mcpServers", "servers"];
/// Keys of the file that mean something to a client and nothing here.
const SILENT_FILE_KEYS: [&str; 3] = ["inputs", "sandbox", "$schema"];
const SERVER_KEYS: [&str; 16] = [
    "command",
    "args",
    "env",
    "cwd",
    "envFile",
    "url",
    "httpUrl",
    "headers",
    "type",
    "transport",
    "disabled",
    "disabledTools",
    "alwaysAllow",
    "autoApprove",
    "defaultEnabled",
    "timeout",
];
const SILENT_SERVER_KEYS: [&str; 12] = [
    "description",
    "displayName",
    "name",
    "icon",
    "dev",
    "gallery",
    "version",
    "oauth",
    "sandboxEnabled",
    "sandbox",
    "watchPaths",
    "note",
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
    for (key, node) in report.table("mcp.json", &root) {
        match key.text.as_str() {
            "mcpServers" | "servers" => {
                broken |= !matches!(node.value, Value::Table(_));
                read_servers(&mut report, key, node, &mut servers);
            }
            other if SILENT_FILE_KEYS.contains(&other) => {}
            _ => report.unknown_key(key, &FILE_KEYS),
        }
    }
    if broken {
        servers.clear();
    }
    report.finish(servers, broken)
}

fn read_servers(report: &mut Report, key: &Key, node: &Node, servers: &mut Vec<ServerDefinition>) {
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
        servers.push(read_server(report, name_key, definition));
    }
}

fn read_server(report: &mut Report, name_key: &Key, node: &Node) -> ServerDefinition {
    let mark = report.mark();
    let mut found = server::blank(&name_key.text, report.origin(name_key.place), Declared::ByWorkspace);
    let mut reach = Reach::default();
    for (key, value) in report.table(&name_key.text, node) {
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
        "auth" => found.connection.auth = server::auth(report, key, value),
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
        other if SILENT_SERVER_KEYS.contains(&other) => {}
        _ => report.unknown_key(key, &SERVER_KEYS),
    }
}
