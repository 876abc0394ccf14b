//! The deny side of files that do not count otherwise (PERM-4).
//!
//! Takes what an untrusted or changed file says; narrows what is already known; adds no server, no
//! mode and no grant.

use toolwarden_core::name::{self, registration_key};
use toolwarden_core::{Entry, Sourced, ToolIdentity};
use toolwarden_policy::input::{ModeInput, PolicyInput, RoleInput, ServerInput};
use toolwarden_policy::roles::canonical as canonical_role;
use toolwarden_policy::shipped;

use crate::finding::{Finding, Severity};
use crate::readers::config::ConfigFile;
use crate::readers::server::ServerDefinition;

/// One file's deny side.
#[derive(Debug)]
pub(super) enum Narrowing {
    Modes(Vec<ModeInput>),
    Servers(Vec<ServerDefinition>),
    Config(Box<ConfigFile>),
}

impl Narrowing {
    /// Narrows the input; a note tells of each piece that is not known and so not counted.
    pub(super) fn apply(&self, input: &mut PolicyInput) -> Vec<Finding> {
        match self {
            Self::Modes(modes) => narrow_modes(&mut input.base.modes, modes),
            Self::Servers(servers) => narrow_servers(input, servers),
            Self::Config(config) => narrow_config(input, config),
        }
    }
}

fn narrow_modes(known: &mut [ModeInput], said: &[ModeInput]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for mode in said {
        let Some(target) = known.iter_mut().find(|target| target.slug == mode.slug) else {
            let message = format!("the mode `{}` is not known: nobody trusted this content", mode.slug);
            findings.push(not_counted(&mode.origin, message));
            continue;
        };
        for server in &mode.disallowed_servers {
            forbid_server(target, server);
        }
        for tool in &mode.disallowed_tools {
            forbid_tool(target, tool);
        }
    }
    findings
}

/// What is forbidden now is no longer allowed, so that the mode does not contradict itself.
fn forbid_server(mode: &mut ModeInput, server: &Sourced<String>) {
    if let Some(allowed) = &mut mode.allowed_servers {
        allowed.retain(|allowed| !allowed.value.eq_ignore_ascii_case(&server.value));
    }
    if let Some(allowed) = &mut mode.allowed_tools {
        allowed.retain(|allowed| !allowed.value.server.eq_ignore_ascii_case(&server.value));
    }
    mode.disallowed_servers.push(server.clone());
}

fn forbid_tool(mode: &mut ModeInput, tool: &Sourced<ToolIdentity>) {
    let same = |allowed: &ToolIdentity| {
        allowed.server.eq_ignore_ascii_case(&tool.value.server) && allowed.tool.eq_ignore_ascii_case(&tool.value.tool)
    };
    if let Some(allowed) = &mut mode.allowed_tools {
        allowed.retain(|allowed| !same(&allowed.value));
    }
    mode.disallowed_tools.push(tool.clone());
}

fn narrow_servers(input: &mut PolicyInput, said: &[ServerDefinition]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for definition in said {
        let said = &definition.input;
        let key = registration_key(&said.name);
        let mut found = false;
        for target in input.servers.iter_mut().filter(|target| registration_key(&target.name) == key) {
            found = true;
            narrow_server(target, said);
            // It asks for something that is not done here, or cannot be understood.
            target.enabled &= !definition.faulty;
        }
        if !found {
            forbid_unknown(input, said);
            let shown = name::shown(&said.name);
            findings.push(not_counted(
                &said.origin,
                format!("the server `{shown}` is not known: nobody trusted this content"),
            ));
        }
    }
    findings
}

