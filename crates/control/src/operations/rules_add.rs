//! Adds Cedar rules to the store under a name, or replaces those of that name (GATE-10).

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolwarden_core::name::{self, shown};
use toolwarden_core::records::{Kind as Sort, Place as Spot};

use crate::deciding::{Done, Terms};
use crate::editing::Editing;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct RulesAdd;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub name: String,
    /// In Cedar.
    pub text: String,
    pub terms: Terms,
}

impl Operation for RulesAdd {
    const PATH: &'static str = "/api/v1/rules/add";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Done;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Done, ControlError> {
        let Request { name, text, terms } = request;
        if let Err(fault) = name::check(&name) {
            return Err(ControlError::BadInput(format!("`{}` is no name for rules: {fault}", shown(&name))));
        }
        if text.trim().is_empty() {
            return Err(ControlError::BadInput("there are no rules in it".to_owned()));
        }
        let words = format!("store the rules `{}`", shown(&name));
        let spot = Spot::of_house(Sort::Rule, name);
        let editing = Editing { actor, operation: "rules_add", terms: &terms, spot, words, narrows: false };
        clerk.edit_record(editing, |_, _| Ok(Some(json!({ "text": text })))).await
    }
}
