//! `[servers.NAME]` and its tools (GATE-6, GATE-7, GATE-9, GATE-11, GATE-13, GATE-20).
//!
//! `builtin` and `custom-user-tools` launch nothing and may hold only tools, labels and limits.

use toolwarden_core::{BUILTIN_SERVER, CUSTOM_TOOLS_SERVER, name};
use toolwarden_policy::input::{Declared, LimitsInput, Scope, ToolInput};

use super::screening;
use crate::readers::known::Section;
use crate::readers::server::{self, Reach, ServerDefinition, Share, Transport};
use crate::report::Report;
use crate::tree::{Key, Node, Value};

const MAY_ASK: [&str; 4] = ["elicitation", "url", "sampling", "roots"];
const RESERVED_KEYS: [&str; 4] = ["tools", "labels", "limits", "enabled"];
const LABELS: [&str; 3] = ["reads_untrusted", "reads_private", "sends_out"];
const CONTEXT_IDS: [&str; 4] = ["task_id", "run_id", "job_id", "project_id"];

pub(super) fn read(report: &mut Report, declared: Declared, node: &Node) -> Vec<ServerDefinition> {
    let mut servers = Vec::new();
    for (key, inner) in report.table("servers", node) {
        if server::check_name(report, key) {
            if !name::is_server_name(&key.text) {
                let message = format!("`{}` is awkward in addresses, entries and tool names", name::shown(&key.text));
                report.warning(key.place, "awkward_name", message);
                report.help(name::SERVER_NAMES);
            }
            servers.push(read_server(report, declared, key, inner));
        }
    }
    servers
}

fn read_server(report: &mut Report, declared: Declared, name_key: &Key, node: &Node) -> ServerDefinition {
    let mut found = server::blank(&name_key.text, report.origin(name_key.place), declared);
    let mut reach = Reach::default();
    let reserved = server::is_reserved(&name_key.text);
    if reserved && ![BUILTIN_SERVER, CUSTOM_TOOLS_SERVER].contains(&name_key.text.as_str()) {
        report.error(name_key.place, "reserved_name", "a reserved server name in another spelling");
        report.help(format!("write `{BUILTIN_SERVER}` or `{CUSTOM_TOOLS_SERVER}`"));
    }
    for (key, value) in report.keys(Section::Server, &name_key.text, node) {
        if reserved && !RESERVED_KEYS.contains(&key.text.as_str()) {
            let message = format!("`{}` launches nothing, so it has no `{}`", name::shown(&name_key.text), key.text);
            report.error(key.place, "reserved_name", message);
            continue;
        }
        if !read_reach(report, key, value, &mut found, &mut reach) {
            read_policy(report, key, value, &mut found);
        }
    }
    if !reserved && matches!(node.value, Value::Table(_)) {
        found.connection.transport = reach.transport();
        found.input.launch = reach.launch(report, name_key);
        server::warn_of_idle_keys(report, name_key, node, &found.input.launch);
    }
    found
}

fn read_reach(report: &mut Report, key: &Key, value: &Node, found: &mut ServerDefinition, reach: &mut Reach) -> bool {
    let what = key.text.as_str();
    let connection = &mut found.connection;
    match what {
        "command" => reach.set_command(report, key, value),
        "args" => reach.arguments = report.plain_texts(what, value).unwrap_or_default(),
        "env" => connection.env = server::secrets(report, key, value),
        "cwd" => connection.working_directory = report.text(what, value),
        "url" => reach.set_url(report, key, value),
        "headers" => connection.headers = server::secrets(report, key, value),
        "type" | "transport" => reach.set_transport(report, key, value, &Transport::WORDS),
        "timeout" => connection.timeout = report.duration(what, value),
        "share" => connection.share = read_share(report, key, value),
        "private_network" => connection.private_network = report.boolean(what, value) == Some(true),
        "may_ask" => connection.may_ask = read_may_ask(report, value),
        _ => return false,
    }
    true
}

/// Who may share a child: `principal` or `all`. A child for each session is not built.
fn read_share(report: &mut Report, key: &Key, node: &Node) -> Option<Share> {
    match report.text(&key.text, node)?.as_str() {
        "principal" => Some(Share::Principal),
        "all" => Some(Share::All),
        "session" => {
            let message = "`share = \"session\"` is refused: a child for each session is not built yet";
            report.error(node.place, "not_built", message);
            report.help("one of: principal, all");
            None
        }
        "credential" => {
            report.error(node.place, "unknown_value", "`share` cannot be `credential`: it is called `session`");
            report.help("`session` is not built yet; one of: principal, all");
            None
        }
        other => {
            report.error(node.place, "unknown_value", format!("`share` cannot be `{}`", name::shown(other)));
            report.help("one of: principal, all");
            None
        }
    }
}

