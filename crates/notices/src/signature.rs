//! Signatures as Standard Webhooks has them: HMAC-SHA-256 over id, time and body, so that libraries in every language
//! check them. The time is part of it, and an old one counts for nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use sha2::Sha256;
use toolwarden_core::Secret;
use zeroize::Zeroizing;

pub(crate) const ID: &str = "webhook-id";
pub(crate) const TIME: &str = "webhook-timestamp";
pub(crate) const SIGNATURE: &str = "webhook-signature";

/// How far clocks may be apart.
const TOLERANCE_SECONDS: i64 = 5 * 60;
/// Before secrets that are written in base64.
const SECRET_PREFIX: &str = "whsec_";
const VERSION: &str = "v1,";

/// Why a message is not taken for what it says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSigned {
    #[error("the signature is missing or wrong")]
    Wrong,
    #[error("it was signed too long ago, or in the future")]
    Late,
}

/// What a message carries besides its body.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    pub id: &'a str,
    pub time: &'a str,
    pub signature: &'a str,
}

/// The key that a secret stands for; none where it says that it is written in base64, and is not.
pub(crate) fn key(secret: &Secret) -> Option<Zeroizing<Vec<u8>>> {
    let text = secret.reveal_to_upstream();
    let bytes = match text.strip_prefix(SECRET_PREFIX) {
        Some(coded) => STANDARD.decode(coded).ok()?,
        None => text.as_bytes().to_vec(),
    };
    Some(Zeroizing::new(bytes))
}

fn hmac(secret: &Secret, id: &str, time: &str, body: &[u8]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&key(secret)?).ok()?;
    for part in [id.as_bytes(), b".", time.as_bytes(), b".", body] {
        mac.update(part);
    }
    Some(mac)
}

/// The signature of a message.
pub(crate) fn sign(secret: &Secret, id: &str, time: &str, body: &[u8]) -> Option<String> {
    let mac = hmac(secret, id, time, body)?;
    Some(format!("{VERSION}{}", STANDARD.encode(mac.finalize().into_bytes())))
}

/// Whether somebody with the secret signed this, just now.
pub(crate) fn check(secret: &Secret, signed: Signed<'_>, body: &[u8], now: Timestamp) -> Result<(), NotSigned> {
    let is_one = |given: &str| {
        let given = given.strip_prefix(VERSION).and_then(|coded| STANDARD.decode(coded).ok());
        // Compared in a time that tells nothing.
        given
            .zip(hmac(secret, signed.id, signed.time, body))
            .is_some_and(|(given, mac)| mac.verify_slice(&given).is_ok())
    };
    if !signed.signature.split(' ').any(is_one) {
        return Err(NotSigned::Wrong);
    }
    let at: i64 = signed.time.parse().map_err(|_| NotSigned::Late)?;
    if now.as_second().saturating_sub(at).abs() > TOLERANCE_SECONDS { Err(NotSigned::Late) } else { Ok(()) }
}

#[cfg(test)]
#[path = "signature_tests.rs"]
mod tests;
