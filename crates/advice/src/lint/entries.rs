//! Findings about allowlists, ask lists, blocks and terminal entries.

use toolwarden_core::call::{FETCH_TOOL, SHELL_TOOL};
use toolwarden_core::{BUILTIN_SERVER, Entry, Operation, Side, Sourced, name};
use toolwarden_policy::servers::{Server, Servers};
use toolwarden_policy::shell::{self, ShellEntry};
use toolwarden_policy::{Finding, NarrowEntry, PolicyInput, Settings, names_tool};

use super::{is_known_server, nearest};

/// Programs whose subcommands range from looking to publishing, with a narrower entry for each.
const WIDE_PROGRAMS: [(&str, &str); 8] = [
    ("git", "git:status"),
    ("npm", "npm:test*"),
    ("cargo", "cargo:test*"),
    ("docker", "docker:ps*"),
    ("kubectl", "kubectl:get *"),
    ("pip", "pip:list*"),
    ("gh", "gh:issue list*"),
    ("make", "make:test"),
];

pub(super) fn lint(input: &PolicyInput, servers: &Servers) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut check_mcp = |list: &[Sourced<String>]| findings.extend(mcp_list(list, servers));
    for file in input.local.here() {
        check_mcp(&plain(file.mcp_allowlist.as_deref().unwrap_or_default()));
    }
    for user in input.users.values() {
        check_mcp(&plain(&user.mcp_allowlist));
        check_mcp(&user.blocks);
    }
    check_mcp(&input.base.auto_run.ask);
    let is_empty = upstream(servers).next().is_none();
    findings.extend(input.base.auto_run.ask.iter().filter(|_| is_empty).filter_map(unprotected));
    let mut check_mcp = |list: &[Sourced<String>]| findings.extend(mcp_list(list, servers));
    if let Some(admin) = &input.base.admin {
        check_mcp(&admin.mcp_tool_allowlist);
    }
    check_mcp(&input.base.approvers.second_person);
    let answered: Vec<Sourced<String>> = input.base.approvers.rules.iter().map(|(entry, _)| entry.clone()).collect();
    check_mcp(&answered);
    check_mcp(&switched_off(input));
    findings.extend(switched_nowhere(input, servers));
    findings.extend(not_asked(input));
    for file in input.local.here() {
        findings.extend(terminal_list(file.terminal_allowlist.as_deref().unwrap_or_default()));
    }
    for user in input.users.values() {
        findings.extend(terminal_list(&user.terminal_allowlist));
    }
    if let Some(admin) = &input.base.admin {
        findings.extend(terminal_list(&admin.allowed));
        findings.extend(admin.blocked.iter().filter_map(invalid_terminal));
    }
    findings.extend(replaced(input));
    findings.extend(over_arguments(input, servers));
    findings
}

/// The `server:tool` entries of the settings that switch tools off.
fn switched_off(input: &PolicyInput) -> Vec<Sourced<String>> {
    let written = Settings::written_off(&input.base.settings);
    written.into_iter().filter(|text| text.value.contains(':')).collect()
}

/// Bare names in those settings that no tool has. Of a server that nobody asked yet nothing can be said, unless a name
/// is so near to a known one that it is a slip.
fn switched_nowhere(input: &PolicyInput, servers: &Servers) -> Vec<Finding> {
    let written = Settings::written_off(&input.base.settings);
    let own = [SHELL_TOOL, FETCH_TOOL];
    let known = || upstream(servers).flat_map(|server| server.known_tools().map(move |tool| (&*server.name, tool)));
    let is_known = |name: &str| {
        Operation::from_reserved_name(name).is_some()
            || own.iter().any(|tool| names_tool(name, BUILTIN_SERVER, tool))
            || known().any(|(server, tool)| names_tool(name, server, tool))
    };
    let are_all_listed = upstream(servers).all(|server| server.listed) && upstream(servers).next().is_some();
    let bare = written.iter().filter(|text| !text.value.contains(':') && !is_known(&text.value));
    bare.filter_map(|text| {
        let close = nearest(&text.value, known().map(|(_, tool)| tool).chain(own));
        let message = format!("`{}` switches nothing off: no known server has such a tool", name::shown(&text.value));
        let finding = Finding::warning("unknown_tool", text.origin.clone(), message);
        match close {
            Some(close) => Some(finding.suggesting(format!("did you mean `{}`?", name::shown(close)))),
            None => {
                are_all_listed.then(|| finding.suggesting("write `server:tool`, as `toolwarden tools list` shows it"))
            }
        }
    })
    .collect()
}