/// A word that is none would permit nothing, and nobody would know why.
fn read_may_ask(report: &mut Report, node: &Node) -> Option<Vec<String>> {
    let items = report.list("may_ask", node)?;
    Some(items.iter().filter_map(|item| report.word("may_ask", item, &MAY_ASK)).collect())
}

fn read_policy(report: &mut Report, key: &Key, value: &Node, found: &mut ServerDefinition) {
    let what = key.text.as_str();
    let input = &mut found.input;
    match what {
        "enabled" => input.enabled = report.boolean(what, value) == Some(true),
        "default_enabled" => input.default_enabled = report.boolean(what, value) == Some(true),
        "labels" => input.labels = read_labels(report, value),
        "limits" => input.limits = read_limits(report, value),
        "tools" => read_tools(report, value, found),
        "definitions" => {
            found.follows_changes = report.word(what, value, &["pinned", "follow"]).as_deref() == Some("follow");
        }
        "disabled_tools" => {
            input.disabled_tools = server::tool_names(report, key, value, report.layer());
            server::refuse_patterns(report, key, value);
        }
        _ if screening::read_key(report, key, value, &mut found.screening) => {}
        _ => report.unread(key),
    }
}

fn read_labels(report: &mut Report, node: &Node) -> Vec<String> {
    let items = report.list("labels", node).unwrap_or_default();
    items.iter().filter_map(|item| report.word("labels", item, &LABELS)).collect()
}

fn read_tools(report: &mut Report, node: &Node, found: &mut ServerDefinition) {
    for (tool, inner) in report.table("tools", node) {
        if let Err(fault) = name::check_written(&tool.text) {
            report.error(
                tool.place,
                "invalid_name",
                format!("invalid tool name `{}`: {fault}", name::shown(&tool.text)),
            );
            continue;
        }
        let input = read_tool(report, tool, inner);
        found.input.tools.insert(tool.text.clone(), input);
    }
}

fn read_tool(report: &mut Report, tool: &Key, node: &Node) -> ToolInput {
    let mut input = ToolInput { origin: Some(report.origin(tool.place)), ..ToolInput::default() };
    for (key, value) in report.keys(Section::Tool, &tool.text, node) {
        let what = key.text.as_str();
        match what {
            "enabled" => input.enabled = Some(report.boolean(what, value) == Some(true)),
            "scope" => {
                input.scope = report.word(what, value, &["sandbox", "pm", "both"]).and_then(|word| Scope::parse(&word));
            }
            "task_scoped" => input.task_scoped = read_task_scoped(report, value),
            "requires_setting" => input.requires_setting = report.text(what, value),
            "review" => {
                let review = report.word(what, value, &["human", "result", "both"]);
                input.human_review = matches!(review.as_deref(), Some("human" | "both"));
                input.result_review = matches!(review.as_deref(), Some("result" | "both"));
            }
            "labels" => input.labels = read_labels(report, value),
            "limits" => input.limits = read_limits(report, value),
            _ => report.unread(key),
        }
    }
    input
}

/// `true` is the task's id; a list names the ids that must be among the arguments.
fn read_task_scoped(report: &mut Report, node: &Node) -> Vec<String> {
    match &node.value {
        Value::Bool(true) => vec!["task_id".to_owned()],
        Value::Bool(false) => Vec::new(),
        Value::List(items) => items.iter().filter_map(|item| report.word("task_scoped", item, &CONTEXT_IDS)).collect(),
        _ => {
            report.wrong_type("task_scoped", node, "true, or a list of argument names");
            Vec::new()
        }
    }
}

/// `limits = { request_bytes, response_bytes, depth, time, in_flight, per_minute }`.
pub(super) fn read_limits(report: &mut Report, node: &Node) -> LimitsInput {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let mut limits = LimitsInput::default();
    for (key, value) in report.keys(Section::Limits, "limits", node) {
        let what = key.text.as_str();
        match what {
            "request_bytes" => limits.request_bytes = report.count(what, value).map(size),
            "response_bytes" => limits.response_bytes = report.count(what, value),
            "depth" => limits.depth = report.count(what, value).map(size),
            "time" => limits.time = report.duration(what, value),
            "in_flight" => limits.in_flight = report.count(what, value),
            "per_minute" => limits.per_minute = report.count(what, value),
            _ => report.unread(key),
        }
    }
    limits
}
