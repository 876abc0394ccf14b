//! Rotation without a stop: steps from one list of stored keys to the next.
//!
//! A new root: `add_waiting`, then every replica takes the list; `make_current`, then every replica takes
//! it again; then what names a former root is sealed again, and `retire` says that this is done. A new master:
//! `rewrap`. The caller stores each list in one transaction. A step done twice changes nothing, so whoever comes
//! after a crash asks `next_step` and goes on. Former and retired roots stay, sealed: they open, verify and mark,
//! and seal nothing.

use crate::master::Master;
use crate::ring::{RingError, fresh_root};
use crate::stored_key::{KeyState, StoredKey, in_order};

/// What is left to do of a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// No rotation was begun, or the last one is over.
    Nothing,
    /// Every replica takes the list; then `make_current` with this number.
    MakeCurrent { id: u32 },
    /// Every replica takes the list; then values whose `root_of` is another number are sealed again. When
    /// there are none, `retire` ends the rotation.
    SealAgain { current: u32 },
}

/// Where a list stands, also after a crash at any moment.
///
/// # Errors
/// The list is not one that rotation made.
pub fn next_step(stored: &[StoredKey]) -> Result<Step, RingError> {
    let keys = in_order(stored)?;
    let with = |state| keys.iter().find(|key| key.state == state).map(|key| key.id);
    let has_former = with(KeyState::Former).is_some();
    Ok(match (with(KeyState::Waiting), with(KeyState::Current)) {
        (Some(id), _) => Step::MakeCurrent { id },
        (None, Some(current)) if has_former => Step::SealAgain { current },
        (None, _) => Step::Nothing,
    })
}

/// Adds a new root that is known for opening only. A list that has one is given back as it is.
///
/// # Errors
/// Another master sealed the list, it is incomplete, or there are no random bytes.
pub fn add_waiting(master: &Master, stored: &[StoredKey]) -> Result<Vec<StoredKey>, RingError> {
    let keys = in_order(stored)?;
    // The list must be this master's own: a key of another one would be beyond everybody's reach.
    for key in &keys {
        key.open(master)?;
    }
    let mut next: Vec<StoredKey> = keys.iter().copied().cloned().collect();
    if let Some(last) = keys.last().filter(|last| last.state != KeyState::Waiting) {
        let id = last.id.checked_add(1).ok_or(RingError::Unusable)?;
        next.push(StoredKey::seal(master, id, KeyState::Waiting, &fresh_root()?)?);
    }
    Ok(next)
}

/// Lets the waiting root seal, and the one that did become a former one. Only once every replica knows the
/// waiting root, or these could not open what others seal.
///
/// # Errors
/// The key of this number is not waiting, and not current already.
pub fn make_current(stored: &[StoredKey], id: u32) -> Result<Vec<StoredKey>, RingError> {
    let keys = in_order(stored)?;
    let state = keys.iter().find(|key| key.id == id).map(|key| key.state);
    if !matches!(state, Some(KeyState::Waiting | KeyState::Current)) {
        return Err(RingError::NotWaiting { id, state });
    }
    let moved = keys.into_iter().map(|key| {
        let state = if key.id == id {
            KeyState::Current
        } else if key.id < id && key.state != KeyState::Retired {
            KeyState::Former
        } else {
            key.state
        };
        StoredKey { state, ..key.clone() }
    });
    Ok(moved.collect())
}

/// Says that the store holds nothing of former roots any more. They are kept: what they signed and marked
/// elsewhere is checked for years.
///
/// # Errors
/// The list is not one that rotation made.
pub fn retire(stored: &[StoredKey]) -> Result<Vec<StoredKey>, RingError> {
    let retired = in_order(stored)?.into_iter().map(|key| {
        let state = if key.state == KeyState::Former { KeyState::Retired } else { key.state };
        StoredKey { state, ..key.clone() }
    });
    Ok(retired.collect())
}

/// Seals every root by another master. Roots stay what they are, so rings in use go on as before; a
/// replica needs the new master to take later lists. Keys that the new master sealed already stay.
///
/// # Errors
/// The old master did not seal the list, or it is incomplete. The list that was given stays good.
pub fn rewrap(old: &Master, new: &Master, stored: &[StoredKey]) -> Result<Vec<StoredKey>, RingError> {
    let keys = in_order(stored)?;
    let sealed = keys.into_iter().map(|key| {
        let sealed_by = key.sealed_by()?;
        let root = key.open(if sealed_by.mark == new.mark() { new } else { old })?;
        // The same key may come from another place now, and rows say the place.
        if sealed_by == *new.sealed_by() { Ok(key.clone()) } else { StoredKey::seal(new, key.id, key.state, &root) }
    });
    sealed.collect()
}

#[cfg(test)]
#[path = "rotation_tests.rs"]
mod tests;
