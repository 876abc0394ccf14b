//! What is shipped, written down once more from the requirements: the roles (GATE-5, GATE-6) and the scopes of well-known
//! names (GATE-7).

use toolwarden_policy::input::Scope;

/// One shipped role.
#[derive(Debug)]
pub struct ShippedRole {
    pub name: &'static str,
    pub alias: Option<&'static str>,
    pub scope: Scope,
    pub allow: &'static [&'static str],
    pub disallow: &'static [&'static str],
    pub only_task_tools: &'static [&'static str],
    pub own_task: &'static [&'static str],
    pub conditional: &'static [&'static str],
    pub settings: &'static [(&'static str, &'static str)],
}

const NOTHING: ShippedRole = ShippedRole {
    name: "",
    alias: None,
    scope: Scope::Pm,
    allow: &[],
    disallow: &[],
    only_task_tools: &[],
    own_task: &[],
    conditional: &[],
    settings: &[],
};

static WORKER: ShippedRole = ShippedRole {
    name: "worker",
    alias: Some("sandbox"),
    scope: Scope::Sandbox,
    allow: &["help.*", "web.search", "web.fetch", "api.call", "skills.get", "skills.list", "artifact.*"],
    disallow: &["sandbox.*", "node.*", "db.*"],
    only_task_tools: &["api.call"],
    own_task: &["artifact.*"],
    ..NOTHING
};

static PM: ShippedRole = ShippedRole {
    name: "pm",
    allow: &[
        "api.call",
        "artifact.*",
        "connector.*",
        "db.*",
        "git.*",
        "help.*",
        "model.*",
        "node.*",
        "sandbox.*",
        "web.fetch",
        "web.search",
    ],
    settings: &[("sandbox.allowed_images.add", "agents.project_manager.sandbox.allow_add_to_allowed_images")],
    ..NOTHING
};

static PA: ShippedRole = ShippedRole {
    name: "pa",
    allow: &[
        "api.call",
        "artifact.get",
        "artifact.list",
        "artifact.read",
        "artifact.search",
        "db.read",
        "db.write",
        "help.*",
        "web.fetch",
        "web.search",
    ],
    conditional: &["db.write"],
    ..NOTHING
};

/// The shipped role of this name or alias.
pub fn shipped_role(name: &str) -> Option<&'static ShippedRole> {
    match name {
        "worker" | "sandbox" => Some(&WORKER),
        "pm" => Some(&PM),
        "pa" => Some(&PA),
        _ => None,
    }
}

/// The scope that a tool of this name has without being told.
pub fn scope_of_name(tool: &str) -> Option<Scope> {
    match tool {
        "web.fetch" | "web.search" | "api.call" => return Some(Scope::Both),
        "skills.list" | "skills.get" => return Some(Scope::Sandbox),
        _ => {}
    }
    match tool.split_once('.')?.0 {
        "artifact" | "help" => Some(Scope::Both),
        "db" | "node" | "sandbox" | "model" | "connector" | "git" => Some(Scope::Pm),
        _ => None,
    }
}
