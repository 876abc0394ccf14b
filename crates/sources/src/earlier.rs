//! Files of the data directory in which earlier versions kept what is in the store now: taken over once.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toolwarden_core::records::{Kind, Place};

use crate::files::{self, FileError};
use crate::locations::Locations;
use crate::records::{StoredUser, lists_of};
use crate::stored::{StoredError, read_at};

const LISTS: &str = "lists.json";
const SETTINGS: &str = "settings.json";
/// What such a file is called once its content is in the store.
const TAKEN: &str = "taken-over";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lists {
    #[serde(default)]
    users: BTreeMap<String, StoredUser>,
}

/// What such files hold, as records.
///
/// # Errors
/// One of them cannot be read: what it forbids must not be lost.
pub fn read(locations: &Locations) -> Result<Vec<(Place, serde_json::Value)>, StoredError> {
    let lists: Option<Lists> = read_at(locations, Path::new(LISTS))?;
    let settings: Option<BTreeMap<String, serde_json::Value>> = read_at(locations, Path::new(SETTINGS))?;
    let users = lists.into_iter().flat_map(|lists| lists.users);
    let users = users.filter_map(|(user, lists)| Some((lists_of(&user), serde_json::to_value(lists).ok()?)));
    let settings = settings.into_iter().flatten().map(|(key, value)| (Place::of_house(Kind::Setting, key), value));
    Ok(users.chain(settings).collect())
}

/// Puts them away, once what they hold is stored.
///
/// # Errors
/// They cannot be renamed.
pub fn put_away(locations: &Locations) -> Result<(), StoredError> {
    for name in [LISTS, SETTINGS] {
        let path = locations.data_dir.join(name);
        match std::fs::rename(&path, path.with_extension(TAKEN)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoredError::File { path: files::shown(&path), error: FileError::Write(error) });
            }
            _ => {}
        }
    }
    Ok(())
}
