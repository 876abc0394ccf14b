//! The master key: seals the roots, and nothing else.
//!
//! Comes from a `KeySource`, knows its backend, and has a mark by which people and rows can name it
//! without telling anything of it. Wiped when dropped; `Debug` shows the backend only.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use toolwarden_core::KeyringError;

use crate::backend::Backend;
use crate::key_text::KeyBytes;
use crate::passphrase::Stretching;
use crate::purpose_keys::derived;
use crate::stored_key::SealedBy;

/// Fixed, so that this derivation is told apart from any other one over the same bytes: the key of a
/// file is a root as well as a master.
const SALT: &[u8] = b"toolwarden master 1";

/// The first byte of a sealed root: which way of sealing.
const FORMAT: u8 = 1;

/// A master key and where it comes from.
pub struct Master {
    key: KeyBytes,
    wrapping: LessSafeKey,
    sealed_by: SealedBy,
}

impl Master {
    pub(crate) fn new(key: KeyBytes, backend: Backend) -> Result<Self, KeyringError> {
        let root = Salt::new(HKDF_SHA256, SALT).extract(key.as_slice());
        let wrapping = derived(&root, &[b"wrap"])?;
        let wrapping = UnboundKey::new(&AES_256_GCM, wrapping.as_slice()).map_err(|_| KeyringError::Unusable)?;
        let mark = derived(&root, &[b"mark"])?;
        let mark = mark.iter().take(SealedBy::MARK_BYTES).map(|byte| format!("{byte:02x}")).collect();
        let sealed_by = SealedBy::new(backend, mark);
        Ok(Self { key, wrapping: LessSafeKey::new(wrapping), sealed_by })
    }

    pub(crate) fn with_stretching(mut self, stretching: Stretching) -> Self {
        self.sealed_by.stretching = Some(stretching);
        self
    }

    /// Where the key comes from.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.sealed_by.backend
    }

    /// Sixteen digits that name the key and say nothing of it.
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.sealed_by.mark
    }

    /// Whether the key keeps anything from anybody: not with `plaintext`.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.backend().is_protected()
    }

    pub(crate) fn sealed_by(&self) -> &SealedBy {
        &self.sealed_by
    }

    /// The key itself where it comes from a file: earlier versions used it as the first root as well.
    pub(crate) fn key_of_file(&self) -> Option<&KeyBytes> {
        (self.backend() == Backend::File).then_some(&self.key)
    }

    /// Seals the root of an id; `note` is what its row says of the master.
    pub(crate) fn wrap(&self, id: u32, note: &str, root: &KeyBytes) -> Result<Vec<u8>, KeyringError> {
        let mut nonce = [0; NONCE_LEN];
        crate::randomness::fill(&mut nonce).map_err(|_| KeyringError::Unusable)?;
        let mut sealed = Vec::with_capacity(1 + NONCE_LEN + root.len() + AES_256_GCM.tag_len());
        sealed.push(FORMAT);
        sealed.extend_from_slice(&nonce);
        let mut body = root.clone();
        let tag = self
            .wrapping
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(context(id, note)),
                body.as_mut_slice(),
            )
            .map_err(|_| KeyringError::Unusable)?;
        sealed.extend_from_slice(body.as_slice());
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// Opens what `wrap` made.
    pub(crate) fn unwrap_root(&self, id: u32, note: &str, sealed: &[u8]) -> Result<KeyBytes, KeyringError> {
        let Some((&FORMAT, rest)) = sealed.split_first() else { return Err(KeyringError::NotAuthentic) };
        let Some((nonce, body)) = rest.split_first_chunk::<NONCE_LEN>() else {
            return Err(KeyringError::NotAuthentic);
        };
        let mut body = zeroize::Zeroizing::new(body.to_vec());
        let plain = self
            .wrapping
            .open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(context(id, note)), body.as_mut_slice())
            .map_err(|_| KeyringError::NotAuthentic)?;
        if plain.len() != 32 {
            return Err(KeyringError::NotAuthentic);
        }
        let mut root = KeyBytes::default();
        root.copy_from_slice(plain);
        Ok(root)
    }
}

/// What is authenticated with a root, so that a row cannot be passed off as another one's.
fn context(id: u32, note: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(5 + note.len());
    bytes.push(FORMAT);
    bytes.extend_from_slice(&id.to_be_bytes());
    bytes.extend_from_slice(note.as_bytes());
    bytes
}

impl fmt::Debug for Master {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Master({})", self.backend())
    }
}