/// Tools for which a second person is demanded, but only where a call is held: an allowlist or a mode may let it run.
fn not_asked(input: &PolicyInput) -> Vec<Finding> {
    let asked: Vec<Entry> = input.base.auto_run.ask.iter().filter_map(|text| Entry::parse(&text.value).ok()).collect();
    let is_open = |text: &&Sourced<String>| {
        Entry::parse(&text.value).is_ok_and(|entry| !asked.iter().any(|wider| wider.covers(&entry)))
    };
    let open = input.base.approvers.second_person.iter().filter(is_open);
    open.map(|text| {
        let shown = name::shown(&text.value);
        let message =
            format!("a second person answers calls of `{shown}` that are held; one that is allowed asks nobody");
        Finding::warning("second_person_not_asked", text.origin.clone(), message)
            .suggesting(format!("add `{shown}` to `[auto_run] ask`, so that every call is held"))
    })
    .collect()
}

/// A user's list without the entries over arguments, which are looked at by themselves.
fn plain(list: &[Sourced<String>]) -> Vec<Sourced<String>> {
    list.iter().filter(|text| NarrowEntry::parse(&text.value).is_err()).cloned().collect()
}

/// Entries over arguments: tools nobody has, and those that a wider entry makes needless.
fn over_arguments(input: &PolicyInput, servers: &Servers) -> Vec<Finding> {
    let files = input.local.here().filter_map(|file| file.mcp_allowlist.as_deref());
    let lists = files.chain(input.users.values().map(|user| user.mcp_allowlist.as_slice()));
    let mut findings = Vec::new();
    for list in lists {
        for text in list {
            let Ok(entry) = NarrowEntry::parse(&text.value).map(|entry| entry.whole_tool()) else { continue };
            findings.extend(unknown(&entry, text, servers));
            let wider = list.iter().find(|other| Entry::parse(&other.value).is_ok_and(|other| other.covers(&entry)));
            findings.extend(wider.map(|wider| shadowed(text, &wider.value)));
        }
    }
    findings
}

fn mcp_list(list: &[Sourced<String>], servers: &Servers) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: Vec<(Entry, &Sourced<String>)> = Vec::new();
    for text in list {
        let entry = match Entry::parse(&text.value) {
            Ok(entry) => entry,
            Err(fault) => {
                findings.push(invalid_mcp(text, &fault.to_string()));
                continue;
            }
        };
        findings.extend(unknown(&entry, text, servers));
        if entry.server == Side::Any && entry.tool == Side::Any {
            let message = "`*:*` matches every tool of every server, also of those added later".to_owned();
            findings.push(
                Finding::warning("everything_entry", text.origin.clone(), message)
                    .suggesting("name the servers you trust, as `server:*`"),
            );
        }
        if let Some((wider, _)) = seen.iter().find(|(other, _)| other.covers(&entry)) {
            findings.push(shadowed(text, &wider.to_string()));
        }
        seen.push((entry, text));
    }
    // An entry may also be shadowed by one that comes later.
    for (index, (entry, text)) in seen.iter().enumerate() {
        let later = seen.iter().skip(index + 1).find(|(other, _)| other.covers(entry) && !entry.covers(other));
        findings.extend(later.map(|(wider, _)| shadowed(text, &wider.to_string())));
    }
    findings
}

fn invalid_mcp(text: &Sourced<String>, fault: &str) -> Finding {
    let over_arguments = NarrowEntry::is_meant(&text.value).then(|| NarrowEntry::parse(&text.value).err());
    let fault = match over_arguments {
        None => fault.to_owned(),
        Some(Some(fault)) => fault.to_string(),
        Some(None) => "entries over arguments count in a user's own list alone".to_owned(),
    };
    let message = format!("Invalid MCP allowlist entry: {} ({fault})", name::shown(&text.value));
    Finding::warning("invalid_entry", text.origin.clone(), message)
        .suggesting("write `server:tool`, where either side may be `*`")
}

fn shadowed(text: &Sourced<String>, wider: &str) -> Finding {
    let message = format!("`{}` adds nothing: `{wider}` in the same list covers it", name::shown(&text.value));
    Finding::note("shadowed_entry", text.origin.clone(), message).suggesting("remove one of the two")
}

fn upstream(servers: &Servers) -> impl Iterator<Item = &Server> {
    let all = servers.sorted().into_iter().map(|server| &**server);
    all.filter(|server| !matches!(&*server.name, "builtin" | "custom-user-tools"))
}

/// An `ask` entry for a server where none is configured: whoever wrote it relies on it.
fn unprotected(text: &Sourced<String>) -> Option<Finding> {
    let Side::Name(server) = Entry::parse(&text.value).ok()?.server else { return None };
    let is_known = ["builtin", "custom-user-tools"].contains(&server.as_str());
    let message = format!("`{}` protects nothing: no server is configured", name::shown(&text.value));
    (!is_known).then(|| Finding::warning("unknown_server", text.origin.clone(), message))
}

