//! Makes a role, or changes what a stored or shipped one may call (GATE-5); or takes that back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolwarden_core::Layer;
use toolwarden_core::name::shown;
use toolwarden_core::records::{Kind as Sort, Place as Spot};
use toolwarden_policy::roles::canonical;
use toolwarden_policy::shipped;

use crate::deciding::{Done, Terms};
use crate::editing::{Editing, not_there, refuse_shadowed, table};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct RolesSet;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub name: String,
    /// All of it, with the keys of `[roles.NAME]`; what is given below is laid over it.
    pub definition: Option<Value>,
    /// `pm` or `sandbox`.
    pub scope: Option<String>,
    pub allow: Vec<String>,
    pub disallow: Vec<String>,
    /// Patterns that are in neither list any more.
    pub drop: Vec<String>,
    pub explain: Option<bool>,
    /// Forget everything that is stored of it: a shipped role is as shipped again.
    pub reset: bool,
    pub terms: Terms,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub name: String,
    /// As it is stored; none where nothing is any more.
    pub definition: Option<Value>,
    pub done: Done,
}

impl Operation for RolesSet {
    const PATH: &'static str = "/api/v1/roles/set";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let name = canonical(&request.name).to_owned();
        let spot = Spot::of_house(Sort::Role, name.as_str());
        let verb = if request.reset { "reset" } else { "set" };
        let words = format!("{verb} the role `{}`", shown(&name));
        let terms = request.terms.clone();
        let editing = Editing { actor, operation: "roles_set", terms: &terms, spot, words, narrows: false };
        let mut definition = None;
        let done = clerk
            .edit_record(editing, |content, before| {
                let roles = &before.loaded.input.base.roles;
                let of_file = |layer| layer != Layer::Settings;
                let written = roles.iter().find(|role| canonical(&role.name.value) == name);
                if let Some(role) = written.filter(|role| of_file(role.name.origin.layer)) {
                    refuse_shadowed(&format!("the role `{}`", shown(&name)), &role.name.origin)?;
                }
                if request.reset {
                    if content.is_none() {
                        let message = format!("nothing is stored of a role `{}`", shown(&name));
                        return Err(not_there(message, "see `toolwarden roles list`"));
                    }
                    return Ok(None);
                }
                definition = Some(Value::Object(request.applied(&name, content)?));
                Ok(definition.clone())
            })
            .await?;
        Ok(Outcome { name, definition, done })
    }
}

impl Request {
    fn applied(&self, name: &str, content: Option<&Value>) -> Result<Map<String, Value>, ControlError> {
        let mut role = match &self.definition {
            None => table(content),
            Some(Value::Object(whole)) => whole.clone(),
            Some(_) => return Err(ControlError::BadInput("the definition of a role is a table".to_owned())),
        };
        let shipped = shipped::ROLES.iter().find(|role| role.name == name);
        let lists = [
            ("allow", &self.allow, &self.disallow, shipped.map(|role| role.allow)),
            ("disallow", &self.disallow, &self.allow, shipped.map(|role| role.disallow)),
        ];
        for (key, add, other, otherwise) in lists {
            if add.is_empty() && other.is_empty() && self.drop.is_empty() {
                continue;
            }
            // A list of its own replaces the shipped one, so it starts from that.
            let start = || otherwise.unwrap_or_default().iter().map(|text| Value::from(*text)).collect();
            let list = role.entry(key).or_insert_with(|| Value::Array(start()));
            let Value::Array(list) = list else { continue };
            let goes = |text: &str| self.drop.iter().chain(other).any(|one| one == text);
            list.retain(|entry| !entry.as_str().is_some_and(goes));
            for text in add {
                if !list.iter().any(|entry| entry.as_str() == Some(text)) {
                    list.push(text.as_str().into());
                }
            }
        }
        if let Some(scope) = &self.scope {
            role.insert("scope".to_owned(), scope.as_str().into());
        }
        if let Some(explain) = self.explain {
            role.insert("explain".to_owned(), explain.into());
        }
        Ok(role)
    }
}
