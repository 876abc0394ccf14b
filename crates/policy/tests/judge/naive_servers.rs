//! Server known and enabled, tool switch, user block, denied domain (CORE-6, GATE-9, REVIEW-3, SHELL-1).

use toolwarden_core::{Door, Operation, Reason};
use toolwarden_policy::Definition;
use toolwarden_policy::input::Declared;
use unicode_normalization::UnicodeNormalization;
use url::Url;

use crate::naive::{Case, Kind};
use crate::naive_allowlist::deny_entry_matches;
use crate::naive_names::{known_tools, listed_tools, same};

fn is_reserved(server: &str) -> bool {
    server == "builtin" || server == "custom-user-tools"
}

fn is_known(case: &Case<'_>) -> bool {
    is_reserved(&case.named.server) || case.definition().is_some()
}

/// Names that differ only in case or in Unicode normal form (ALLOW-5).
fn looks_like(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.nfkc(), other.nfkc());
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(left), Some(right)) if left.eq_ignore_ascii_case(&right) => {}
            _ => return false,
        }
    }
}

/// Two definitions that differ, or another server whose name looks the same.
fn conflicts(case: &Case<'_>) -> bool {
    let other = |server: &&toolwarden_policy::input::ServerInput| {
        looks_like(&server.name, &case.named.server)
            && (server.name != case.named.server
                || case.definitions.iter().any(|mine| mine.launch != server.launch || mine.owner != server.owner))
    };
    !case.definitions.is_empty() && case.input.servers.iter().any(|server| other(&server))
}

pub fn known(case: &Case<'_>) -> Option<Reason> {
    let judged_as_given = match case.query.door {
        Door::Mcp => false,
        Door::Explain => true,
        Door::Decide => !case.is_agent(),
    };
    if !is_known(case) {
        return (!judged_as_given).then_some(Reason::UnknownTool);
    }
    if !is_reserved(&case.named.server) {
        if conflicts(case) {
            return Some(Reason::ServerConflict);
        }
        if case.definition().is_some_and(|server| !server.enabled) {
            return Some(Reason::ServerDisabled);
        }
    }
    let prompt = case.query.call.requested_operation() == Operation::GetPrompt;
    if prompt && case.query.definition != Definition::Accepted {
        return Some(Reason::PromptNotAccepted);
    }
    if judged_as_given || case.query.call.requested_operation() != Operation::CallTool {
        return None;
    }
    let tools = match case.query.door {
        Door::Mcp => listed_tools(case.input, case.query, &case.named.server),
        Door::Explain | Door::Decide => known_tools(case.input, case.query, &case.named.server),
    };
    (!tools.contains(&case.named.tool)).then_some(Reason::UnknownTool)
}

/// Whether bare patterns and preset scopes reach this server (GATE-5).
pub fn is_operators(case: &Case<'_>) -> bool {
    match case.definition() {
        _ if is_reserved(&case.named.server) => true,
        Some(server) => server.declared == Declared::ByOperator && server.owner.is_none(),
        None => true,
    }
}

pub fn switch(case: &Case<'_>) -> Option<Reason> {
    if is_switched_off(case) {
        return Some(Reason::ToolDisabled);
    }
    let user = case.query.caller.user.as_ref().and_then(|user| case.input.users.get(user));
    let blocks = user.map(|user| user.blocks.as_slice()).unwrap_or_default();
    if blocks.iter().any(|entry| deny_entry_matches(&entry.value, case)) {
        return Some(Reason::UserBlocked);
    }
    is_domain_denied(case).then_some(Reason::DomainDenied)
}

fn is_switched_off(case: &Case<'_>) -> bool {
    let (server, tool) = (&case.named.server, &case.named.tool);
    let full = format!("{server}:{tool}");
    for definition in &case.definitions {
        if definition.tools.iter().any(|(name, config)| same(name, tool) && config.enabled == Some(false))
            || definition.disabled_tools.iter().any(|name| same(&name.value, tool))
        {
            return true;
        }
    }
    case.input.base.settings.iter().any(|(key, value)| {
        if key == "mcp.tools.disabled" {
            let names = value.value.as_array().map(Vec::as_slice).unwrap_or_default();
            return names.iter().filter_map(|name| name.as_str()).any(|name| names_it(name, server, tool, &full));
        }
        let name = key.strip_prefix("mcp.tool.").and_then(|rest| rest.strip_suffix(".enabled"));
        name.is_some_and(|name| names_it(name, server, tool, &full)) && value.value == serde_json::Value::Bool(false)
    })
}

/// By `server:tool`, by name, or as `server__tool` and `server.tool` are written.
fn names_it(written: &str, server: &str, tool: &str, full: &str) -> bool {
    let parts = |text: &str| -> Vec<String> {
        let is_between = |character: char| !character.is_ascii_alphanumeric() && character != '-';
        text.split(is_between).filter(|part| !part.is_empty()).map(str::to_ascii_lowercase).collect()
    };
    let is_word = !written.contains(':') && (written.contains("__") || written.contains('.'));
    let both = [parts(server), parts(tool)].concat();
    same(written, tool) || same(written, full) || (is_word && parts(written) == both)
}

/// A domain in any writing; where nobody can tell the host, no domain can be ruled out.
fn is_domain_denied(case: &Case<'_>) -> bool {
    let (Some(admin), Kind::Fetch(url)) = (case.admin(), &case.kind) else { return false };
    let domains = &admin.sandboxing.denied_domains;
    let Ok(url) = Url::parse(url) else { return !domains.is_empty() };
    let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
    let host = host.trim_end_matches('.');
    domains.iter().any(|domain| {
        let domain = domain.value.to_ascii_lowercase();
        host == domain || host.ends_with(&format!(".{domain}"))
    })
}
