//! Random edits of a policy: small enough that many of them only narrow, or change nothing at all.

use toolwarden_core::{Sourced, ToolIdentity};
use toolwarden_policy::input::{AdminInput, AutoRunMode, Declared, ModeInput, RoleInput, Scope, ServerInput};

use crate::generate::{ENTRIES, world_from};
use crate::generate_calls::SHELL_ENTRIES;
use crate::generate_rules::{permit_all, print};
use crate::naive::World;
use crate::tape::{Tape, here, sourced};

const PATTERNS: [&str; 7] = ["*", "db.*", "db:get", "web:db.*", "get", "API.call", "cursor-ide-browser:*"];
const SERVERS: [&str; 4] = ["db", "web", "cursor-ide-browser", "DB"];
const TOOLS: [&str; 4] = ["get", "db.read", "api.call", "GET"];

/// Edits a policy at one place. Zero bytes change as little as possible.
pub fn edit(tape: &mut Tape<'_>, world: &mut World) {
    let base = &mut world.input.base;
    match tape.byte() % 13 {
        12 => base.limits.request_bytes = tape.pick(None, &[Some(40), Some(100), Some(10)]),
        0 => auto_run(tape, world),
        1 => user(tape, world),
        2 | 3 => with_one(tape, &mut world.input.servers, server),
        4 => with_one(tape, &mut base.modes, mode),
        5 => with_one(tape, &mut base.roles, role),
        6 => rules(tape, world),
        7 => admin(tape, &mut base.admin),
        8 => local(tape, world),
        9 => settings(tape, world),
        10 => leave_out(tape, world),
        _ => protected(tape, world),
    }
}

fn with_one<T>(tape: &mut Tape<'_>, items: &mut [T], edit: fn(&mut Tape<'_>, &mut T)) {
    let at = usize::from(tape.byte()).checked_rem(items.len()).unwrap_or(0);
    if let Some(item) = items.get_mut(at) {
        edit(tape, item);
    }
}

/// Takes one out, or puts one in.
fn list(tape: &mut Tape<'_>, list: &mut Vec<Sourced<String>>, pool: &[&str]) {
    if tape.chance(50) {
        list.push(sourced(tape.pick("db:get", pool)));
    } else if !list.is_empty() {
        let at = usize::from(tape.byte()) % list.len();
        list.remove(at);
    } else {
        list.push(sourced(tape.pick("db:get", pool)));
    }
}

fn maybe_list(tape: &mut Tape<'_>, lists: &mut Option<Vec<Sourced<String>>>, pool: &[&str]) {
    match tape.byte() % 4 {
        0 => *lists = None,
        1 if lists.is_none() => *lists = Some(Vec::new()),
        _ => list(tape, lists.get_or_insert_default(), pool),
    }
}

fn texts(tape: &mut Tape<'_>, texts: &mut Vec<String>, pool: &[&str]) {
    if tape.chance(50) || texts.is_empty() {
        texts.push(tape.pick("x", pool).to_owned());
    } else {
        texts.pop();
    }
}

fn flip(value: &mut bool) {
    *value = !*value;
}

fn auto_run(tape: &mut Tape<'_>, world: &mut World) {
    let settings = &mut world.input.base.auto_run;
    match tape.byte() % 12 {
        0 => list(tape, &mut settings.ask, &ENTRIES),
        1 => flip(&mut settings.mcp_protection),
        2 => flip(&mut settings.browser_protection),
        3 => flip(&mut settings.delete_protection),
        4 => flip(&mut settings.require_mode),
        5 => flip(&mut settings.mcp_allowlists),
        6 => flip(&mut settings.sandbox_resolves),
        7 => flip(&mut settings.auto_review),
        8 => texts(tape, &mut settings.browser_servers, &["db", "web"]),
        10 => flip(&mut settings.mode_is_chosen),
        9 => settings.default_mode = tape.chance(50).then(|| sourced(tape.pick("m1", &["m2", "code"]))),
        _ => settings.mode = any_mode(tape),
    }
}

fn any_mode(tape: &mut Tape<'_>) -> AutoRunMode {
    tape.pick(AutoRunMode::AskEveryTime, &[AutoRunMode::UseAllowlist, AutoRunMode::RunEverything])
}

