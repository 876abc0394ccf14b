//! What is kept in the store, as the judge needs it: where each thing stands, and what a record must look like.
//!
//! A mode, role or server is written as in the config, so that one reader serves both. Who writes a record has it
//! checked here first; one that cannot be read stops loading, since what it forbids would be lost.

use serde::{Deserialize, Serialize};
use toolwarden_core::records::{Kind, Place};
use toolwarden_core::{Layer, Origin, Records, Sourced, ToolIdentity};
use toolwarden_policy::input::{AutoRunMode, ModeInput, OwnProtections, Scope, ServerInput, UserInput};

use crate::finding::Finding;
use crate::readers::record;
use crate::report::Reading;

/// The name of the one record that holds the admin's controls.
const CONTROLS: &str = "controls";
/// The name of a user's record.
const LISTS: &str = "lists";

/// Where a user's auto-run mode, lists and blocks stand.
#[must_use]
pub fn lists_of(user: &str) -> Place {
    Place::of_user(Kind::User, user, LISTS)
}

/// Where the admin's controls stand.
#[must_use]
pub fn admin_controls() -> Place {
    Place::of_house(Kind::Admin, CONTROLS)
}

/// How findings and rules name a record.
#[must_use]
pub fn label(place: &Place) -> String {
    match place.kind {
        Kind::User => format!("stored lists of {}", toolwarden_core::name::shown(&place.owner)),
        Kind::Admin => "stored admin controls".to_owned(),
        _ => format!("stored {place}"),
    }
}

/// One user's stored state.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoredUser {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_run_mode: Option<StoredMode>,
    #[serde(skip_serializing_if = "StoredProtections::says_nothing")]
    pub protections: StoredProtections,
    pub mcp_allowlist: Vec<String>,
    pub terminal_allowlist: Vec<String>,
    /// "Deny always" answers.
    pub blocks: Vec<String>,
}

/// What always asks this user; none = as the config has it (ALLOW-8).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoredProtections {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<bool>,
}

impl StoredProtections {
    #[must_use]
    pub fn says_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The protection of this name; none where there is no such.
    pub fn named(&mut self, name: &str) -> Option<&mut Option<bool>> {
        match name {
            "mcp" => Some(&mut self.mcp),
            "browser" => Some(&mut self.browser),
            "delete" => Some(&mut self.delete),
            _ => None,
        }
    }
}

/// An auto-run mode by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredMode {
    AskEveryTime,
    UseAllowlist,
    RunEverything,
}

impl From<StoredMode> for AutoRunMode {
    fn from(mode: StoredMode) -> Self {
        match mode {
            StoredMode::AskEveryTime => Self::AskEveryTime,
            StoredMode::UseAllowlist => Self::UseAllowlist,
            StoredMode::RunEverything => Self::RunEverything,
        }
    }
}

impl From<AutoRunMode> for StoredMode {
    fn from(mode: AutoRunMode) -> Self {
        match mode {
            AutoRunMode::AskEveryTime => Self::AskEveryTime,
            AutoRunMode::UseAllowlist => Self::UseAllowlist,
            AutoRunMode::RunEverything => Self::RunEverything,
        }
    }
}

impl StoredUser {
    pub(crate) fn to_input(&self, source: &str) -> UserInput {
        let origin = Origin::record(Layer::Settings, source);
        let sourced = |texts: &[String]| texts.iter().map(|text| Sourced::new(text.clone(), origin.clone())).collect();
        UserInput {
            auto_run_mode: self.auto_run_mode.map(AutoRunMode::from),
            protections: OwnProtections {
                mcp: self.protections.mcp,
                browser: self.protections.browser,
                delete: self.protections.delete,
            },
            mcp_allowlist: sourced(&self.mcp_allowlist),
            terminal_allowlist: sourced(&self.terminal_allowlist),
            blocks: sourced(&self.blocks),
        }
    }
}

/// Switch and scope of one tool, `SERVER:TOOL`; or the switch of a bare name on every server.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoredTool {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

