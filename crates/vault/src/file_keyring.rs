//! The keyring whose master key is a file: seals, marks and signs for each purpose.
//!
//! A sealed value is a version byte, a random nonce and AES-256-GCM over the plain bytes; version,
//! purpose and binding are authenticated with it. Opening anything else says only "not authentic".

use std::fmt;
use std::path::Path;

use aws_lc_rs::aead::{Aad, NONCE_LEN, Nonce};
use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use aws_lc_rs::{hmac, rand};
use toolwarden_core::keyring::Signature;
use toolwarden_core::{Keyring, KeyringError, Purpose};

use crate::key_file::{self, KeyFileError};
use crate::purpose_keys::AllKeys;

/// Which key and which way of sealing: the first byte of every sealed value. A rotated key gets
/// the next number, and values of the former one can be told apart.
const VERSION: u8 = 1;

/// Keys derived from the master key of a directory.
pub struct FileKeyring {
    keys: AllKeys,
}

impl FileKeyring {
    /// Reads the master key of a directory; makes both, owner-only, where there are none.
    ///
    /// # Errors
    /// The file or its directory is open to others, foreign, a link, unreadable or not a key.
    pub fn open(directory: &Path) -> Result<Self, KeyFileError> {
        let master = key_file::read_or_create(directory)?;
        let path = || directory.join(key_file::KEY_FILE).to_string_lossy().into_owned();
        let keys = AllKeys::derive(&master).map_err(|_| KeyFileError::Malformed { path: path() })?;
        Ok(Self { keys })
    }
}

impl fmt::Debug for FileKeyring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FileKeyring")
    }
}

/// What is authenticated beside the plain bytes. The length keeps the parts apart.
fn context(purpose: Purpose, bound_to: &[u8]) -> Vec<u8> {
    let name = purpose.as_str().as_bytes();
    let mut bytes = Vec::with_capacity(2 + name.len() + bound_to.len());
    bytes.push(VERSION);
    bytes.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(bound_to);
    bytes
}

impl Keyring for FileKeyring {
    fn seal(&self, purpose: Purpose, bound_to: &[u8], plain: &[u8]) -> Result<Vec<u8>, KeyringError> {
        let key = &self.keys.of(purpose).sealing;
        let mut nonce = [0; NONCE_LEN];
        self.random(&mut nonce)?;
        let mut sealed = Vec::with_capacity(1 + NONCE_LEN + plain.len() + key.algorithm().tag_len());
        sealed.push(VERSION);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let (_, body) = sealed.split_at_mut(1 + NONCE_LEN);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = key
            .seal_in_place_separate_tag(nonce, Aad::from(context(purpose, bound_to)), body)
            .map_err(|_| KeyringError::Unusable)?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    fn open(&self, purpose: Purpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, KeyringError> {
        let Some((&VERSION, rest)) = sealed.split_first() else { return Err(KeyringError::NotAuthentic) };
        let Some((nonce, body)) = rest.split_first_chunk::<NONCE_LEN>() else {
            return Err(KeyringError::NotAuthentic);
        };
        let mut body = body.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let key = &self.keys.of(purpose).sealing;
        let plain = key
            .open_in_place(nonce, Aad::from(context(purpose, bound_to)), &mut body)
            .map_err(|_| KeyringError::NotAuthentic)?
            .len();
        body.truncate(plain);
        Ok(body)
    }

    fn mark(&self, purpose: Purpose, bytes: &[u8]) -> [u8; 32] {
        let tag = hmac::sign(&self.keys.of(purpose).marking, bytes);
        let mut mark = [0; 32];
        for (to, from) in mark.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
        mark
    }

    fn sign(&self, purpose: Purpose, bytes: &[u8]) -> Result<Signature, KeyringError> {
        let keys = self.keys.of(purpose);
        let signature = keys.signing.try_sign(bytes).map_err(|_| KeyringError::Unusable)?;
        let bytes = signature.as_ref().try_into().map_err(|_| KeyringError::Unusable)?;
        Ok(Signature { public_key: keys.public, bytes })
    }

    fn verifies(&self, purpose: Purpose, bytes: &[u8], signature: &Signature) -> bool {
        let public = self.keys.of(purpose).public;
        public == signature.public_key
            && UnparsedPublicKey::new(&ED25519, public).verify(bytes, &signature.bytes).is_ok()
    }

    fn random(&self, bytes: &mut [u8]) -> Result<(), KeyringError> {
        rand::fill(bytes).map_err(|_| KeyringError::Unusable)
    }
}

#[cfg(test)]
#[path = "file_keyring_tests.rs"]
mod tests;
