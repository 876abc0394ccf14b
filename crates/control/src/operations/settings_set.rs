//! Sets a system setting, or takes it back. A user's own auto-run mode and protections are set the same way, and are
//! theirs alone. A key that nothing reads is refused, with the nearest that something does.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwarden_core::name::{self, shown};
use toolwarden_core::records::{Kind as Sort, Place as Spot};
use toolwarden_policy::input::AutoRunMode;
use toolwarden_policy::{AUTO_REVIEW, shipped};
use toolwarden_sources::readers::known::Section;
use toolwarden_sources::records::{StoredMode, StoredUser, lists_of};
use toolwarden_sources::{misspelt, nearest};

use super::settings_get::{AUTO_RUN_MODE, PROTECTION_NAMES, PROTECTIONS};
use crate::clerk::blocking;
use crate::deciding::{Done, Terms, short};
use crate::editing::Editing;
use crate::place;
use crate::remark::Remark;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct SettingsSet;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub key: String,
    /// None = as if it had never been set.
    pub value: Option<Value>,
    /// Whose auto-run mode; none = of who asks.
    pub user: Option<String>,
    pub terms: Terms,
}

impl Operation for SettingsSet {
    const PATH: &'static str = "/api/v1/settings/set";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::User;
    type Request = Request;
    type Outcome = Done;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Done, ControlError> {
        let Request { key, value, user, terms } = request;
        let said = match &value {
            Some(value) => format!("set `{}` to {}", shown(&key), short(&value.to_string())),
            None => format!("take back the setting `{}`", shown(&key)),
        };
        if key == AUTO_RUN_MODE {
            let user = user.unwrap_or_else(|| clerk.whom(actor));
            actor.must_be(&user, "the auto-run mode of others")?;
            return set_mode(clerk, actor, &user, value, (said, terms)).await;
        }
        if let Some(name) = key.strip_prefix(PROTECTIONS).filter(|name| PROTECTION_NAMES.contains(name)) {
            let user = user.unwrap_or_else(|| clerk.whom(actor));
            actor.must_be(&user, "protections of others")?;
            let on = match &value {
                None => None,
                Some(Value::Bool(on)) => Some(*on),
                Some(_) => return Err(ControlError::BadInput(format!("`{key}` is true or false"))),
            };
            let edit = |lists: &mut StoredUser| {
                if let Some(protection) = lists.protections.named(name) {
                    *protection = on;
                }
            };
            return edit_user(clerk, actor, &user, (said, terms), edit).await;
        }
        actor.must_administer("settings of the whole system")?;
        if user.is_some() {
            let message = format!("only `{AUTO_RUN_MODE}` and protections are a user's own; leave the user out");
            return Err(ControlError::BadInput(message));
        }
        check_key(&key)?;
        let remark = if value.is_some() { check_known(clerk, &key, value.as_ref()).await? } else { None };
        let spot = Spot::of_house(Sort::Setting, key);
        let editing = Editing { actor, operation: "settings_set", terms: &terms, spot, words: said, narrows: false };
        let mut done = clerk.edit_record(editing, |_, _| Ok(value)).await?;
        done.findings.extend(remark);
        Ok(done)
    }
}

/// Dotted names, as people write them.
fn check_key(key: &str) -> Result<(), ControlError> {
    let is_plain = |part: &str| !part.trim().is_empty() && !part.chars().any(name::is_deceptive);
    if key.len() > 256 || !key.split('.').all(is_plain) {
        return Err(ControlError::BadInput(format!("`{}` is no name of a setting", shown(key))));
    }
    Ok(())
}

/// Settings that switch tools, besides those that tools ask for.
const SWITCHES: &str = "mcp.tools.disabled";

/// What auto-review waits for, where the config has none.
async fn without_classifier(clerk: &Clerk) -> Result<Option<Remark>, ControlError> {
    let (locations, store) = (clerk.parts.locations.clone(), clerk.records().await?);
    let opened = blocking(move || place::open(&locations, &[], &store)).await?;
    Ok(opened.loaded.config.classifier.is_none().then(|| {
        let message =
            "no classifier is configured, so a person is asked as before; add [classifier] to toolwarden.toml";
        Remark::warning("no_classifier", AUTO_REVIEW, message.to_owned())
    }))
}

