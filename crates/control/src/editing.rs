//! One record changed: what it is now goes in, what it is to be comes out. The same way for every kind.

use serde_json::{Map, Value};
use toolwarden_core::Origin;
use toolwarden_core::name::shown;
use toolwarden_core::records::Place as Spot;

use crate::deciding::{Deciding, Done, Terms};
use crate::place::Opened;
use crate::{Actor, Clerk, ControlError};

/// Who changes which record, and how it goes into the record of events.
pub(crate) struct Editing<'a> {
    pub(crate) actor: &'a Actor,
    pub(crate) operation: &'static str,
    pub(crate) terms: &'a Terms,
    pub(crate) spot: Spot,
    pub(crate) words: String,
    /// It only takes something back, so it is done although files are broken.
    pub(crate) narrows: bool,
}

impl Clerk {
    /// Changes one record; none = it is taken away.
    pub(crate) async fn edit_record(
        &self,
        editing: Editing<'_>,
        edit: impl FnOnce(Option<&Value>, &Opened) -> Result<Option<Value>, ControlError>,
    ) -> Result<Done, ControlError> {
        let Editing { actor, operation, terms, spot, words, narrows } = editing;
        let deciding = Deciding { actor, operation, terms, about: Some(&spot), is_recorded: false, narrows };
        self.decide(&deciding, |draft, before| {
            match edit(draft.get(&spot), before)? {
                Some(content) => draft.put(spot.clone(), content),
                None => draft.remove(spot.clone()),
            }
            Ok(words)
        })
        .await
    }
}

/// A change that would have no effect is not made: somebody would rely on it.
pub(crate) fn refuse_shadowed(what: &str, first: &Origin) -> Result<(), ControlError> {
    Err(ControlError::BadInput(format!(
        "{what} is defined at {}, which comes first: change it there",
        shown(&first.to_string())
    )))
}

pub(crate) fn not_there(what: String, help: &str) -> ControlError {
    ControlError::NotFound { message: what, help: help.to_owned() }
}

/// A record as a table; anything else was not written by us.
pub(crate) fn table(content: Option<&Value>) -> Map<String, Value> {
    content.and_then(Value::as_object).cloned().unwrap_or_default()
}
