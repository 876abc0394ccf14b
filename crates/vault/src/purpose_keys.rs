//! The keys of each purpose, derived from a root and from nothing else.
//!
//! HKDF-SHA-256 with the use and the purpose in `info`, so that no value made with one key means
//! anything under another. The same root gives the same keys in every process and after a restart.

use aws_lc_rs::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use toolwarden_core::{KeyringError, Purpose};
use zeroize::Zeroizing;

/// Fixed, so that this derivation is told apart from any other one over the same bytes.
const SALT: &[u8] = b"toolwarden keyring 1";

/// The three keys of one purpose.
pub(crate) struct PurposeKeys {
    pub(crate) sealing: LessSafeKey,
    pub(crate) marking: hmac::Key,
    pub(crate) signing: Ed25519KeyPair,
    pub(crate) public: [u8; 32],
}

/// The keys of every purpose; a new purpose in `core` does not compile until it has keys here.
pub(crate) struct AllKeys {
    session: PurposeKeys,
    request_state: PurposeKeys,
    cursor: PurposeKeys,
    argument_digest: PurposeKeys,
    checkpoint: PurposeKeys,
    launch: PurposeKeys,
    record: PurposeKeys,
    token: PurposeKeys,
    approval: PurposeKeys,
    link: PurposeKeys,
}

struct ThirtyTwo;

impl KeyType for ThirtyTwo {
    fn len(&self) -> usize {
        32
    }
}

impl AllKeys {
    pub(crate) fn derive(root: &[u8; 32]) -> Result<Self, KeyringError> {
        let root = Salt::new(HKDF_SHA256, SALT).extract(root);
        Ok(Self {
            session: PurposeKeys::derive(&root, Purpose::Session)?,
            request_state: PurposeKeys::derive(&root, Purpose::RequestState)?,
            cursor: PurposeKeys::derive(&root, Purpose::Cursor)?,
            argument_digest: PurposeKeys::derive(&root, Purpose::ArgumentDigest)?,
            checkpoint: PurposeKeys::derive(&root, Purpose::Checkpoint)?,
            launch: PurposeKeys::derive(&root, Purpose::Launch)?,
            record: PurposeKeys::derive(&root, Purpose::Record)?,
            token: PurposeKeys::derive(&root, Purpose::Token)?,
            approval: PurposeKeys::derive(&root, Purpose::Approval)?,
            link: PurposeKeys::derive(&root, Purpose::Link)?,
        })
    }

    pub(crate) fn of(&self, purpose: Purpose) -> &PurposeKeys {
        match purpose {
            Purpose::Session => &self.session,
            Purpose::RequestState => &self.request_state,
            Purpose::Cursor => &self.cursor,
            Purpose::ArgumentDigest => &self.argument_digest,
            Purpose::Checkpoint => &self.checkpoint,
            Purpose::Launch => &self.launch,
            Purpose::Record => &self.record,
            Purpose::Token => &self.token,
            Purpose::Approval => &self.approval,
            Purpose::Link => &self.link,
        }
    }
}

impl PurposeKeys {
    fn derive(root: &Prk, purpose: Purpose) -> Result<Self, KeyringError> {
        let sealing = expand(root, "seal", purpose)?;
        let sealing = UnboundKey::new(&AES_256_GCM, sealing.as_slice()).map_err(|_| KeyringError::Unusable)?;
        let marking = expand(root, "mark", purpose)?;
        let seed = expand(root, "sign", purpose)?;
        let signing = Ed25519KeyPair::from_seed_unchecked(seed.as_slice()).map_err(|_| KeyringError::Unusable)?;
        let public = signing.public_key().as_ref().try_into().map_err(|_| KeyringError::Unusable)?;
        Ok(Self {
            sealing: LessSafeKey::new(sealing),
            marking: hmac::Key::new(hmac::HMAC_SHA256, marking.as_slice()),
            signing,
            public,
        })
    }
}

/// What tells a root from another one without telling anything of it.
pub(crate) fn identity(root: &[u8; 32]) -> Result<Zeroizing<[u8; 32]>, KeyringError> {
    derived(&Salt::new(HKDF_SHA256, SALT).extract(root), &[b"identity"])
}

fn expand(root: &Prk, usage: &str, purpose: Purpose) -> Result<Zeroizing<[u8; 32]>, KeyringError> {
    derived(root, &[usage.as_bytes(), b"/", purpose.as_str().as_bytes()])
}

/// Thirty-two bytes for one use, named by `info`.
pub(crate) fn derived(root: &Prk, info: &[&[u8]]) -> Result<Zeroizing<[u8; 32]>, KeyringError> {
    let mut key = Zeroizing::new([0; 32]);
    let expanded = root.expand(info, ThirtyTwo).map_err(|_| KeyringError::Unusable)?;
    expanded.fill(key.as_mut_slice()).map_err(|_| KeyringError::Unusable)?;
    Ok(key)
}