/// Refuses a key that nothing would read, and a value that its reader could not. What can be set and does nothing yet (a
/// name of one's own that no tool asks for, a switch that names no tool) is said by what `lint` then finds.
async fn check_known(clerk: &Clerk, key: &str, value: Option<&Value>) -> Result<Option<Remark>, ControlError> {
    let tool = key.strip_prefix("mcp.tool.").and_then(|rest| rest.strip_suffix(".enabled"));
    if tool.is_some_and(|tool| !tool.is_empty()) {
        return if matches!(value, Some(Value::Bool(_))) { Ok(None) } else { Err(wants(key, "true or false")) };
    }
    match (key, value) {
        (AUTO_REVIEW, Some(Value::Bool(true))) => return without_classifier(clerk).await,
        (AUTO_REVIEW, Some(Value::Bool(false))) => return Ok(None),
        (AUTO_REVIEW, _) => return Err(wants(key, "true or false")),
        (SWITCHES, Some(Value::Array(names))) if names.iter().all(Value::is_string) => return Ok(None),
        (SWITCHES, _) => return Err(wants(key, "a list of names, such as [\"server:tool\"]")),
        _ => {}
    }
    let (locations, store) = (clerk.parts.locations.clone(), clerk.records().await?);
    let (key, mut known) = (key.to_owned(), known_keys());
    blocking(move || {
        let opened = place::open(&locations, &[], &store)?;
        let tools = opened.loaded.input.servers.iter().flat_map(|server| server.tools.values());
        known.extend(tools.filter_map(|tool| tool.requires_setting.clone()));
        known.extend(shipped::ROLES.iter().flat_map(|role| role.settings).map(|(_, setting)| (*setting).to_owned()));
        if known.contains(&key) {
            return Ok(None);
        }
        let all: Vec<&str> = known.iter().map(String::as_str).collect();
        let first = key.split('.').next().unwrap_or_default();
        let is_ours = Section::Config.names().contains(&first) || first == "mcp";
        let hint = match misspelt(&key, &all).or_else(|| nearest(&key, &all).filter(|_| is_ours)) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None if is_ours => "`toolwarden settings get` lists those there are".to_owned(),
            // A name of one's own: a tool may ask for it later, with `requires_setting`.
            None => return Ok(None),
        };
        Err(ControlError::BadInput(format!("nothing reads the setting `{}`; {hint}", shown(&key))))
    })
    .await
}

fn wants(key: &str, what: &str) -> ControlError {
    ControlError::BadInput(format!("`{}` is {what}", shown(key)))
}

fn known_keys() -> Vec<String> {
    let own = [AUTO_RUN_MODE, AUTO_REVIEW, SWITCHES].map(str::to_owned);
    own.into_iter().chain(PROTECTION_NAMES.map(|name| format!("{PROTECTIONS}{name}"))).collect()
}

async fn set_mode(
    clerk: &Clerk,
    actor: &Actor,
    user: &str,
    value: Option<Value>,
    (said, terms): (String, Terms),
) -> Result<Done, ControlError> {
    let mode = match &value {
        None => None,
        Some(value) => Some(value.as_str().and_then(AutoRunMode::parse).ok_or_else(|| {
            let known = "ask_every_time, use_allowlist, run_everything";
            ControlError::BadInput(format!("`{AUTO_RUN_MODE}` is one of {known}"))
        })?),
    };
    edit_user(clerk, actor, user, (said, terms), |lists| lists.auto_run_mode = mode.map(StoredMode::from)).await
}

/// Changes what is stored for a user.
async fn edit_user(
    clerk: &Clerk,
    actor: &Actor,
    user: &str,
    (said, terms): (String, Terms),
    edit: impl FnOnce(&mut StoredUser),
) -> Result<Done, ControlError> {
    let words = format!("{said} for {}", shown(user));
    let spot = lists_of(user);
    let editing = Editing { actor, operation: "settings_set", terms: &terms, spot, words, narrows: false };
    clerk
        .edit_record(editing, |content, _| {
            let mut lists: StoredUser = match content {
                Some(content) => serde_json::from_value(content.clone())
                    .map_err(|error| ControlError::BadInput(error.to_string()))?,
                None => StoredUser::default(),
            };
            edit(&mut lists);
            let says_nothing = lists == StoredUser::default();
            let content = serde_json::to_value(lists).map_err(|error| ControlError::BadInput(error.to_string()))?;
            Ok((!says_nothing).then_some(content))
        })
        .await
}
