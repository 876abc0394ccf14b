//! Opens the database that state and index are in: a file in the data directory, or what `[store] url` names.

use anyhow::Result;
use toolwarden_sources::{Locations, StoreChoice, load_store, make_data_directory};
use toolwarden_store::journal::origin;
use toolwarden_store::{Database, Index, Location};

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
    make_data_directory(locations)?;
    let database = Database::open(&location(locations, choice)?).await?;
    let index = Index::over(database.clone());
    // A database that was named may be shared by several data directories.
    let is_own = choice.section.url.is_none();
    let index = if is_own { index } else { index.of_origin(&origin(&locations.data_dir.join("journal"))?) };
    Ok((database, index))
}

/// What the config that counts here says of the store.
///
/// # Errors
/// It cannot be used.
pub fn here(locations: &Locations) -> Result<StoreChoice> {
    load_store(locations).map_err(|refusal| BadInput(refusal.to_string()).into())
}
