//! The keys in use: every root there is, and what each may do.
//!
//! Takes a master and the stored keys it sealed, gives a `Keyring`. Purpose keys are derived once for
//! each root; a newer list is taken over while others seal and open. A wrong master changes nothing.
//!
//! Whoever got hold of a former root can read what it sealed, and no more: of passing purposes (links, logins, states,
//! cursors) it opens nothing once `OVERLAP` is over, and nothing at all after a restart.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use toolwarden_core::keyring::Signature;
use toolwarden_core::{Keyring, KeyringError, Life, Purpose};

use crate::key_text::KeyBytes;
use crate::master::Master;
use crate::purpose_keys::{AllKeys, identity};
use crate::sealed;
use crate::stored_key::{KeyState, SealedBy, StoredKey, in_order};

/// How long a root that was replaced still opens passing values: as long as a request state lives. A gateway that goes on
/// through a rotation disappoints nobody then.
const OVERLAP: Duration = Duration::from_secs(30 * 60);

/// Why keys cannot be used. Says nothing of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    #[error(
        "the keys are sealed by the master key `{}`, but the one at hand is `{}`; {}; nothing was changed",
        wanted.short(), found.short(), wanted.backend.how_to_give_back()
    )]
    WrongMaster { wanted: Box<SealedBy>, found: Box<SealedBy> },
    #[error("the stored key {id} was changed; restore the data from a backup; nothing was changed")]
    Changed { id: u32 },
    #[error("the stored keys are incomplete: {why}; restore the data from a backup; nothing was changed")]
    Incomplete { why: &'static str },
    #[error("the stored key {id} is not the one in use under this number: the list belongs to other data")]
    Foreign { id: u32 },
    #[error("the key {id} cannot be made current: it is {}", state.map_or("unknown", KeyState::as_str))]
    NotWaiting { id: u32, state: Option<KeyState> },
    #[error("the key cannot be used, or the operating system gives no random bytes")]
    Unusable,
}

/// Roots of a store, and a `Keyring` made of them.
pub struct Ring {
    roots: ArcSwap<Roots>,
    /// One list at a time, so that an older one never replaces a newer one.
    taking: Mutex<()>,
}

struct Roots {
    /// By number, from 1 on.
    all: Vec<Arc<Root>>,
    oldest: Arc<Root>,
    current: Arc<Root>,
    /// Since when this process knows of roots that they were replaced. Not kept: what was replaced before it started
    /// opens no passing value.
    replaced: Vec<(u32, Instant)>,
}

struct Root {
    id: u32,
    keys: AllKeys,
    identity: KeyBytes,
}

impl Ring {
    /// The ring of a store that has no keys yet, and the one key to store before the ring is used.
    ///
    /// Of two processes that do this at once only one may store its key; the other one must drop this ring
    /// and open the list that was stored.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn first(master: &Master) -> Result<(Self, StoredKey), RingError> {
        Self::beginning(master, &fresh_root()?)
    }

    /// The same for data whose record was signed by an earlier version, or by one whose store is lost: its first root is
    /// the key of the file, so that signatures and marks stay valid.
    ///
    /// # Errors
    /// As for `first`.
    pub fn continued(master: &Master) -> Result<(Self, StoredKey), RingError> {
        match master.key_of_file() {
            Some(key) => Self::beginning(master, key),
            None => Self::first(master),
        }
    }

    fn beginning(master: &Master, root: &KeyBytes) -> Result<(Self, StoredKey), RingError> {
        let ring = Self::only(root)?;
        Ok((ring, StoredKey::seal(master, 1, KeyState::Current, root)?))
    }

    /// A ring whose one root is this key.
    pub(crate) fn only(root: &KeyBytes) -> Result<Self, RingError> {
        let root = Root::new(1, root, &[])?;
        Ok(Self::of(Roots {
            all: vec![Arc::clone(&root)],
            oldest: Arc::clone(&root),
            current: root,
            replaced: Vec::new(),
        }))
    }

    /// The ring of stored keys.
    ///
    /// # Errors
    /// Another master sealed them, a row was changed, or rows are missing.
    pub fn open(master: &Master, stored: &[StoredKey]) -> Result<Self, RingError> {
        Roots::open(master, stored, &[]).map(Self::of)
    }

    fn of(roots: Roots) -> Self {
        Self { roots: ArcSwap::from_pointee(roots), taking: Mutex::new(()) }
    }

    /// Takes over a newer list of the same store, while others use the ring. Says whether it is in use
    /// now; one that is older than what is in use is left alone, so that late news do no harm.
    ///
    /// # Errors
    /// As for `open`, or the list is another store's. The ring stays as it was.
    pub fn take(&self, master: &Master, stored: &[StoredKey]) -> Result<bool, RingError> {
        let _turn = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        let used = self.roots.load_full();
        let mut new = Roots::open(master, stored, &used.all)?;
        new.replaced.clone_from(&used.replaced);
        if new.current.id > used.current.id {
            new.replaced.push((used.current.id, now()));
        }
        // Rotation only ever adds a root or moves on to a later one.
        let is_newer = new.all.len() >= used.all.len() && new.current.id >= used.current.id;
        if is_newer {
            self.roots.store(Arc::new(new));
        }
        Ok(is_newer)
    }

    /// The number of the root that seals: values of any other one are to be sealed again after a rotation.
    #[must_use]
    pub fn current(&self) -> u32 {
        self.roots.load().current.id
    }

    /// The highest number this ring can open.
    #[must_use]
    pub fn latest(&self) -> u32 {
        self.roots.load().all.last().map_or(0, |root| root.id)
    }
}

