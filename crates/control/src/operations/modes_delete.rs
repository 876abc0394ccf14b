//! Takes a stored mode away. A built-in one of the same name counts again.

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;
use toolwarden_core::records::{Kind as Sort, Place as Spot};

use super::modes_set::of_file;
use crate::deciding::{Done, Terms};
use crate::editing::{Editing, not_there, refuse_shadowed};
use crate::naming::or_nearest;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct ModesDelete;

/// A record by its name; the same for roles and rules.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub name: String,
    pub terms: Terms,
}

impl Operation for ModesDelete {
    const PATH: &'static str = "/api/v1/modes/delete";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Done;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Done, ControlError> {
        let Request { name, terms } = request;
        let spot = Spot::of_house(Sort::Mode, name.as_str());
        let words = format!("delete the mode `{}`", shown(&name));
        let editing = Editing { actor, operation: "modes_delete", terms: &terms, spot, words, narrows: false };
        clerk
            .edit_record(editing, |content, before| {
                if content.is_none() {
                    if let Some(first) = of_file(before, &name) {
                        refuse_shadowed(&format!("the mode `{}`", shown(&name)), &first)?;
                    }
                    let message = format!("no mode `{}` is stored", shown(&name));
                    let modes = before.policy.base().modes.sorted();
                    let slugs = modes.iter().map(|mode| mode.slug.as_str());
                    return Err(not_there(message, &or_nearest(&name, slugs, "see `toolwarden modes list`")));
                }
                Ok(None)
            })
            .await
    }
}
