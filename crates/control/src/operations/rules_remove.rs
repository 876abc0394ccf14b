//! Takes stored rules away.

use toolwarden_core::name::shown;
use toolwarden_core::records::{Kind as Sort, Place as Spot};

use super::modes_delete::Request;
use crate::deciding::Done;
use crate::editing::{Editing, not_there};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct RulesRemove;

impl Operation for RulesRemove {
    const PATH: &'static str = "/api/v1/rules/remove";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Done;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Done, ControlError> {
        let Request { name, terms } = request;
        let spot = Spot::of_house(Sort::Rule, name.as_str());
        let words = format!("remove the rules `{}`", shown(&name));
        let editing = Editing { actor, operation: "rules_remove", terms: &terms, spot, words, narrows: false };
        clerk
            .edit_record(editing, |content, _| match content {
                Some(_) => Ok(None),
                None => {
                    let message = format!("no rules are stored as `{}`", shown(&name));
                    Err(not_there(message, "see `toolwarden rules list`; those of files are changed there"))
                }
            })
            .await
    }
}
