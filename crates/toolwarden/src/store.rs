//! Opens the database that state and index are in: a file in the data directory, or what `[store] url` names.

use std::sync::Arc;

use anyhow::Result;
use toolwarden_review::Times;
use toolwarden_sources::{Locations, StoreChoice, WebhookSection, earlier, load_store, make_data_directory};
use toolwarden_store::journal::origin;
use toolwarden_store::state::{Author, Subscription};
use toolwarden_store::{Database, Index, Location, State};

use crate::data_directory;
use crate::environment;
use crate::keys::Keys;
use crate::output::BadInput;
use crate::serving::filled;

/// The file that holds everything where the config names nothing else.
pub const FILE: &str = "toolwarden.sqlite";

/// Where the database is.
///
/// # Errors
/// `[store] url` is no address.
pub fn location(locations: &Locations, choice: &StoreChoice) -> Result<Location> {
    let Some(url) = &choice.section.url else { return Ok(Location::File(locations.data_dir.join(FILE))) };
    let missing = |name| BadInput(format!("[store] url: `{name}` has no value here"));
    let url = filled(url.reveal_to_upstream(), true).map_err(missing)?;
    let location = Location::parse(&url, &choice.directory);
    Ok(location.map_err(|error| BadInput(format!("[store] url: {error}")))?)
}

/// Opens the database, and the index in it over the journals of this data directory.
///
/// # Errors
/// It cannot be used.
pub async fn open(locations: &Locations, choice: &StoreChoice) -> Result<(Database, Index)> {
    if let Some(fault) = data_directory::fault(locations) {
        return Err(fault.into());
    }
    make_data_directory(locations)?;
    let database = Database::open(&location(locations, choice)?).await?;
    let index = Index::over(database.clone());
    // A database that was named may be shared by several data directories.
    let is_own = choice.section.url.is_none();
    let index = if is_own { index } else { index.of_origin(&origin(&locations.data_dir.join("journal"))?) };
    Ok((database, index))
}

/// The state in a database, with what earlier versions kept in files of this data directory.
///
/// # Errors
/// Such files cannot be read, or the database cannot be written.
pub async fn state(
    locations: &Locations,
    choice: &StoreChoice,
    database: &Database,
    keys: &Arc<Keys>,
) -> Result<State> {
    let subscription =
        |webhook: &WebhookSection| Subscription { webhook: webhook.name.clone(), states: webhook.states.clone() };
    let subscriptions = choice.webhooks.iter().map(subscription).collect();
    let state = State::over(database.clone(), keys.ring.clone()).with_roots(keys.clone());
    let state = state.with_subscriptions(subscriptions);
    let earlier = earlier::read(locations)?;
    if !earlier.is_empty() {
        let mut draft = state.change().await?;
        for (place, content) in earlier {
            // What was decided since stays.
            if draft.get(&place).is_none() {
                draft.put(place, content);
            }
        }
        let author = Author { user: locations.user.clone(), door: "cli".to_owned(), time: environment::now() };
        draft.commit(&author, "taken over from files of an earlier version", None).await?;
    }
    earlier::put_away(locations)?;
    Ok(state)
}

/// Whether anything can be stored here yet: a database that was named, a file that is there, or files of an earlier
/// version.
///
/// # Errors
/// The config cannot be used.
pub fn exists(locations: &Locations, choice: &StoreChoice) -> Result<bool> {
    Ok(match location(locations, choice)? {
        Location::File(path) => path.exists() || !earlier::read(locations)?.is_empty(),
        Location::Server(_) => true,
    })
}

/// How long held calls and answers to them count.
pub fn answer_times(choice: &StoreChoice) -> Times {
    let default = Times::default();
    Times {
        held: choice.hold_expires.unwrap_or(default.held),
        approved: choice.approval_expires.unwrap_or(default.approved),
    }
}

/// What the config that counts here says of the store.
///
/// # Errors
/// It cannot be used.
pub fn here(locations: &Locations) -> Result<StoreChoice> {
    load_store(locations).map_err(|refusal| BadInput(refusal.to_string()).into())
}
