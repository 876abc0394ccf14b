//! System settings, and where each comes from; with the auto-run mode and protections of a user among them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwarden_core::records::{Kind as Sort, Place as Spot};
use toolwarden_core::{Origin, Sourced};
use toolwarden_policy::AUTO_REVIEW;
use toolwarden_policy::input::AutoRunInput;
use toolwarden_sources::records::{label, lists_of};

use crate::clerk::blocking;
use crate::place;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The key of a user's own auto-run mode (ALLOW-6).
pub const AUTO_RUN_MODE: &str = "auto_run.mode";

/// What the keys of a user's own protections begin with (ALLOW-8).
pub const PROTECTIONS: &str = "auto_run.protections.";

/// The protections there are.
pub const PROTECTION_NAMES: [&str; 3] = ["mcp", "browser", "delete"];

/// The operation.
#[derive(Debug)]
pub struct SettingsGet;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Only this one.
    pub key: Option<String>,
    /// Whose auto-run mode; none = of who asks.
    pub user: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub settings: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub key: String,
    pub value: Value,
    /// Where it is set; `default` where nobody did.
    pub source: String,
    /// The version of its record, for `if_version`; 0 where it is in no record.
    pub version: u64,
}

impl Operation for SettingsGet {
    const PATH: &'static str = "/api/v1/settings";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Policy;
    const FOR: Role = Role::Viewer;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let user = request.user.unwrap_or_else(|| clerk.whom(actor));
        actor.must_be(&user, "auto-run modes of others")?;
        let (locations, store, actor) = (clerk.parts.locations.clone(), clerk.records().await?, actor.clone());
        blocking(move || {
            let opened = place::open(&locations, &[], &store)?;
            let version_of = |spot: &Spot| store.get(spot).map_or(0, |record| record.version);
            let row = |(key, value): (&String, &Sourced<Value>)| Row {
                key: key.clone(),
                value: value.value.clone(),
                source: value.origin.to_string(),
                version: version_of(&spot_of(key)),
            };
            let base = &opened.loaded.input.base;
            let hidden = opened.loaded.input.servers.iter().filter(|server| !actor.sees(server.owner.as_deref()));
            let hidden: Vec<String> = hidden.map(|server| format!("mcp.tool.{}:", server.name)).collect();
            let shown = |(key, _): &(&String, _)| !hidden.iter().any(|start| key.starts_with(start.as_str()));
            let mut settings: Vec<Row> = base.settings.iter().filter(shown).map(row).collect();
            let stored = opened.loaded.input.users.get(&user).and_then(|user| user.auto_run_mode);
            let spot = lists_of(&user);
            settings.push(Row {
                key: AUTO_RUN_MODE.to_owned(),
                value: stored.unwrap_or(base.auto_run.mode).as_str().into(),
                source: if stored.is_some() { label(&spot) } else { of_config(&opened, base.auto_run.mode_is_chosen) },
                version: version_of(&spot),
            });
            let own = opened.loaded.input.users.get(&user).map(|user| user.protections).unwrap_or_default();
            let config = &base.auto_run;
            let shipped = AutoRunInput::default();
            for (name, own, config, shipped) in [
                ("mcp", own.mcp, config.mcp_protection, shipped.mcp_protection),
                ("browser", own.browser, config.browser_protection, shipped.browser_protection),
                ("delete", own.delete, config.delete_protection, shipped.delete_protection),
            ] {
                settings.push(Row {
                    key: format!("{PROTECTIONS}{name}"),
                    value: own.unwrap_or(config).into(),
                    source: if own.is_some() { label(&spot) } else { of_config(&opened, config != shipped) },
                    version: version_of(&spot),
                });
            }
            if !base.settings.contains_key(AUTO_REVIEW) {
                let (key, value) = (AUTO_REVIEW.to_owned(), base.auto_run.auto_review.into());
                let source = of_config(&opened, base.auto_run.auto_review);
                settings.push(Row { key, value, source, version: 0 });
            }
            settings.sort_by(|one, other| one.key.cmp(&other.key));
            if let Some(key) = &request.key {
                settings.retain(|row| row.key == *key);
            }
            Ok(Outcome { settings })
        })
        .await
    }
}

/// The record a setting is in: switches of tools are in the tools'.
fn spot_of(key: &str) -> Spot {
    let tool = key.strip_prefix("mcp.tool.").and_then(|key| key.strip_suffix(".enabled"));
    match tool {
        Some(tool) => Spot::of_house(Sort::Tool, tool),
        None => Spot::of_house(Sort::Setting, key),
    }
}

/// What the config says counts for everybody who stored nothing; where it says what would count anyway, that is the default.
fn of_config(opened: &place::Opened, is_set: bool) -> String {
    let path = opened.loaded.config_path.as_ref().filter(|_| is_set);
    path.map_or("default".to_owned(), |path| {
        Origin::record(toolwarden_core::Layer::Config, path.to_string_lossy()).to_string()
    })
}
