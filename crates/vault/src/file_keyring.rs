//! A keyring made of a key file and nothing else: a ring whose one root is the file's key.
//!
//! For programs and tests that have no store to keep roots in, and for data of earlier versions, whose first root is the
//! key of the file.

use std::fmt;
use std::path::Path;

use toolwarden_core::keyring::Signature;
use toolwarden_core::{Keyring, KeyringError, Purpose};

use crate::key_file::{self, KeyFileError};
use crate::ring::Ring;

/// Keys derived from the key file of a directory.
pub struct FileKeyring(Ring);

impl FileKeyring {
    /// Reads the key of a directory; makes both, owner-only, where there are none.
    ///
    /// # Errors
    /// The file or its directory is open to others, foreign, a link, unreadable or not a key.
    pub fn open(directory: &Path) -> Result<Self, KeyFileError> {
        let path = directory.join(key_file::KEY_FILE);
        let ring = Ring::only(&key_file::read_or_create(&path)?);
        ring.map(Self).map_err(|_| KeyFileError::Malformed { path: path.to_string_lossy().into_owned() })
    }
}

impl fmt::Debug for FileKeyring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FileKeyring")
    }
}

impl Keyring for FileKeyring {
    fn seal(&self, purpose: Purpose, bound_to: &[u8], plain: &[u8]) -> Result<Vec<u8>, KeyringError> {
        self.0.seal(purpose, bound_to, plain)
    }

    fn open(&self, purpose: Purpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, KeyringError> {
        Keyring::open(&self.0, purpose, bound_to, sealed)
    }

    fn mark(&self, purpose: Purpose, bytes: &[u8]) -> [u8; 32] {
        self.0.mark(purpose, bytes)
    }

    fn sign(&self, purpose: Purpose, bytes: &[u8]) -> Result<Signature, KeyringError> {
        self.0.sign(purpose, bytes)
    }

    fn verifies(&self, purpose: Purpose, bytes: &[u8], signature: &Signature) -> bool {
        self.0.verifies(purpose, bytes, signature)
    }

    fn random(&self, bytes: &mut [u8]) -> Result<(), KeyringError> {
        self.0.random(bytes)
    }
}

#[cfg(test)]
#[path = "file_keyring_tests.rs"]
mod tests;
