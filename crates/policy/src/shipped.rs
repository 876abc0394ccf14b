//! What Toolwarden ships: the roles of GATE-5, the scopes of GATE-7, and the rules of GATE-10.
//!
//! All of it is data that a config can change key by key; nothing else in the judge knows a role or
//! a tool by name.

use crate::input::Scope;

/// The shipped rule file, as a person would write it.
pub const RULES: &str = include_str!("../rules/shipped.cedar");

/// How the shipped rule file is named in explanations.
pub const RULES_SOURCE: &str = "shipped.cedar";

/// A role as shipped.
#[derive(Debug)]
pub struct ShippedRole {
    pub name: &'static str,
    pub alias: Option<&'static str>,
    pub scope: Scope,
    pub allow: &'static [&'static str],
    pub disallow: &'static [&'static str],
    /// Only where the token lists the tool among its task tools.
    pub only_task_tools: &'static [&'static str],
    /// Only with the caller's own `task_id` in the arguments.
    pub own_task: &'static [&'static str],
    /// Only under a condition that the config must give.
    pub conditional: &'static [&'static str],
    /// Tool → the setting that must be true.
    pub settings: &'static [(&'static str, &'static str)],
}

pub const ROLES: [ShippedRole; 3] = [
    ShippedRole {
        name: "worker",
        alias: Some("sandbox"),
        scope: Scope::Sandbox,
        allow: &["artifact.*", "skills.list", "skills.get", "web.fetch", "web.search", "api.call", "help.*"],
        disallow: &["db.*", "node.*", "sandbox.*"],
        only_task_tools: &["api.call"],
        own_task: &["artifact.*"],
        conditional: &[],
        settings: &[],
    },
    ShippedRole {
        name: "pm",
        alias: None,
        scope: Scope::Pm,
        allow: &[
            "db.*",
            "node.*",
            "sandbox.*",
            "artifact.*",
            "model.*",
            "connector.*",
            "web.fetch",
            "web.search",
            "api.call",
            "git.*",
            "help.*",
        ],
        disallow: &[],
        only_task_tools: &[],
        own_task: &[],
        conditional: &[],
        settings: &[("sandbox.allowed_images.add", "agents.project_manager.sandbox.allow_add_to_allowed_images")],
    },
    ShippedRole {
        name: "pa",
        alias: None,
        scope: Scope::Pm,
        allow: &[
            "db.read",
            "db.write",
            "artifact.get",
            "artifact.list",
            "artifact.read",
            "artifact.search",
            "web.fetch",
            "web.search",
            "api.call",
            "help.*",
        ],
        disallow: &[],
        only_task_tools: &[],
        own_task: &[],
        conditional: &["db.write"],
        settings: &[],
    },
];

/// Scopes of well-known tool names, for operator-declared servers (GATE-7).
pub const SCOPES: [(&str, Scope); 13] = [
    ("artifact.*", Scope::Both),
    ("web.fetch", Scope::Both),
    ("web.search", Scope::Both),
    ("api.call", Scope::Both),
    ("help.*", Scope::Both),
    ("skills.list", Scope::Sandbox),
    ("skills.get", Scope::Sandbox),
    ("db.*", Scope::Pm),
    ("node.*", Scope::Pm),
    ("sandbox.*", Scope::Pm),
    ("model.*", Scope::Pm),
    ("connector.*", Scope::Pm),
    ("git.*", Scope::Pm),
];

/// The preset scope of a tool name.
#[must_use]
pub fn preset_scope(tool: &str) -> Option<Scope> {
    let fits = |(pattern, _): &&(&str, Scope)| match pattern.strip_suffix('*') {
        Some(prefix) => tool.starts_with(prefix),
        None => tool == *pattern,
    };
    SCOPES.iter().find(fits).map(|(_, scope)| *scope)
}