fn user(tape: &mut Tape<'_>, world: &mut World) {
    let name = tape.pick("bob", &["ann", "cid"]);
    let user = world.input.users.entry(name.to_owned()).or_default();
    match tape.byte() % 5 {
        4 => user.protections = crate::generate::own_protections(tape),
        0 => list(tape, &mut user.mcp_allowlist, &ENTRIES),
        1 => list(tape, &mut user.terminal_allowlist, &SHELL_ENTRIES),
        2 => list(tape, &mut user.blocks, &ENTRIES),
        _ => user.auto_run_mode = tape.chance(70).then(|| any_mode(tape)),
    }
}

fn server(tape: &mut Tape<'_>, server: &mut ServerInput) {
    match tape.byte() % 11 {
        0 => flip(&mut server.enabled),
        1 => flip(&mut server.default_enabled),
        2 => server.declared = tape.pick(Declared::ByUser, &[Declared::ByOperator, Declared::ByWorkspace]),
        3 => texts(tape, &mut server.labels, &["sends_out", "reads_private"]),
        4 => server.limits.request_bytes = tape.pick(None, &[Some(40), Some(100), Some(10)]),
        5 => list(tape, &mut server.disabled_tools, &TOOLS),
        6 => list(tape, &mut server.always_allow, &TOOLS),
        7 => catalog(tape, server),
        8 => {
            let tool = tape.pick("get", &TOOLS);
            if tape.chance(40) {
                server.tools.remove(tool);
            }
        }
        9 if !matches!(server.name.as_str(), "builtin" | "custom-user-tools") => {
            server.owner = tape.pick(None, &[Some("bob"), Some("ann"), None]).map(str::to_owned);
        }
        _ => tool(tape, server),
    }
}

fn catalog(tape: &mut Tape<'_>, server: &mut ServerInput) {
    let Some(listed) = &mut server.catalog else { return };
    let at = usize::from(tape.byte()).checked_rem(listed.len()).unwrap_or(0);
    let Some(tool) = listed.get_mut(at) else { return };
    match tape.byte() % 4 {
        0 => drop(listed.remove(at)),
        1 => tool.description = Some("other words".to_owned()),
        2 => tool.input_schema = None,
        _ => tool.input_schema = Some(serde_json::json!({ "type": "object" })),
    }
}

fn tool(tape: &mut Tape<'_>, server: &mut ServerInput) {
    let name = tape.pick("get", &TOOLS);
    let tool = server.tools.entry(name.to_owned()).or_default();
    match tape.byte() % 7 {
        0 => flip(&mut tool.human_review),
        1 => tool.enabled = tape.pick(Some(false), &[Some(true), None]),
        2 => tool.scope = tape.pick(None, &[Some(Scope::Pm), Some(Scope::Sandbox), Some(Scope::Both)]),
        3 => texts(tape, &mut tool.task_scoped, &["task_id", "run_id"]),
        4 => tool.requires_setting = tape.chance(50).then(|| "feature.x".to_owned()),
        5 => texts(tape, &mut tool.labels, &["sends_out", "reads_untrusted"]),
        _ => tool.limits.depth = tape.pick(None, &[Some(1), Some(3)]),
    }
}

fn mode(tape: &mut Tape<'_>, mode: &mut ModeInput) {
    match tape.byte() % 10 {
        0 => maybe_list(tape, &mut mode.allowed_servers, &SERVERS),
        1 => list(tape, &mut mode.disallowed_servers, &SERVERS),
        2 => {
            let identity = ToolIdentity::new(tape.pick("db", &SERVERS), tape.pick("get", &TOOLS));
            mode.allowed_tools.get_or_insert_default().push(Sourced::new(identity, here()));
        }
        3 => {
            let identity = ToolIdentity::new(tape.pick("db", &SERVERS), tape.pick("get", &TOOLS));
            mode.disallowed_tools.push(Sourced::new(identity, here()));
        }
        4 => {
            mode.disallowed_tools.pop();
        }
        5 => mode.allowed_tools = None,
        6 => texts(tape, mode.groups.get_or_insert_default(), &["mcp", "command"]),
        7 => mode.window = None,
        8 => mode.extends = tape.chance(60).then(|| sourced(tape.pick("m1", &["m2", "code"]))),
        _ => mode.auto_review = tape.pick(None, &[Some(true), Some(false)]),
    }
}

