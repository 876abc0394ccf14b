//! The form of a sealed value: a format byte, the root's number, a nonce, and AES-256-GCM with its tag.
//!
//! Format, number, purpose and binding are authenticated with the plain bytes, so that none of them
//! can be exchanged. Opening anything else says only "not authentic".

use aws_lc_rs::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};
use toolwarden_core::{KeyringError, Purpose};

/// Which way of sealing. 1 had no root's number; its values lived for minutes, and nobody opens them now.
const FORMAT: u8 = 2;

/// Format and number.
const HEAD: usize = 1 + size_of::<u32>();

/// The number of the root that sealed a value, read without opening it, and so without any promise
/// that the value is authentic. None where it is no sealed value at all.
#[must_use]
pub fn root_of(sealed: &[u8]) -> Option<u32> {
    let (&FORMAT, rest) = sealed.split_first()? else { return None };
    rest.first_chunk().map(|number| u32::from_be_bytes(*number))
}

/// How every value of a root begins, for whoever looks for these without opening them.
#[must_use]
pub fn head_of(root: u32) -> [u8; HEAD] {
    let [a, b, c, d] = root.to_be_bytes();
    [FORMAT, a, b, c, d]
}

pub(crate) fn seal(
    key: &LessSafeKey,
    root: u32,
    purpose: Purpose,
    bound_to: &[u8],
    plain: &[u8],
) -> Result<Vec<u8>, KeyringError> {
    let mut nonce = [0; NONCE_LEN];
    crate::randomness::fill(&mut nonce).map_err(|_| KeyringError::Unusable)?;
    let mut sealed = Vec::with_capacity(HEAD + NONCE_LEN + plain.len() + key.algorithm().tag_len());
    sealed.push(FORMAT);
    sealed.extend_from_slice(&root.to_be_bytes());
    sealed.extend_from_slice(&nonce);
    sealed.extend_from_slice(plain);
    let (_, body) = sealed.split_at_mut(HEAD + NONCE_LEN);
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = key
        .seal_in_place_separate_tag(nonce, Aad::from(context(root, purpose, bound_to)), body)
        .map_err(|_| KeyringError::Unusable)?;
    sealed.extend_from_slice(tag.as_ref());
    Ok(sealed)
}

pub(crate) fn open(
    key: &LessSafeKey,
    root: u32,
    purpose: Purpose,
    bound_to: &[u8],
    sealed: &[u8],
) -> Result<Vec<u8>, KeyringError> {
    let rest = sealed.get(HEAD..).ok_or(KeyringError::NotAuthentic)?;
    let (nonce, body) = rest.split_first_chunk::<NONCE_LEN>().ok_or(KeyringError::NotAuthentic)?;
    let mut body = body.to_vec();
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let plain = key
        .open_in_place(nonce, Aad::from(context(root, purpose, bound_to)), &mut body)
        .map_err(|_| KeyringError::NotAuthentic)?
        .len();
    body.truncate(plain);
    Ok(body)
}

/// What is authenticated beside the plain bytes. The length keeps the parts apart.
fn context(root: u32, purpose: Purpose, bound_to: &[u8]) -> Vec<u8> {
    let name = purpose.as_str().as_bytes();
    let mut bytes = Vec::with_capacity(HEAD + 1 + name.len() + bound_to.len());
    bytes.push(FORMAT);
    bytes.extend_from_slice(&root.to_be_bytes());
    bytes.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(bound_to);
    bytes
}
