//! The master key of a process that goes on while the key is replaced: by itself, or by another process.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::backend::Backend;
use crate::master::Master;
use crate::ring::{Ring, RingError};
use crate::rotation::rewrap;
use crate::source::{KeySource, SourceError, Supplies};
use crate::stored_key::StoredKey;

/// A master key and where it comes from.
#[derive(Debug)]
pub struct MasterInUse {
    source: KeySource,
    master: RwLock<Arc<Master>>,
    /// One that is to follow, until rows that it sealed are stored.
    next: Mutex<Option<Arc<Master>>>,
}

impl MasterInUse {
    #[must_use]
    pub fn new(source: KeySource, master: Master) -> Self {
        Self { source, master: RwLock::new(Arc::new(master)), next: Mutex::default() }
    }

    #[must_use]
    pub fn source(&self) -> &KeySource {
        &self.source
    }

    /// The one that seals roots now.
    #[must_use]
    pub fn now(&self) -> Arc<Master> {
        self.master.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, master: Arc<Master>) {
        *self.master.write().unwrap_or_else(PoisonError::into_inner) = master;
    }

    /// Lets a ring take rows over; where another process gave them another key, with that one, if its file is in its place
    /// here.
    ///
    /// # Errors
    /// As for [`Ring::take`].
    pub fn take(&self, ring: &Ring, supplies: &dyn Supplies, stored: &[StoredKey]) -> Result<bool, RingError> {
        let master = self.now();
        match ring.take(&master, stored) {
            Err(RingError::WrongMaster { wanted, found }) if master.backend() == Backend::File => {
                match self.source.obtain(supplies, stored) {
                    Ok(other) if other.mark() == wanted.mark => {
                        let taken = ring.take(&other, stored)?;
                        self.set(Arc::new(other));
                        Ok(taken)
                    }
                    _ => Err(RingError::WrongMaster { wanted, found }),
                }
            }
            taken => taken,
        }
    }

    /// The rows, sealed by a new key that is kept beside the one in use. `settle` says that they are stored.
    ///
    /// # Errors
    /// The key is not kept in a file, or the rows are not whole.
    pub fn rewrapped(&self, supplies: &dyn Supplies, stored: &[StoredKey]) -> Result<Vec<StoredKey>, SourceError> {
        let master = self.now();
        let next = self.source.renewed(supplies, &master)?;
        let rows = rewrap(&master, &next, stored)?;
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(next));
        Ok(rows)
    }

    /// Uses the new key from now on, and puts its file in the place of the former one.
    ///
    /// # Errors
    /// The file stays where it is; the next start puts it in its place.
    pub fn settle(&self, supplies: &dyn Supplies) -> Result<(), SourceError> {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(next) = next else { return Ok(()) };
        let former = self.now();
        self.set(next);
        self.source.follow(supplies, &former)
    }
}
