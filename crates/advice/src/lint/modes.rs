//! Findings about modes: conflicts, unknown names, and shapes that permit more, or less, than meant
//! (MODE-2, MODE-6).

use toolwarden_core::{Layer, name};
use toolwarden_policy::Finding;
use toolwarden_policy::input::ModeInput;
use toolwarden_policy::modes::{Modes, conflicts};
use toolwarden_policy::servers::Servers;

use super::{is_known_server, nearest};

pub(super) fn lint(inputs: &[ModeInput], servers: &Servers) -> Vec<Finding> {
    let compiled = Modes::compile(inputs);
    let mut findings = Vec::new();
    // What ships restricts nothing on purpose.
    for mode in inputs.iter().filter(|mode| mode.origin.layer != Layer::Shipped) {
        findings.extend(faults(mode, &compiled));
        findings.extend(unknown_names(mode, servers));
        findings.extend(useless_lists(mode));
        findings.extend(open_shapes(mode));
    }
    findings.extend(reachable_admin_servers(inputs, servers));
    findings
}

fn faults(mode: &ModeInput, compiled: &Modes) -> Vec<Finding> {
    let of_conflicts = conflicts(mode).into_iter().map(|conflict| {
        let message = format!("mode `{}` is refused: {conflict}", mode.slug);
        Finding::error("mode_conflict", conflict.disallowed, message).suggesting("remove it from one of the two lists")
    });
    let known: Vec<String> = conflicts(mode).iter().map(ToString::to_string).collect();
    let others = compiled.get(&mode.slug).map(|mode| mode.faults.as_slice()).unwrap_or_default();
    let of_others = others.iter().filter(|fault| !known.contains(fault)).map(|fault| {
        let message = format!("mode `{}` is refused: {fault}", mode.slug);
        Finding::error("mode_refused", mode.origin.clone(), message)
    });
    of_conflicts.chain(of_others).collect()
}

fn unknown_names(mode: &ModeInput, servers: &Servers) -> Vec<Finding> {
    let known: Vec<&str> =
        servers.sorted().iter().map(|server| &*server.name).filter(|name| *name != "custom-user-tools").collect();
    if known.iter().all(|name| *name == "builtin") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let listed = mode.allowed_servers.iter().flatten().chain(&mode.disallowed_servers);
    for server in listed.filter(|server| !is_known_server(servers, &server.value)) {
        let message = format!("mode `{}` names the unknown server `{}`", mode.slug, name::shown(&server.value));
        let finding = Finding::warning("unknown_server", server.origin.clone(), message);
        findings.push(match nearest(&server.value, known.iter().copied()) {
            Some(close) => finding.suggesting(format!("did you mean `{close}`?")),
            None => finding,
        });
    }
    for tool in mode.allowed_tools.iter().flatten().chain(&mode.disallowed_tools) {
        let server = servers.sorted().into_iter().find(|server| server.name.eq_ignore_ascii_case(&tool.value.server));
        let unknown = match server {
            None => true,
            Some(server) => {
                let is_meant = |name: &str| name.eq_ignore_ascii_case(&tool.value.tool);
                server.listed && !server.listed_tools().iter().any(|listed| is_meant(&listed.name))
            }
        };
        if unknown {
            let message = format!("mode `{}` names the unknown tool `{}`", mode.slug, tool.value);
            findings.push(Finding::warning("unknown_tool", tool.origin.clone(), message));
        }
    }
    findings
}

/// MODE-2: permissions that permit nothing.
fn useless_lists(mode: &ModeInput) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(tools) = &mode.allowed_tools else { return findings };
    if let Some(allowed) = &mode.allowed_servers {
        for tool in tools.iter().filter(|tool| !allowed.iter().any(|server| server.value == tool.value.server)) {
            let message = format!("mode `{}` allows `{}` but not its server", mode.slug, tool.value);
            findings.push(
                Finding::warning("tool_without_server", tool.origin.clone(), message)
                    .suggesting(format!("add `{}` to allowedServers, or remove the tool", tool.value.server)),
            );
        }
        for server in allowed.iter().filter(|server| !tools.iter().any(|tool| tool.value.server == server.value)) {
            let message =
                format!("mode `{}` allows server `{}` but none of its tools", mode.slug, name::shown(&server.value));
            findings.push(
                Finding::warning("server_without_tool", server.origin.clone(), message)
                    .suggesting("add its tools to allowedTools, or remove the server"),
            );
        }
    }
    findings
}

/// MODE-6: shapes that are open where they look closed.
fn open_shapes(mode: &ModeInput) -> Vec<Finding> {
    let mut findings = Vec::new();
    if mode.groups.is_none() && mode.extends.is_none() {
        let message = format!("mode `{}` lists no groups, so it has all of them", mode.slug);
        findings.push(
            Finding::note("mode_without_groups", mode.origin.clone(), message)
                .suggesting("list them: `mcp` for MCP tools, `command` for shell commands"),
        );
    }
    let denies = mode.disallowed_servers.first().map(|server| &server.origin);
    let denies = denies.or_else(|| mode.disallowed_tools.first().map(|tool| &tool.origin));
    let names_what_it_may = mode.allowed_servers.is_some() || mode.allowed_tools.is_some();
    if let Some(origin) = denies.filter(|_| !names_what_it_may && mode.extends.is_none()) {
        let message = format!("mode `{}` denies some and permits everything else, also servers added later", mode.slug);
        findings.push(
            Finding::warning("deny_list_on_open_mode", origin.clone(), message)
                .suggesting("list what the mode may use in allowedServers"),
        );
    }
    let has = |group: &str| mode.groups.as_ref().is_none_or(|groups| groups.iter().any(|name| name == group));
    let names_builtin =
        mode.allowed_servers.as_ref().is_none_or(|list| list.iter().any(|server| server.value == "builtin"));
    if mode.groups.is_some() && has("command") && !names_builtin {
        let message = format!(
            "mode `{}` has the group `command`, but its allowedServers lacks `builtin`, so no shell command passes",
            mode.slug
        );
        findings.push(
            Finding::warning("command_without_builtin", mode.origin.clone(), message)
                .suggesting("add `builtin` to allowedServers"),
        );
    }
    findings
}

/// A server that sounds like administration and that nobody needs to name to reach.
fn reachable_admin_servers(modes: &[ModeInput], servers: &Servers) -> Vec<Finding> {
    let mut findings = Vec::new();
    for server in servers.sorted() {
        if !server.default_enabled || !server.name.to_ascii_lowercase().contains("admin") {
            continue;
        }
        let reaches = |mode: &&ModeInput| {
            let denied = mode.disallowed_servers.iter().any(|name| name.value.eq_ignore_ascii_case(&server.name));
            mode.allowed_servers.is_none() && mode.extends.is_none() && !denied
        };
        let slugs: Vec<&str> = modes.iter().filter(reaches).map(|mode| mode.slug.as_str()).collect();
        let also = if slugs.is_empty() { String::new() } else { format!(", and in the modes {}", slugs.join(", ")) };
        let message = format!("server `{}` is on by default: it is reached without a mode{also}", server.name);
        findings.push(Finding::warning("admin_server_reachable", server.origin.clone(), message).suggesting(
            "set `defaultEnabled: false` on the server, and name it in allowedServers of the modes that need it",
        ));
    }
    findings
}