/// An entry that matches no known tool. Where nothing is configured, nothing can be said.
fn unknown(entry: &Entry, text: &Sourced<String>, servers: &Servers) -> Option<Finding> {
    let upstream = || upstream(servers);
    let Side::Name(server_name) = &entry.server else { return None };
    upstream().next()?;
    if !is_known_server(servers, server_name) {
        let message = format!(
            "`{}` matches no configured server: none is called `{}`",
            name::shown(&text.value),
            name::shown(server_name)
        );
        let finding = Finding::warning("unknown_server", text.origin.clone(), message);
        return Some(match nearest(server_name, upstream().map(|server| &*server.name)) {
            Some(close) => finding.suggesting(format!("did you mean `{close}`?")),
            None => finding,
        });
    }
    let Side::Name(tool_name) = &entry.tool else { return None };
    let server = upstream().find(|server| server.name.eq_ignore_ascii_case(server_name))?;
    let known = |name: &str| name.eq_ignore_ascii_case(tool_name);
    // What is only said of a tool, such as its scope, does not make its server list it.
    let listed = server.listed_tools();
    if !server.listed || listed.iter().any(|tool| known(&tool.name)) {
        return None;
    }
    let message = format!("`{}` matches nothing: `{}` lists no such tool", name::shown(&text.value), server.name);
    let finding = Finding::warning("unknown_tool", text.origin.clone(), message);
    Some(match nearest(tool_name, listed.iter().map(|tool| tool.name.as_str())) {
        Some(close) => finding.suggesting(format!("did you mean `{}:{close}`?", server.name)),
        None => finding,
    })
}

fn terminal_list(list: &[Sourced<String>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut bases: Vec<String> = Vec::new();
    for text in list {
        if let Some(finding) = invalid_terminal(text) {
            findings.push(finding);
            continue;
        }
        let base = text.value.split(':').next().unwrap_or_default();
        if bases.iter().any(|wider| wider == base) {
            findings.push(shadowed(text, base));
        }
        if !text.value.contains(':') {
            bases.push(base.to_owned());
        }
        findings.extend(suspicious_terminal(text, base));
    }
    findings
}

fn invalid_terminal(text: &Sourced<String>) -> Option<Finding> {
    let fault = ShellEntry::parse(&text.value).err()?;
    let message = format!("invalid terminal entry: {} ({fault})", name::shown(&text.value));
    Some(
        Finding::warning("invalid_entry", text.origin.clone(), message)
            .suggesting("write `command` or `command:arguments`, where `*` in the arguments matches anything"),
    )
}

/// An entry that can never allow anything, or allows a whole program.
fn suspicious_terminal(text: &Sourced<String>, base: &str) -> Option<Finding> {
    // Some programs are only held without a file to run, so an argument is tried as well.
    let obstacle = |line: &str| shell::read(line).ok()?.commands.into_iter().next()?.obstacle;
    if let (Some(obstacle), Some(_)) = (obstacle(base), obstacle(&format!("{base} file"))) {
        let message = format!("`{}` can never allow a command: {obstacle}", name::shown(&text.value));
        return Some(Finding::warning("never_matches", text.origin.clone(), message));
    }
    if let Some((_, narrower)) = WIDE_PROGRAMS.iter().find(|(program, _)| *program == text.value) {
        let message = format!("`{base}` allows every subcommand, also those that publish or push");
        return Some(
            Finding::note("whole_command", text.origin.clone(), message)
                .suggesting(format!("allow only what you need, such as `{narrower}`")),
        );
    }
    None
}

/// PERM-2: lists that a file or the admin record replaces.
fn replaced(input: &PolicyInput) -> Vec<Finding> {
    let mut findings = Vec::new();
    let defines_mcp = input.local.here().any(|file| file.broken || file.mcp_allowlist.is_some());
    let admin = input.base.admin.as_ref().is_some_and(|admin| admin.enabled);
    let stored = input.users.get(&input.local.user);
    let by = if admin { "the admin record" } else { "permissions.json" };
    if let Some(first) = stored.and_then(|user| user.mcp_allowlist.first()).filter(|_| admin || defines_mcp) {
        let message = format!("the stored MCP allowlist does not count: {by} replaces it");
        findings.push(Finding::note("replaced_list", first.origin.clone(), message));
    }
    let first_of_file = input.local.here().find_map(|file| file.mcp_allowlist.as_ref()?.first());
    if let Some(first) = first_of_file.filter(|_| admin) {
        let message = "this MCP allowlist does not count: the admin record replaces it".to_owned();
        findings.push(Finding::note("replaced_list", first.origin.clone(), message));
    }
    findings
}
