//! The way both changes of an allowlist go: to the person's own file, or to the store.

use toolwarden_core::Records;
use toolwarden_sources::Locations;
use toolwarden_sources::edit::{EditError, Write};
use toolwarden_sources::records::{StoredUser, lists_of};

use crate::clerk::blocking;
use crate::deciding::{Deciding, Terms};
use crate::{Actor, Clerk, ControlError};

/// What an edit did, what the store holds afterwards, and what keeps it from being in force.
pub(super) struct Edited<T> {
    pub(super) outcome: T,
    pub(super) store: Records,
    pub(super) not_in_force: Option<String>,
}

/// Edits a user's lists. `edit` changes the file itself, or what is stored, which is committed here; it says whether it
/// changes a file. It is tried first, and what changes nothing is not recorded as done.
pub(super) async fn edit_lists<T: Send + 'static>(
    clerk: &Clerk,
    (actor, operation, words, narrows): (&Actor, &'static str, &str, bool),
    (locations, user): (Locations, String),
    edit: impl Fn(&Locations, (&str, &mut StoredUser), Write) -> Result<(T, bool), EditError> + Send + 'static,
) -> Result<Edited<T>, ControlError> {
    let mut draft = clerk.state()?.change().await?;
    let spot = lists_of(&user);
    let stored = draft.get(&spot).cloned();
    let lists: StoredUser = match &stored {
        Some(content) => serde_json::from_value(content.clone())
            .map_err(|error| ControlError::BadInput(format!("the {spot} cannot be read: {error}")))?,
        None => StoredUser::default(),
    };
    let run = move |write: Write| {
        let mut after = lists.clone();
        let (outcome, in_file) = edit(&locations, (&user, &mut after), write)?;
        Ok((outcome, in_file, (after != lists).then_some(after)))
    };
    let tried = blocking(move || run(Write::No).map(|(outcome, in_file, lists)| (outcome, in_file, lists, run))).await;
    let (mut outcome, in_file, mut lists, run) = clerk.tried(actor, operation, words, tried).await?;
    if !in_file && lists.is_none() {
        let store = draft.before().clone();
        draft.abandon().await?;
        clerk.nothing_changed(actor, operation, words).await?;
        // Another hand may have changed a file, and whoever asks wants it to count.
        return Ok(Edited { outcome, store, not_in_force: clerk.changes().announce(clerk.author(actor)).await });
    }
    if in_file {
        clerk.record(actor, operation, words).await?;
        (outcome, _, lists) = match blocking(move || run(Write::Yes)).await {
            Ok(done) => done,
            Err(error) => {
                clerk.record(actor, operation, &format!("failed: {words}")).await?;
                return Err(error);
            }
        };
    }
    let Some(lists) = lists else {
        let store = draft.before().clone();
        draft.abandon().await?;
        // A file has changed.
        return Ok(Edited { outcome, store, not_in_force: clerk.changes().announce(clerk.author(actor)).await });
    };
    let content = serde_json::to_value(&lists).map_err(|error| ControlError::BadInput(error.to_string()))?;
    draft.put(spot.clone(), content);
    let store = draft.after();
    let terms = Terms::default();
    let deciding = Deciding { actor, operation, terms: &terms, about: None, is_recorded: in_file, narrows };
    let settled = match clerk.before(draft.before().clone(), narrows).await {
        Ok(before) => clerk.settle(&deciding, draft, &before, words).await,
        Err(error) => Err(error),
    };
    match settled {
        Ok(done) => Ok(Edited { outcome, store, not_in_force: done.not_in_force }),
        Err(error) => {
            if in_file {
                clerk.record(actor, operation, &format!("failed: {words}")).await?;
            }
            Err(error)
        }
    }
}
