//! The roles of agents: what each may call, and where that is written (GATE-5).

use serde::{Deserialize, Serialize};
use toolwarden_core::Sourced;
use toolwarden_core::name::shown;
use toolwarden_core::records::{Kind as Sort, Place as Spot};
use toolwarden_policy::input::RoleInput;
use toolwarden_policy::roles::canonical;
use toolwarden_policy::shipped;

use crate::clerk::blocking;
use crate::editing::not_there;
use crate::naming::or_nearest;
use crate::place::{self, Opened};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct RolesList;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Only this one.
    pub name: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub roles: Vec<View>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct View {
    pub name: String,
    pub scope: Option<String>,
    pub allow: Vec<String>,
    pub disallow: Vec<String>,
    /// Tool pattern and what its arguments must be.
    pub conditions: Vec<String>,
    pub explain: bool,
    /// Where it is written; `shipped` where nobody changed it.
    pub source: String,
    /// The version of its record, for `if_version`; 0 where it is in no record.
    pub version: u64,
}

impl Operation for RolesList {
    const PATH: &'static str = "/api/v1/roles";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Policy;
    const FOR: Role = Role::Viewer;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let (locations, store) = (clerk.parts.locations.clone(), clerk.records().await?);
        blocking(move || {
            let opened = place::open(&locations, &[], &store)?;
            let mut names: Vec<&str> = shipped::ROLES.iter().map(|role| role.name).collect();
            let written = opened.loaded.input.base.roles.iter().map(|role| canonical(&role.name.value));
            names.extend(written);
            names.sort_unstable();
            names.dedup();
            let version = |name: &str| store.get(&Spot::of_house(Sort::Role, name)).map_or(0, |record| record.version);
            let mut roles: Vec<View> = names.iter().copied().map(|name| view(&opened, name, version(name))).collect();
            if let Some(name) = &request.name {
                roles.retain(|role| role.name == canonical(name));
                if roles.is_empty() {
                    let message = format!("no role is called `{}`", shown(name));
                    return Err(not_there(message, &or_nearest(name, names, "see `toolwarden roles list`")));
                }
            }
            Ok(Outcome { roles })
        })
        .await
    }
}

/// What is written of a role lies over what is shipped, key by key.
fn view(opened: &Opened, name: &str, version: u64) -> View {
    let shipped = shipped::ROLES.iter().find(|role| role.name == name);
    let written = opened.loaded.input.base.roles.iter().find(|role| canonical(&role.name.value) == name);
    let texts = |list: &Option<Vec<Sourced<String>>>, otherwise: Option<&[&str]>| match list {
        Some(list) => list.iter().map(|entry| entry.value.clone()).collect(),
        None => otherwise.unwrap_or_default().iter().map(|text| (*text).to_owned()).collect(),
    };
    let none = None;
    let scope = opened.policy.base().roles.get(name).map(|role| role.side.as_str().to_owned());
    View {
        name: name.to_owned(),
        scope,
        allow: texts(written.map_or(&none, |role| &role.allow), shipped.map(|role| role.allow)),
        disallow: texts(written.map_or(&none, |role| &role.disallow), shipped.map(|role| role.disallow)),
        conditions: written.map(conditions).unwrap_or_default(),
        explain: written.and_then(|role| role.explain).unwrap_or(false),
        source: written.map_or("shipped".to_owned(), |role| role.name.origin.to_string()),
        version,
    }
}

fn conditions(role: &RoleInput) -> Vec<String> {
    let words = |condition: &toolwarden_policy::input::ArgumentCondition| {
        let arguments: Vec<String> =
            condition.arguments.iter().map(|(name, texts)| format!("{name} = {}", texts.join(" or "))).collect();
        format!("{}: {}", condition.tool.value, arguments.join(", "))
    };
    role.conditions.iter().map(words).collect()
}
