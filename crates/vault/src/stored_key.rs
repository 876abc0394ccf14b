//! A root as the store keeps it: a number, a state, a word on its master, and sealed bytes.
//!
//! Plain data, none of it secret without the master. A list of these is whole only in the one order
//! that rotation makes, and everything that reads a list checks that first.

use std::fmt;
use std::str::FromStr;

use crate::backend::Backend;
use crate::key_text::KeyBytes;
use crate::master::Master;
use crate::passphrase::Stretching;
use crate::ring::RingError;

/// What a root is used for at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyState {
    /// Known for opening, until every replica knows it.
    Waiting,
    /// Seals and signs.
    Current,
    /// Opens and verifies what it made; values of it may be left in the store.
    Former,
    /// The same, and every value of the store that could be opened was sealed again by a later root.
    Retired,
}

impl KeyState {
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Current, Self::Former, Self::Retired];

    /// The stable word for a row.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Current => "current",
            Self::Former => "former",
            Self::Retired => "retired",
        }
    }

    /// The state of a stable word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

impl fmt::Display for KeyState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// One root, as a row holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// 1, 2, 3 ..: never used twice.
    pub id: u32,
    pub state: KeyState,
    /// Which master sealed it: the text of a [`SealedBy`].
    pub master: String,
    /// The root, sealed by the master.
    pub sealed: Vec<u8>,
}

impl StoredKey {
    pub(crate) fn seal(master: &Master, id: u32, state: KeyState, root: &KeyBytes) -> Result<Self, RingError> {
        let note = master.sealed_by().to_string();
        let sealed = master.wrap(id, &note, root).map_err(|_| RingError::Unusable)?;
        Ok(Self { id, state, master: note, sealed })
    }

    /// The root, if this master sealed it.
    pub(crate) fn open(&self, master: &Master) -> Result<KeyBytes, RingError> {
        let wanted = self.sealed_by()?;
        if wanted.mark != master.mark() {
            let found = Box::new(master.sealed_by().clone());
            return Err(RingError::WrongMaster { wanted: Box::new(wanted), found });
        }
        master.unwrap_root(self.id, &self.master, &self.sealed).map_err(|_| RingError::Changed { id: self.id })
    }

    /// Which master sealed this root.
    ///
    /// # Errors
    /// The row says it in words that are not ours.
    pub fn sealed_by(&self) -> Result<SealedBy, RingError> {
        self.master.parse().map_err(|()| RingError::Changed { id: self.id })
    }
}

impl fmt::Debug for StoredKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StoredKey")
            .field("id", &self.id)
            .field("state", &self.state)
            .field("master", &self.master)
            .finish_non_exhaustive()
    }
}

/// Which master sealed a root: as text `BACKEND MARK`, and for passphrases how to stretch them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedBy {
    pub backend: Backend,
    pub mark: String,
    pub stretching: Option<Stretching>,
}

impl SealedBy {
    /// Enough to tell keys apart, too few to be of use to anybody who looks for the key.
    pub(crate) const MARK_BYTES: usize = 8;

    pub(crate) fn new(backend: Backend, mark: String) -> Self {
        Self { backend, mark, stretching: None }
    }

    /// For people: `file 0123456789abcdef`.
    #[must_use]
    pub fn short(&self) -> String {
        format!("{} {}", self.backend, self.mark)
    }
}

impl fmt::Display for SealedBy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.backend, self.mark)?;
        self.stretching.as_ref().map_or(Ok(()), |stretching| write!(formatter, " {stretching}"))
    }
}

impl FromStr for SealedBy {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split(' ');
        let backend = words.next().and_then(Backend::from_word).ok_or(())?;
        let mark = words.next().ok_or(())?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if mark.len() != 2 * Self::MARK_BYTES || !mark.bytes().all(is_digit) {
            return Err(());
        }
        let stretching = words.next().map(str::parse).transpose()?;
        if words.next().is_some() || stretching.is_some() != (backend == Backend::Passphrase) {
            return Err(());
        }
        Ok(Self { backend, mark: mark.to_owned(), stretching })
    }
}

/// The keys in the order of their numbers, if they are a list that rotation can have made: every number
/// from 1 on, first those that are retired, then those that were, the one that is, and at most one that waits.
pub(crate) fn in_order(keys: &[StoredKey]) -> Result<Vec<&StoredKey>, RingError> {
    let mut keys: Vec<&StoredKey> = keys.iter().collect();
    keys.sort_by_key(|key| key.id);
    if !keys.iter().zip(1..).all(|(key, id)| key.id == id) {
        return Err(RingError::Incomplete { why: "their numbers are not 1, 2, 3 .. without a gap" });
    }
    let mut later = keys.iter().map(|key| key.state).skip_while(|state| *state == KeyState::Retired);
    let current = later.by_ref().find(|state| *state != KeyState::Former);
    match (current, later.next(), later.next()) {
        (Some(KeyState::Current), None | Some(KeyState::Waiting), None) => Ok(keys),
        _ => Err(RingError::Incomplete {
            why: "they are not retired and former keys, one current key, and at most one waiting",
        }),
    }
}

#[cfg(test)]
#[path = "stored_key_tests.rs"]
mod tests;
