//! What others changed on disk is taken over, and what was noted of offers is put there, both from time to time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use toolwarden_core::name::shown;
use toolwarden_sources::Locations;
use toolwarden_sources::stored::StoredError;

use super::{Book, Shelf};
use crate::file;

impl Book {
    /// Those of the servers there are.
    fn open_shelves(&self) -> Vec<(Arc<str>, Arc<Shelf>)> {
        let all = self.shelves.load();
        let open = all.iter().filter(|(_, shelf)| shelf.is_open.load(Ordering::Acquire));
        open.map(|(server, shelf)| (server.clone(), shelf.clone())).collect()
    }

    /// Takes over what others changed on disk; gives the servers it was changed for. Blocks.
    pub fn refresh(&self) -> Vec<Arc<str>> {
        let Some(locations) = &self.locations else { return Vec::new() };
        let mut changed = Vec::new();
        for (server, shelf) in self.open_shelves() {
            let taken = self.refresh_one(locations, &server, &shelf);
            if matches!(taken, Ok(true)) {
                changed.push(server.clone());
            }
            shelf.tell_trouble(&server, taken.err());
        }
        changed
    }

    /// Whether there is something to be kept.
    #[must_use]
    pub fn has_unkept_offers(&self) -> bool {
        self.locations.is_some() && self.open_shelves().iter().any(|(_, shelf)| shelf.state().has_unwritten_offers)
    }

    /// Writes what was noted of offers since they were last written. Blocks, and waits for others who write.
    pub fn keep_offers(&self) {
        let Some(locations) = &self.locations else { return };
        for (server, shelf) in self.open_shelves() {
            // Nothing is decided by them, and whoever records news is told.
            if let Err(error) = shelf.keep_offers(locations, &server) {
                tracing::debug!(%server, "what it offers could not be written, which is tried again: {error}");
            }
        }
    }

    fn refresh_one(&self, locations: &Locations, server: &Arc<str>, shelf: &Shelf) -> Result<bool, StoredError> {
        // What is being written here is no news from elsewhere, and what is news is still so at the next look.
        let Ok(_writing) = shelf.writing.try_lock() else { return Ok(false) };
        loop {
            let (known, swaps) = {
                let state = shelf.state();
                (state.stamp, state.swaps)
            };
            let stamp = file::stamp(locations, server);
            if known == stamp {
                return Ok(false);
            }
            let pins = file::read(locations, server)?;
            let mut state = shelf.state();
            // Somebody wrote meanwhile, so that what was read may be older than what is known.
            if state.swaps != swaps {
                continue;
            }
            if known.is_some() && stamp.is_none() {
                tell_gone(locations, server);
            }
            let is_same = !state.is_untold && state.pins.is_same_but_offers(&pins);
            state.swap_in(pins);
            (state.stamp, state.is_untold) = (stamp, false);
            if is_same {
                return Ok(false);
            }
            state.regular.clear();
            self.take_in(server, shelf, &state);
            drop(state);
            self.forget_looks(server);
            return Ok(true);
        }
    }
}

impl Shelf {
    fn keep_offers(&self, locations: &Locations, server: &str) -> Result<(), StoredError> {
        // Whoever writes just now is not waited for: there is a next time.
        let Ok(_writing) = self.writing.try_lock() else { return Ok(()) };
        let noted = {
            let mut state = self.state();
            if !std::mem::take(&mut state.has_unwritten_offers) {
                return Ok(());
            }
            state.pins.clone()
        };
        let kept = file::change(locations, server, |pins| ((), pins.take_offers(&noted)));
        let mut state = self.state();
        match kept {
            // What others changed before is still to be taken over.
            Ok(((), on_disk)) if state.stamp == on_disk.before => state.stamp = on_disk.stamp,
            Ok(_) => {}
            Err(error) => {
                state.has_unwritten_offers = true;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Says what is wrong with the record, once until it changes. What is in force stays: nothing was accepted that
    /// could be read.
    fn tell_trouble(&self, server: &str, trouble: Option<StoredError>) {
        let trouble = trouble.map(|error| error.to_string());
        let mut state = self.state();
        if let Some(words) = trouble.as_ref().filter(|words| state.trouble.as_ref() != Some(words)) {
            tracing::error!(server, "the record of what was accepted of {} cannot be used: {words}", shown(server));
        }
        state.trouble = trouble;
    }
}

/// What was accepted is not known any more, which nobody should learn by chance.
pub(super) fn tell_gone(locations: &Locations, server: &str) {
    let path = locations.data_dir.join(file::path(server));
    tracing::warn!(
        server,
        "what was accepted of {} is gone with {}: everything it offers is accepted as found when it is next seen",
        shown(server),
        shown(&path.to_string_lossy())
    );
}
