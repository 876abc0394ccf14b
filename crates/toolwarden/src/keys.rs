//! The keys of this house: a master key from where `[vault] key` says, and the roots it opens in the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow};
use toolwarden_core::Secret;
use toolwarden_core::name::shown;
use toolwarden_sources::{Locations, StoreChoice};
use toolwarden_store::{Database, KeyRow, MasterKey, Phase, Roots, RootsError, Standing};
use toolwarden_vault::{
    Asking, Backend, KEY_FILE, KeySource, KeyState, Master, MasterInUse, Ring, RingError, Step, StoredKey, Supplies,
    add_waiting, head_of, make_current, next_step, retire, root_of,
};

use crate::environment;
use crate::output::BadInput;
use crate::roots_copy;

/// Where a passphrase is given where nobody can be asked.
const PASSPHRASE: &str = "TOOLWARDEN_PASSPHRASE";

/// The keys, and what opened them.
#[derive(Debug)]
pub struct Keys {
    pub ring: Arc<Ring>,
    pub master: MasterInUse,
    process: Process,
    locations: Locations,
}

/// Opens the keys of a store; makes the first ones of a new store.
///
/// # Errors
/// The master key cannot be had, or is not the one that sealed the store.
pub async fn open(locations: &Locations, choice: &StoreChoice, database: &Database) -> Result<Keys> {
    let source = source(choice)?;
    let directory = if choice.key.is_some() { choice.directory.clone() } else { locations.config_dir.clone() };
    let keys = |ring, master| Keys {
        ring: Arc::new(ring),
        master: MasterInUse::new(source.clone(), master),
        process: Process { directory: directory.clone() },
        locations: locations.clone(),
    };
    let rows = database.keys().await?;
    if rows.is_empty() {
        refuse_to_start_anew(locations, &source)?;
        let first = match roots_copy::read(locations)? {
            // The store is another one, or was lost: its record goes on under the same roots.
            Some(copy) => copy,
            None => {
                let master = obtain(&directory, &source, Vec::new()).await?;
                let (_, first) = if has_record(locations) { Ring::continued(&master)? } else { Ring::first(&master)? };
                vec![row(&first)]
            }
        };
        database.replace_keys(&[], &first).await?;
    }
    // There are some, or another process was first.
    let master = obtain(&directory, &source, stored(&database.keys().await?)?).await?;
    // Once more: whoever types a passphrase takes their time, and a rotation may go on meanwhile.
    let rows = database.keys().await?;
    let ring = Ring::open(&master, &stored(&rows)?)?;
    roots_copy::keep(locations, &rows);
    Ok(keys(ring, master))
}

/// The keys of a record whose store is lost, by the copy of its roots; none where there is no copy.
///
/// # Errors
/// The copy cannot be read, or another master key sealed it.
pub fn of_lost_store(locations: &Locations, choice: &StoreChoice) -> Result<Option<Ring>> {
    let Some(copy) = roots_copy::read(locations)? else { return Ok(None) };
    let directory = if choice.key.is_some() { choice.directory.clone() } else { locations.config_dir.clone() };
    let stored = stored(&copy)?;
    let master = source(choice)?.obtain(&Process { directory }, &stored)?;
    Ok(Some(Ring::open(&master, &stored)?))
}

/// Whether something was recorded here.
fn has_record(locations: &Locations) -> bool {
    let entries = std::fs::read_dir(locations.data_dir.join("journal")).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.path().is_dir())
}