impl StoredTool {
    #[must_use]
    pub fn says_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Rules in Cedar.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredRules {
    pub text: String,
}

/// A mode with the keys of `[modes.SLUG]`.
#[must_use]
pub fn mode_content(mode: &ModeInput) -> serde_json::Value {
    let mut content = serde_json::Map::new();
    let texts = |list: &[Sourced<String>]| -> Vec<String> { list.iter().map(|text| text.value.clone()).collect() };
    let tools =
        |list: &[Sourced<ToolIdentity>]| -> Vec<String> { list.iter().map(|tool| tool.value.to_string()).collect() };
    let mut put = |key: &str, value: serde_json::Value| content.insert(key.to_owned(), value);
    put("name", mode.name.as_str().into());
    if let Some(parent) = &mode.extends {
        put("extends", parent.value.as_str().into());
    }
    if let Some(groups) = &mode.groups {
        put("groups", groups.clone().into());
    }
    if let Some(allowed) = &mode.allowed_servers {
        put("allowed_servers", texts(allowed).into());
    }
    if !mode.disallowed_servers.is_empty() {
        put("disallowed_servers", texts(&mode.disallowed_servers).into());
    }
    if let Some(allowed) = &mode.allowed_tools {
        put("allowed_tools", tools(allowed).into());
    }
    if !mode.disallowed_tools.is_empty() {
        put("disallowed_tools", tools(&mode.disallowed_tools).into());
    }
    if let Some(window) = &mode.window {
        put("days", window.days.clone().into());
        put("hours", window.hours.clone().into());
        put("time_zone", window.time_zone.as_str().into());
    }
    if !mode.conditions.is_empty() {
        put("conditions", serde_json::to_value(&mode.conditions).unwrap_or_default());
    }
    if let Some(review) = mode.auto_review {
        put("auto_review", review.into());
    }
    serde_json::Value::Object(content)
}

/// Whether a server's record only switches off what is defined elsewhere.
#[must_use]
pub fn is_switch_only(content: &serde_json::Value) -> bool {
    ["command", "url"].iter().all(|key| content.get(key).is_none())
}

/// Lays over a server what the store says of it: scopes of its tools, and that it is off.
pub fn lay_over(store: &Records, server: &mut ServerInput) {
    for (place, kept) in store.of(Kind::Tool) {
        let Some((_, tool)) = place.name.split_once(':').filter(|(of, _)| *of == server.name) else { continue };
        let said = record::tool(place, &kept.content).value;
        if let Some(scope) = said.scope.as_deref().and_then(Scope::parse) {
            let input = server.tools.entry(tool.to_owned()).or_default();
            input.scope = Some(scope);
            input.origin.get_or_insert_with(|| Origin::record(Layer::Settings, label(place)));
        }
    }
    let switch = store.get(&Place::of_house(Kind::Server, server.name.as_str()));
    if switch.is_some_and(|switch| switch.content.get("enabled").is_some_and(|on| *on != serde_json::Value::Bool(true)))
    {
        server.enabled = false;
    }
}

/// The name by which a stored server is known: a user's own begins with theirs.
#[must_use]
pub fn server_name(place: &Place) -> String {
    if place.owner.is_empty() { place.name.clone() } else { format!("{}.{}", place.owner, place.name) }
}

/// What is wrong with a record, read by itself.
#[must_use]
pub fn check(place: &Place, content: &serde_json::Value) -> Vec<Finding> {
    fn findings<T>(reading: Reading<T>) -> Vec<Finding> {
        reading.findings
    }
    match place.kind {
        Kind::Setting | Kind::File => Vec::new(),
        Kind::User => findings(record::plain::<StoredUser>(place, content)),
        Kind::Mode => findings(record::mode(place, content)),
        Kind::Role => findings(record::role(place, content)),
        Kind::Rule => findings(record::plain::<StoredRules>(place, content)),
        Kind::Server if is_switch_only(content) => findings(record::switch(place, content)),
        Kind::Server => findings(record::server(place, content)),
        Kind::Tool => findings(record::tool(place, content)),
        Kind::Admin => findings(record::admin(place, content)),
    }
}