/// For how long a root is replaced alone, which no clock that people set may change.
fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "the keyring has no clock, and this one decides on ages alone")]
    Instant::now()
}

pub(crate) fn fresh_root() -> Result<KeyBytes, RingError> {
    let mut root = KeyBytes::default();
    crate::randomness::fill(root.as_mut_slice()).map_err(|_| RingError::Unusable)?;
    Ok(root)
}

impl Root {
    /// The keys of a root; those of a root that is known already are not derived again.
    fn new(id: u32, root: &KeyBytes, known: &[Arc<Self>]) -> Result<Arc<Self>, RingError> {
        let identity = identity(root).map_err(|_| RingError::Unusable)?;
        match known.iter().find(|known| known.id == id) {
            Some(known) if known.identity == identity => Ok(Arc::clone(known)),
            Some(_) => Err(RingError::Foreign { id }),
            None => {
                let keys = AllKeys::derive(root).map_err(|_| RingError::Unusable)?;
                Ok(Arc::new(Self { id, keys, identity }))
            }
        }
    }
}

impl Roots {
    fn open(master: &Master, stored: &[StoredKey], known: &[Arc<Root>]) -> Result<Self, RingError> {
        let stored = in_order(stored)?;
        let mut all = Vec::with_capacity(stored.len());
        let mut current = None;
        for key in stored {
            let root = Root::new(key.id, &key.open(master)?, known)?;
            if key.state == KeyState::Current {
                current = Some(Arc::clone(&root));
            }
            all.push(root);
        }
        let (Some(oldest), Some(current)) = (all.first().map(Arc::clone), current) else {
            return Err(RingError::Incomplete { why: "there is no current one" });
        };
        Ok(Self { all, oldest, current, replaced: Vec::new() })
    }

    fn by_id(&self, id: u32) -> Option<&Root> {
        let index = usize::try_from(id.checked_sub(1)?).ok()?;
        self.all.get(index).map(Arc::as_ref)
    }

    /// Whether a root opens and verifies values of a purpose at this moment. Those that wait do: another gateway may seal
    /// with them already.
    fn serves(&self, id: u32, purpose: Purpose, now: Instant) -> bool {
        let is_recent =
            |(replaced, since): &(u32, Instant)| *replaced == id && now.saturating_duration_since(*since) < OVERLAP;
        match purpose.life() {
            Life::Lasting => true,
            Life::Passing => id >= self.current.id || self.replaced.iter().any(is_recent),
        }
    }

    fn open_at(&self, now: Instant, purpose: Purpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, KeyringError> {
        let id = sealed::root_of(sealed).ok_or(KeyringError::NotAuthentic)?;
        let root = self.by_id(id).filter(|_| self.serves(id, purpose, now)).ok_or(KeyringError::NotAuthentic)?;
        sealed::open(&root.keys.of(purpose).sealing, id, purpose, bound_to, sealed)
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Ring({} of {})", self.current(), self.latest())
    }
}

impl Keyring for Ring {
    fn seal(&self, purpose: Purpose, bound_to: &[u8], plain: &[u8]) -> Result<Vec<u8>, KeyringError> {
        let roots = self.roots.load();
        let root = &roots.current;
        sealed::seal(&root.keys.of(purpose).sealing, root.id, purpose, bound_to, plain)
    }

    fn open(&self, purpose: Purpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, KeyringError> {
        self.roots.load().open_at(now(), purpose, bound_to, sealed)
    }

    /// Marks of lasting purposes always with the oldest root: they are compared for years, with others that cannot be made again,
    /// and they hide guesses, not data. A rotation that changed them would make every pinned thing look new.
    fn mark(&self, purpose: Purpose, bytes: &[u8]) -> [u8; 32] {
        let roots = self.roots.load();
        let root = match purpose.life() {
            Life::Lasting => &roots.oldest,
            Life::Passing => &roots.current,
        };
        let tag = hmac::sign(&root.keys.of(purpose).marking, bytes);
        let mut mark = [0; 32];
        for (to, from) in mark.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
        mark
    }

    fn sign(&self, purpose: Purpose, bytes: &[u8]) -> Result<Signature, KeyringError> {
        let roots = self.roots.load();
        let keys = roots.current.keys.of(purpose);
        let signature = keys.signing.try_sign(bytes).map_err(|_| KeyringError::Unusable)?;
        let bytes = signature.as_ref().try_into().map_err(|_| KeyringError::Unusable)?;
        Ok(Signature { public_key: keys.public, bytes })
    }

    fn verifies(&self, purpose: Purpose, bytes: &[u8], signature: &Signature) -> bool {
        let roots = self.roots.load();
        let at = now();
        let is_ours = roots
            .all
            .iter()
            .any(|root| root.keys.of(purpose).public == signature.public_key && roots.serves(root.id, purpose, at));
        is_ours && UnparsedPublicKey::new(&ED25519, signature.public_key).verify(bytes, &signature.bytes).is_ok()
    }

    fn random(&self, bytes: &mut [u8]) -> Result<(), KeyringError> {
        crate::randomness::fill(bytes).map_err(|_| KeyringError::Unusable)
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