/// A record without the key that signed it means that the key was lost: a new one would only say that everything
/// was signed by somebody else.
fn refuse_to_start_anew(locations: &Locations, source: &KeySource) -> Result<()> {
    let key = locations.config_dir.join(KEY_FILE);
    if *source == KeySource::Auto && has_record(locations) && !key.exists() {
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
async fn obtain(directory: &Path, source: &KeySource, stored: Vec<StoredKey>) -> Result<Master> {
    let (process, source) = (Process { directory: directory.to_path_buf() }, source.clone());
    let got = tokio::task::spawn_blocking(move || source.obtain(&process, &stored)).await?;
    Ok(got?)
}

fn stored(rows: &[KeyRow]) -> Result<Vec<StoredKey>, RootsError> {
    let stored = |row: &KeyRow| {
        let state = KeyState::from_word(&row.state);
        let unknown = || RootsError(format!("the store holds a key in the unknown state `{}`", shown(&row.state)));
        let state = state.ok_or_else(unknown)?;
        Ok(StoredKey { id: row.id, state, master: row.master.clone(), sealed: row.sealed.clone() })
    };
    rows.iter().map(stored).collect()
}

fn row(key: &StoredKey) -> KeyRow {
    let (master, sealed) = (key.master.clone(), key.sealed.clone());
    KeyRow { id: key.id, state: key.state.as_str().to_owned(), master, sealed }
}

impl Roots for Keys {
    fn take(&self, kept: &[KeyRow]) -> Result<(), RootsError> {
        let former = self.ring.current();
        self.master.take(&self.ring, &self.process, &stored(kept)?).map_err(|error| told(&error))?;
        roots_copy::keep(&self.locations, kept);
        let current = self.ring.current();
        if current != former {
            tracing::info!("root {current} seals from now on, in the place of root {former}");
        }
        Ok(())
    }

    fn standing(&self, kept: &[KeyRow]) -> Result<Standing, RootsError> {
        let stored = stored(kept)?;
        let (phase, root) = match next_step(&stored).map_err(|error| told(&error))? {
            Step::MakeCurrent { id } => (Phase::Waiting, id),
            Step::SealAgain { current } => (Phase::Sealing, current),
            // Nobody waits, so the last one is the one that seals.
            Step::Nothing => (Phase::Settled, stored.iter().map(|key| key.id).max().unwrap_or_default()),
        };
        Ok(Standing { phase, root })
    }

    fn advanced(&self, kept: &[KeyRow]) -> Result<Vec<KeyRow>, RootsError> {
        let stored = stored(kept)?;
        let next = match next_step(&stored).map_err(|error| told(&error))? {
            Step::Nothing => add_waiting(&self.master.now(), &stored),
            Step::MakeCurrent { id } => make_current(&stored, id),
            Step::SealAgain { .. } => retire(&stored),
        };
        Ok(next.map_err(|error| told(&error))?.iter().map(row).collect())
    }

    fn rewrapped(&self, kept: &[KeyRow]) -> Result<Vec<KeyRow>, RootsError> {
        let rows = self.master.rewrapped(&self.process, &stored(kept)?);
        Ok(rows.map_err(|error| RootsError(error.to_string()))?.iter().map(row).collect())
    }

    fn settled(&self) -> Result<(), RootsError> {
        self.master.settle(&self.process).map_err(|error| RootsError(error.to_string()))
    }

    fn head(&self) -> Vec<u8> {
        head_of(self.ring.current()).to_vec()
    }

    fn root_of(&self, head: &[u8]) -> Option<u32> {
        root_of(head)
    }

    fn master_key(&self) -> MasterKey {
        let master = self.master.now();
        let backend = master.backend();
        let place = match (self.master.source(), backend) {
            (KeySource::Environment(name), _) => format!("the variable {name}"),
            (KeySource::File(path), _) => shown(&self.process.directory.join(path).to_string_lossy()).into_owned(),
            (_, Backend::File) => shown(&self.process.directory.join(KEY_FILE).to_string_lossy()).into_owned(),
            (_, Backend::Passphrase) => "a passphrase".to_owned(),
            (_, Backend::BasicText) => "nowhere: it is published, and protects nothing".to_owned(),
            (_, backend) if backend.is_keyring() => "the keyring of the desktop".to_owned(),
            (_, _) => "this process".to_owned(),
        };
        let mark = master.mark().to_owned();
        let source = shown(&self.master.source().to_string()).into_owned();
        MasterKey { backend: backend.as_str(), source, place, mark, is_protected: backend.is_protected() }
    }
}

fn told(error: &RingError) -> RootsError {
    RootsError(error.to_string())
}

/// What this process gives to sources.
#[derive(Debug)]
struct Process {
    /// Where a relative path of a key file starts.
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
