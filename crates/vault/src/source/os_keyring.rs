//! The keyring of the operating system, whichever it is: gives the keys that are kept there for us.
//!
//! An answer has three seconds, because a keyring that asks a person first may never give one, and a
//! gateway starts without one. A keyring that is locked or refuses is an answer; none at all is another.

use crate::backend::Backend;
use crate::key_text::KeyBytes;
use crate::source::Supplies;

#[cfg(target_os = "macos")]
mod keychain;
#[cfg(all(unix, not(target_os = "macos")))]
mod secret_service;

/// What a keyring holds for us, the oldest first.
pub(super) struct Candidates {
    pub(super) keys: Vec<KeyBytes>,
    pub(super) backend: Backend,
}

/// Why the keyring gives no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OsKeyringError {
    #[error("there is no session bus, so no keyring can be asked: {why}; log in to a desktop, or choose `file:PATH`")]
    NoBus { why: String },
    #[error("no keyring runs in this session; start one (GNOME Keyring, KWallet), or choose `file:PATH`")]
    NoService,
    #[error("the keyring did not answer within {seconds} seconds; look for a question it asks, or choose `file:PATH`")]
    NoAnswer { seconds: u64 },
    #[error("the keyring has no default collection to keep a key in; make one, or choose `file:PATH`")]
    NoCollection,
    #[error("the keyring is locked; unlock it (it is when you log in), or choose `file:PATH`")]
    Locked,
    #[error("the keyring refuses: {why}")]
    Refused { why: String },
    #[error("what the keyring holds under our name is not a key; remove or restore it there; nothing was changed")]
    Malformed,
    #[error("there is no keyring that can be used on this system; choose `file:PATH`")]
    NotHere,
}

impl OsKeyringError {
    /// Whether there is no keyring, rather than one that says no. A locked keyring is one that is there:
    /// what is in it must not be passed over for as long as it happens to be locked.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        match self {
            Self::NoBus { .. } | Self::NoService | Self::NoAnswer { .. } | Self::NoCollection | Self::NotHere => true,
            Self::Locked | Self::Refused { .. } | Self::Malformed => false,
        }
    }
}

/// The keys that are kept for us; keeps `new` where there is none. Blocks for three seconds at most.
pub(super) fn read_or_create(supplies: &dyn Supplies, new: Option<&KeyBytes>) -> Result<Candidates, OsKeyringError> {
    #[cfg(target_os = "macos")]
    return keychain::read_or_create(supplies, new);
    #[cfg(all(unix, not(target_os = "macos")))]
    return secret_service::read_or_create(supplies, new);
    #[cfg(not(unix))]
    {
        let _ = (supplies, new);
        Err(OsKeyringError::NotHere)
    }
}
