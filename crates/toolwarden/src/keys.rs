//! The keys of this house: a master key from where `[vault] key` says, and the roots it opens in the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow};
use toolwarden_core::Secret;
use toolwarden_sources::{Locations, StoreChoice};
use toolwarden_store::{Database, KeyRow};
use toolwarden_vault::{Asking, KEY_FILE, KeySource, KeyState, Master, Ring, StoredKey, Supplies};

use crate::environment;
use crate::output::BadInput;

/// Where a passphrase is given where nobody can be asked.
const PASSPHRASE: &str = "TOOLWARDEN_PASSPHRASE";

/// The keys, and what opened them.
pub struct Keys {
    pub ring: Arc<Ring>,
    pub master: Master,
}

/// Opens the keys of a store; makes the first ones of a new store.
///
/// # Errors
/// The master key cannot be had, or is not the one that sealed the store.
pub async fn open(locations: &Locations, choice: &StoreChoice, database: &Database) -> Result<Keys> {
    let source = source(choice)?;
    let rows = database.keys().await?;
    if rows.is_empty() {
        refuse_to_start_anew(locations, &source)?;
        let master = obtain(locations, choice, source.clone(), Vec::new()).await?;
        let (ring, first) = Ring::first(&master)?;
        if database.replace_keys(&[], &[row(&first)]).await? {
            return Ok(Keys { ring: Arc::new(ring), master });
        }
    }
    // There are some, or another process was first.
    let stored = stored(&database.keys().await?)?;
    let master = obtain(locations, choice, source, stored.clone()).await?;
    let ring = Arc::new(Ring::open(&master, &stored)?);
    Ok(Keys { ring, master })
}

/// A record without the key that signed it means that the key was lost: a new one would only say that everything
/// was signed by somebody else.
fn refuse_to_start_anew(locations: &Locations, source: &KeySource) -> Result<()> {
    let key = locations.config_dir.join(KEY_FILE);
    let entries = std::fs::read_dir(locations.data_dir.join("journal")).into_iter().flatten().flatten();
    let has_record = entries.into_iter().any(|entry| entry.path().is_dir());
    if *source == KeySource::Auto && has_record && !key.exists() {
        return Err(anyhow!(
            "{} is missing, and there is a record that was signed with it; restore it from a backup",
            key.display()
        ));
    }
    Ok(())
}

/// `[vault] key`.
///
/// # Errors
/// It names no source.
pub fn source(choice: &StoreChoice) -> Result<KeySource> {
    let Some(text) = &choice.key else { return Ok(KeySource::Auto) };
    let source = text.parse().map_err(|error| BadInput(format!("[vault] key: {error}")))?;
    if source == KeySource::Memory {
        // What was decided and recorded would be lost with the process, and nobody could read the database again.
        return Err(BadInput("[vault] key: `memory` cannot keep a store that outlives the process".to_owned()).into());
    }
    Ok(source)
}

/// Blocks for a keyring, or for whoever types a passphrase: on a thread for such work.
async fn obtain(
    locations: &Locations,
    choice: &StoreChoice,
    source: KeySource,
    stored: Vec<StoredKey>,
) -> Result<Master> {
    let directory = if choice.key.is_some() { choice.directory.clone() } else { locations.config_dir.clone() };
    let got = tokio::task::spawn_blocking(move || source.obtain(&Process { directory }, &stored)).await?;
    Ok(got?)
}

pub fn stored(rows: &[KeyRow]) -> Result<Vec<StoredKey>> {
    let stored = |row: &KeyRow| {
        let state = KeyState::from_word(&row.state);
        let state = state.ok_or_else(|| anyhow!("the store holds a key in the unknown state `{}`", row.state))?;
        Ok(StoredKey { id: row.id, state, master: row.master.clone(), sealed: row.sealed.clone() })
    };
    rows.iter().map(stored).collect()
}

fn row(key: &StoredKey) -> KeyRow {
    let (master, sealed) = (key.master.clone(), key.sealed.clone());
    KeyRow { id: key.id, state: key.state.as_str().to_owned(), master, sealed }
}

/// What this process gives to sources.
struct Process {
    directory: PathBuf,
}

impl Supplies for Process {
    fn variable(&self, name: &str) -> Option<Secret> {
        environment::text(name).map(Secret::new)
    }

    fn passphrase(&self, asking: Asking) -> Result<Secret, String> {
        if let Some(text) = environment::text(PASSPHRASE) {
            return Ok(Secret::new(text));
        }
        let unheard = || format!("set {PASSPHRASE}, or start this on a terminal");
        let ask = |words| environment::ask_secret(words).map_err(|_| unheard());
        let passphrase = ask("Passphrase of this Toolwarden: ")?;
        if asking == Asking::New && ask("The same again: ")?.reveal_to_upstream() != passphrase.reveal_to_upstream() {
            return Err("the two differ; start again".to_owned());
        }
        Ok(passphrase)
    }

    fn directory(&self) -> &Path {
        &self.directory
    }
}
