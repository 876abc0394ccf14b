//! Sets a system setting, or takes it back. A user's own auto-run mode is set the same way, and is theirs alone.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwarden_core::name::{self, shown};
use toolwarden_core::records::{Kind as Sort, Place as Spot};
use toolwarden_policy::input::AutoRunMode;
use toolwarden_sources::records::{StoredMode, StoredUser, lists_of};

use super::settings_get::AUTO_RUN_MODE;
use crate::deciding::{Done, Terms, short};
use crate::editing::Editing;
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
        actor.must_administer("settings of the whole system")?;
        if user.is_some() {
            return Err(ControlError::BadInput(format!("only `{AUTO_RUN_MODE}` is a user's own; leave the user out")));
        }
        check_key(&key)?;
        let spot = Spot::of_house(Sort::Setting, key);
        let editing = Editing { actor, operation: "settings_set", terms: &terms, spot, words: said, narrows: false };
        clerk.edit_record(editing, |_, _| Ok(value)).await
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
            lists.auto_run_mode = mode.map(StoredMode::from);
            let says_nothing = lists == StoredUser::default();
            let content = serde_json::to_value(lists).map_err(|error| ControlError::BadInput(error.to_string()))?;
            Ok((!says_nothing).then_some(content))
        })
        .await
}
