//! Calls of modern clients that wait at a legacy server: it asked something, and the client will come
//! back with the answer in another request, or not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolwarden_conversations::Failure;
use toolwarden_conversations::upstreams::Older;
use toolwarden_core::Keyring;
use toolwarden_core::digest::hex;

use crate::resolve::Asked;
use crate::way::Waiting;

/// How long a call waits for its client.
const LIFE: Duration = Duration::from_secs(5 * 60);
/// Calls that wait at the same time, of everybody and of one principal.
const MOST: usize = 10_000;
const MOST_OF_ONE: usize = 256;

/// All of them. Only the sealed state leads to one, and a state opens for its principal and call only.
#[derive(Debug, Default)]
pub struct Parks(Mutex<HashMap<String, Parked>>);

#[derive(Debug)]
struct Parked {
    since: Instant,
    /// The principal whose call it is.
    owner: String,
    waiting: Box<Waiting>,
}

impl Parks {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Parked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A name nobody can guess.
    pub fn name(keyring: &dyn Keyring) -> Result<String, Failure> {
        let mut name = [0; 16];
        keyring.random(&mut name).map_err(|_| Failure::Protocol("no name could be made".to_owned()))?;
        Ok(hex(&name))
    }

    /// Keeps a call under its name.
    pub fn keep(&self, name: String, owner: String, waiting: Box<Waiting>) -> Result<(), Failure> {
        // Dropped after the lock: giving a call up tells its server.
        let refused = {
            let mut all = self.lock();
            let own = all.values().filter(|parked| parked.owner == owner).count();
            if all.len() < MOST && own < MOST_OF_ONE {
                all.insert(name, Parked { since: Instant::now(), owner, waiting });
                None
            } else {
                Some(waiting)
            }
        };
        if refused.is_some() { Err(Failure::Busy) } else { Ok(()) }
    }

    pub fn take(&self, name: &str) -> Option<Box<Waiting>> {
        self.lock().remove(name).map(|parked| parked.waiting)
    }

    /// Gives up the call that has waited longest at a conversation, and long enough.
    pub fn give_up_oldest_of(&self, older: &Arc<Older>, long_enough: Duration) {
        let oldest = {
            let mut all = self.lock();
            let waits = |waiting: &Waiting| waiting.way.as_ref().is_some_and(|way| way.turn.is_of(older));
            let own = all.iter().filter(|(_, parked)| waits(&parked.waiting) && parked.since.elapsed() >= long_enough);
            let name = own.min_by_key(|(_, parked)| parked.since).map(|(name, _)| name.clone());
            name.and_then(|name| all.remove(&name))
        };
        drop(oldest);
    }

    /// Gives up the calls that would not be permitted any more (GATE-19).
    pub fn give_up_forbidden(&self, is_permitted: impl Fn(&Asked) -> bool) {
        let forbidden: Vec<_> = self.lock().extract_if(|_, parked| !is_permitted(&parked.waiting.asked)).collect();
        drop(forbidden);
    }

    /// Gives up the calls nobody came back for.
    pub fn give_up_old(&self) {
        let old: Vec<_> = self.lock().extract_if(|_, parked| parked.since.elapsed() > LIFE).collect();
        drop(old);
    }

    pub fn give_up_all(&self) {
        let all: Vec<_> = self.lock().drain().collect();
        drop(all);
    }
}
