//! The way both changes of an allowlist go: to the person's own file, or to the store.

use toolwarden_core::Records;
use toolwarden_sources::records::{StoredUser, lists_of};
use toolwarden_sources::{Locations, edit::EditError};

use crate::clerk::blocking;
use crate::deciding::{Deciding, Terms};
use crate::{Actor, Clerk, ControlError};

/// What an edit did, what the store holds afterwards, and what keeps it from being in force.
pub(super) struct Edited<T> {
    pub(super) outcome: T,
    pub(super) store: Records,
    pub(super) not_in_force: Option<String>,
}

/// Edits a user's lists. `edit` changes the file itself, or what is stored, which is committed here.
pub(super) async fn edit_lists<T: Send + 'static>(
    clerk: &Clerk,
    (actor, operation, words, narrows): (&Actor, &'static str, &str, bool),
    (locations, user): (Locations, String),
    edit: impl FnOnce(&Locations, (&str, &mut StoredUser)) -> Result<T, EditError> + Send + 'static,
) -> Result<Edited<T>, ControlError> {
    let mut draft = clerk.state()?.change().await?;
    let spot = lists_of(&user);
    let stored = draft.get(&spot).cloned();
    let mut lists = match &stored {
        Some(content) => serde_json::from_value(content.clone())
            .map_err(|error| ControlError::BadInput(format!("the {spot} cannot be read: {error}")))?,
        None => StoredUser::default(),
    };
    clerk.record(actor, operation, words).await?;
    let done = blocking(move || {
        let before = lists.clone();
        let outcome = edit(&locations, (&user, &mut lists))?;
        Ok((outcome, (lists != before).then_some(lists)))
    });
    let (outcome, lists) = match done.await {
        Ok(done) => done,
        Err(error) => {
            clerk.record(actor, operation, &format!("failed: {words}")).await?;
            return Err(error);
        }
    };
    let Some(lists) = lists else {
        let store = draft.before().clone();
        draft.abandon().await?;
        // A file may have changed.
        return Ok(Edited { outcome, store, not_in_force: clerk.changes().announce(clerk.author(actor)).await });
    };
    let content = serde_json::to_value(&lists).map_err(|error| ControlError::BadInput(error.to_string()))?;
    draft.put(spot.clone(), content);
    let store = draft.after();
    let deciding = Deciding { actor, operation, terms: &Terms::default(), about: None, is_recorded: true, narrows };
    let settled = match clerk.before(draft.before().clone(), narrows).await {
        Ok(before) => clerk.settle(&deciding, draft, &before, words).await,
        Err(error) => Err(error),
    };
    match settled {
        Ok(done) => Ok(Edited { outcome, store, not_in_force: done.not_in_force }),
        Err(error) => {
            clerk.record(actor, operation, &format!("failed: {words}")).await?;
            Err(error)
        }
    }
}
