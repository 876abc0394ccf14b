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

/// Words in a key by which a file means to restrict a server, or what may use it. A key that no table lists and that has
/// one of them turns the server off: ignoring it would open what its author closed (SELF-6). Other unknown keys are only
/// warned about.
const RESTRICTING: &str = "\
    access acl allow allowed allowlist approval approvals approve ask audit auth authorization available ban banned \
    blacklist block blocked blocklist boundaries boundary cage capabilities confine confirm confirmation container \
    denied deny denylist directories disable disabled disallow disallowed domains egress enabled exclude excluded \
    expires expiry expose exposed filesystem filter firewall folders forbid forbidden gate gated groups guard guards \
    hidden hide hosts hours human include included invisible isolation jail limit limits mask max maximum methods mute muted network \
    omit omitted only paths permission permissions pick policy ports prevent privileges prohibit prohibited protected quota \
    rate readonly redact redaction reject require required requires restrict restricted restrictions review role roles \
    root roots safe safety sandbox sandboxed scope scopes secure security select selected subset suppress suppressed \
    throttle toolset toolsets trust untrusted users vault verify visibility visible warn whitelist writable write";
/// Words of a switch that is off where its value says no, and of one that is off where its value says anything else.
const ON: &str = "active on online running";
const OFF: &str = "archived inactive off offline paused stopped suspended";
/// Words that make such a key a grant, which nobody has to keep: ignoring it is safe. One of each list is needed.
const GRANTING: &str = "always auto bypass skip yolo";
const GRANTED: &str = "accept allow allowed allowlist approve approval approvals confirm confirmation permission permissions run trust yolo";
/// Words that make even such a key a restriction: `alwaysAsk`, `autoDeny`.
const REFUSING: &str = "\
    ask block confirm deny disable forbid hold prevent prompt refuse reject require required requires restrict review \
    sandbox";
/// Words that take a restriction back: `skipConfirmation`, `bypassPermissions`.
const BYPASSING: &str = "bypass skip";
/// Keys of other clients that are often misspelt.
const RESTRICTIONS: [&str; 9] = [
    "disabledtools",
    "disallowedtools",
    "excludedtools",
    "blockedtools",
    "includedtools",
    "enabledtools",
    "allowedtools",
    "sandboxenabled",
    "permissions",
];

/// Whether an unknown key means to restrict something.
pub(super) fn restricts(key: &str, value: &Node) -> bool {
    let words = words(key);
    let joined = words.concat();
    let has = |known: &str| {
        // `readOnly`, `read_only` and `read-only` are one word, too.
        let pairs = words.windows(2).map(<[String]>::concat);
        words.iter().cloned().chain(pairs).any(|word| known.split_ascii_whitespace().any(|known| known == word))
    };
    let is_like = |known: &&str| strsim::damerau_levenshtein(known, &joined) <= usize::from(known.len() > 8);
    let is_trust = joined == "trust" && Unless::True.covers(value);
    let is_grant = is_trust || (has(GRANTING) && has(GRANTED) && (!has(REFUSING) || has(BYPASSING)));
    // A list of tools is a list of those that may be used, unless it says all.
    let is_every = |items: &[Node]| items.iter().any(|item| matches!(&item.value, Value::String(text) if text == "*"));
    let lists_some = matches!(&value.value, Value::List(items) if !is_every(items));
    let is_of_tools = words.iter().any(|word| matches!(word.as_str(), "tool" | "tools"));
    let names_tools = (is_of_tools && lists_some) || (joined == "tools" && !matches!(value.value, Value::List(_)));
    !is_grant
        && (names_tools
            || has(RESTRICTING)
            || has(REFUSING)
            || RESTRICTIONS.iter().any(is_like)
            || (has(ON) && says_no(value))
            || (has(OFF) && !says_no(value))
            || (has("state status") && matches!(&value.value, Value::String(text) if is_off(text)))
            || holds_a_restriction(value))
}

/// Whether a switch with this value is off.
fn says_no(value: &Node) -> bool {
    match &value.value {
        Value::String(text) => matches!(text.to_ascii_lowercase().as_str(), "false" | "no" | "never") || is_off(text),
        _ => Unless::False.covers(value) || Unless::Empty.covers(value),
    }
}

fn is_off(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text == "disabled" || OFF.split_ascii_whitespace().any(|word| word == text)
}

/// Whether a table below an unknown key restricts something: `"tool_configuration": {"enabled": false}`. Values that say
/// what happens anyway restrict nothing.
fn holds_a_restriction(value: &Node) -> bool {
    match &value.value {
        Value::Table(entries) => entries.iter().any(|(key, value)| {
            let without_effect = if key.text.eq_ignore_ascii_case("enabled") { Unless::True } else { Unless::False };
            !without_effect.covers(value) && restricts(&key.text, value)
        }),
        Value::List(items) => items.iter().any(holds_a_restriction),
        _ => false,
    }
}

/// The words of a key in any style, in small letters.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in key.chars() {
        let begins = letter.is_ascii_uppercase() && was_small || !letter.is_ascii_alphanumeric();
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_ascii_alphanumeric()) {
            word.push(letter.to_ascii_lowercase());
        }
        was_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

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
    let is_restricted = refuse_lost_restrictions(&mut report, Section::ServersFile, &root);
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
    if is_restricted {
        servers.iter_mut().for_each(|found| found.definition.faulty = true);
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
    refuse_lost_restrictions(report, Section::ClientServer, node);
    for (key, value) in report.keys(Section::ClientServer, &name_key.text, node) {
        if !read_reach(report, key, value, &mut found, &mut reach) {
            read_switches(report, key, value, &mut found);
        }
    }
    if matches!(node.value, Value::Table(_)) {
        found.connection.transport = reach.transport();
        found.input.launch = reach.launch(report, name_key);
        server::warn_of_idle_keys(report, name_key, node, &found.input.launch);
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
            server::refuse_patterns(report, key, value);
        }
        "alwaysAllow" | "autoApprove" => {
            found.offered_always_allow.extend(server::tool_names(report, key, value, Layer::Settings));
        }
        _ => report.unread(key),
    }
}

/// Refuses unknown keys that restrict something; whether there are any.
fn refuse_lost_restrictions(report: &mut Report, section: Section, node: &Node) -> bool {
    let Value::Table(entries) = &node.value else { return false };
    let is_lost = |(key, value): &&(Key, Node)| section.standing(&key.text).is_none() && restricts(&key.text, value);
    let mut any = false;
    for (key, _) in entries.iter().filter(is_lost) {
        let whose = if section == Section::ServersFile { "every server of this file" } else { "the server" };
        let message = format!("`{}` restricts nothing here, so {whose} is off", name::shown(&key.text));
        report.error(key.place, "not_built", message);
        report.help(
            "write `disabledTools` or `disabled`, or restrict the server with a mode or a rule; then remove the key",
        );
        any = true;
    }
    any
}