fn role(tape: &mut Tape<'_>, role: &mut RoleInput) {
    match tape.byte() % 4 {
        0 => list(tape, role.allow.get_or_insert_default(), &PATTERNS),
        1 => list(tape, role.disallow.get_or_insert_default(), &PATTERNS),
        2 => {
            role.conditions.pop();
        }
        _ => {
            if let Some(texts) = role.conditions.first_mut().and_then(|condition| condition.arguments.get_mut("table"))
            {
                texts.pop();
            }
        }
    }
}

fn rules(tape: &mut Tape<'_>, world: &mut World) {
    match tape.byte() % 4 {
        0 => world.rules.reverse(),
        1 => world.rules.push(permit_all()),
        2 => {
            world.rules.pop();
        }
        _ => world.rules.extend(world_from(tape).rules.pop()),
    }
    world.input.base.rules = print(&world.rules);
}

fn admin(tape: &mut Tape<'_>, admin: &mut Option<AdminInput>) {
    let Some(record) = admin else {
        *admin = Some(AdminInput { enabled: true, ..AdminInput::default() });
        return;
    };
    match tape.byte() % 9 {
        0 => flip(&mut record.enabled),
        1 => list(tape, &mut record.allowed, &SHELL_ENTRIES),
        2 => list(tape, &mut record.blocked, &SHELL_ENTRIES),
        3 => list(tape, &mut record.mcp_tool_allowlist, &ENTRIES),
        4 => flip(&mut record.disable_mcp_auto_run),
        5 => flip(&mut record.delete_file_protection),
        6 => flip(&mut record.enable_run_everything),
        7 => list(tape, &mut record.sandboxing.denied_domains, &["evil.test", "a.test"]),
        _ => *admin = None,
    }
}

fn local(tape: &mut Tape<'_>, world: &mut World) {
    if tape.chance(40) {
        let root = tape.pick("/w", &["/v"]).into();
        let file = world.input.local.workspaces.entry(root).or_default();
        return match tape.byte() % 4 {
            0 => world.input.local.workspaces.clear(),
            1 => flip(&mut file.broken),
            2 => maybe_list(tape, &mut file.mcp_allowlist, &ENTRIES),
            _ => maybe_list(tape, &mut file.terminal_allowlist, &SHELL_ENTRIES),
        };
    }
    let files = &mut world.input.local.files;
    match (tape.byte() % 4, files.first_mut()) {
        (0, _) => drop(files.pop()),
        (1, Some(file)) => flip(&mut file.broken),
        (2, Some(file)) => maybe_list(tape, &mut file.mcp_allowlist, &ENTRIES),
        (_, Some(file)) => maybe_list(tape, &mut file.terminal_allowlist, &SHELL_ENTRIES),
        (_, None) => files.push(toolwarden_policy::input::PermissionsInput::default()),
    }
}

fn settings(tape: &mut Tape<'_>, world: &mut World) {
    let key = tape.pick("feature.x", &["mcp.tool.db.read.enabled", "mcp.tool.db:get.enabled", "mcp.tools.disabled"]);
    let settings = &mut world.input.base.settings;
    if tape.chance(50) {
        settings.remove(key);
    } else {
        let value = match key {
            "mcp.tools.disabled" => serde_json::json!([tape.pick("get", &["db:get", "api.call"])]),
            _ => serde_json::json!(tape.chance(50)),
        };
        settings.insert(key.to_owned(), Sourced::new(value, here()));
    }
}

fn leave_out(tape: &mut Tape<'_>, world: &mut World) {
    let input = &mut world.input;
    let at = usize::from(tape.byte());
    let without = |length: usize| at.checked_rem(length);
    match tape.byte() % 4 {
        0 => without(input.servers.len()).map(|at| drop(input.servers.remove(at))),
        1 => without(input.base.modes.len()).map(|at| drop(input.base.modes.remove(at))),
        2 => without(input.base.roles.len()).map(|at| drop(input.base.roles.remove(at))),
        _ => input.users.pop_first().map(drop),
    };
}

fn protected(tape: &mut Tape<'_>, world: &mut World) {
    let paths = &mut world.input.base.protected_paths;
    if tape.chance(40) {
        paths.clear();
    } else {
        paths.push("/w/.roomodes".into());
    }
}