/// A server nobody configured is judged as if it were, so what is forbidden there is switched off by
/// name. A name that is no name could match nothing, and must not stop the judge from starting.
fn forbid_unknown(input: &mut PolicyInput, said: &ServerInput) {
    let whole = (!said.enabled || !said.default_enabled).then(|| "*".to_owned());
    let switched = said.tools.iter().filter(|(_, tool)| tool.enabled == Some(false)).map(|(name, _)| name.clone());
    let tools = said.disabled_tools.iter().map(|tool| tool.value.clone()).chain(switched).chain(whole);
    let entries: Vec<serde_json::Value> = tools
        .map(|tool| format!("{}:{tool}", said.name))
        .filter(|entry| Entry::parse_restricting(entry).is_ok())
        .map(serde_json::Value::from)
        .collect();
    if !entries.is_empty() {
        let value = Sourced::new(serde_json::Value::Array(entries), said.origin.clone());
        super::records::merge_switch(&mut input.base.settings, "mcp.tools.disabled", &value);
    }
}

fn narrow_server(target: &mut ServerInput, said: &ServerInput) {
    target.enabled &= said.enabled;
    target.default_enabled &= said.default_enabled;
    target.disabled_tools.extend(said.disabled_tools.iter().cloned());
    for (tool, input) in &said.tools {
        let origin = input.origin.clone().unwrap_or_else(|| said.origin.clone());
        if input.enabled == Some(false) {
            target.disabled_tools.push(Sourced::new(tool.clone(), origin));
        }
        if input.human_review {
            target.tools.entry(tool.clone()).or_default().human_review = true;
        }
    }
}

fn narrow_config(input: &mut PolicyInput, config: &ConfigFile) -> Vec<Finding> {
    let mut findings = narrow_modes(&mut input.base.modes, &config.modes);
    findings.extend(narrow_servers(input, &config.servers));
    for role in &config.roles {
        narrow_role(&mut input.base.roles, role);
    }
    let auto_run = &mut input.base.auto_run;
    auto_run.ask.extend(config.auto_run.ask.iter().cloned());
    auto_run.mcp_protection |= config.auto_run.mcp_protection;
    auto_run.browser_protection |= config.auto_run.browser_protection;
    auto_run.delete_protection |= config.auto_run.delete_protection;
    auto_run.require_mode |= config.auto_run.require_mode;
    for (key, value) in config.settings.iter().filter(|(_, value)| is_readable_switch(&value.value)) {
        super::records::merge_switch(&mut input.base.settings, key, value);
    }
    findings
}

/// What nobody trusted must not stop the judge from starting, so a switch of a wrong type, or of no tool, is left out.
fn is_readable_switch(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Bool(on) => !on,
        serde_json::Value::Array(items) => items.iter().all(|item| item.as_str().is_some_and(names_tools)),
        _ => false,
    }
}

fn names_tools(text: &str) -> bool {
    if text.contains(':') { Entry::parse_restricting(text).is_ok() } else { name::check_written(text).is_ok() }
}

/// A list of its own would replace the shipped one, so it starts from that.
fn narrow_role(known: &mut Vec<RoleInput>, said: &RoleInput) {
    let Some(disallow) = &said.disallow else { return };
    let name = canonical_role(&said.name.value);
    let shipped = || -> Vec<Sourced<String>> {
        let role = shipped::ROLES.iter().find(|role| role.name == name);
        let texts = role.map(|role| role.disallow).unwrap_or_default();
        texts.iter().map(|text| Sourced::new((*text).to_owned(), said.name.origin.clone())).collect()
    };
    match known.iter_mut().find(|role| canonical_role(&role.name.value) == name) {
        Some(role) => role.disallow.get_or_insert_with(shipped).extend(disallow.iter().cloned()),
        // A role nobody else knows would be a new one; only shipped roles are there without a word.
        None if shipped::ROLES.iter().any(|role| role.name == name) => {
            let mut list = shipped();
            list.extend(disallow.iter().cloned());
            known.push(RoleInput {
                name: Sourced::new(name.to_owned(), said.name.origin.clone()),
                scope: None,
                allow: None,
                disallow: Some(list),
                conditions: Vec::new(),
                explain: None,
            });
        }
        None => {}
    }
}

fn not_counted(origin: &toolwarden_core::Origin, message: String) -> Finding {
    let place = crate::tree::Place { line: origin.line, column: origin.column };
    Finding::at(Severity::Note, "not_counted", origin.source.clone(), place, message)
        .with_help("run `toolwarden trust` on its directory to make it count")
}
