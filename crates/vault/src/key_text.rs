//! Keys as text: the one form we write, and the forms we accept in a variable.
//!
//! Takes text, gives 32 bytes that wipe themselves, or nothing. Never says what was wrong with a
//! text, because any part of it may be part of a key.

use base64::Engine;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

/// Thirty-two secret bytes, wiped when dropped.
pub(crate) type KeyBytes = Zeroizing<[u8; 32]>;

/// What stands in front of the key, so that another text is never taken for one.
const FORMAT: &str = "toolwarden-key-1:";

/// The format and 64 hexadecimal digits.
pub(crate) const LENGTH: usize = FORMAT.len() + 64;

/// The key as we write it, without a line end.
pub(crate) fn write(key: &KeyBytes) -> Zeroizing<Vec<u8>> {
    // Room for the line end that a file gets, so that the buffer never moves and leaves a copy behind.
    let mut text = Zeroizing::new(Vec::with_capacity(LENGTH + 1));
    text.extend_from_slice(FORMAT.as_bytes());
    for byte in key.iter() {
        text.extend([byte >> 4, byte & 15].map(|half| if half < 10 { b'0' + half } else { b'a' + half - 10 }));
    }
    text
}

/// The key of a text that `write` made.
pub(crate) fn read(text: &[u8]) -> Option<KeyBytes> {
    let digits = text.strip_prefix(FORMAT.as_bytes())?;
    if digits.iter().any(u8::is_ascii_uppercase) {
        return None;
    }
    hexadecimal(digits)
}

/// The key of a variable: 64 hexadecimal digits, or base64 of 32 bytes in either alphabet, padded or not.
pub(crate) fn read_bare(text: &str) -> Option<KeyBytes> {
    let text = text.trim();
    hexadecimal(text.as_bytes()).or_else(|| base64(text, &STANDARD)).or_else(|| base64(text, &URL_SAFE))
}

fn hexadecimal(digits: &[u8]) -> Option<KeyBytes> {
    if digits.len() != 64 {
        return None;
    }
    let mut key = KeyBytes::default();
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    secret(key)
}

fn digit(character: u8) -> Option<u8> {
    char::from(character).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn base64(text: &str, alphabet: &Alphabet) -> Option<KeyBytes> {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(alphabet, config);
    // Room for more than a key, because the decoder wants it and a longer text must be noticed.
    let mut room = Zeroizing::new([0; 48]);
    if text.len() > 44 || engine.decode_slice(text, room.as_mut_slice()).ok()? != 32 {
        return None;
    }
    let mut key = KeyBytes::default();
    key.copy_from_slice(room.first_chunk::<32>()?);
    secret(key)
}

/// An emptied or zero-filled key would be no secret.
fn secret(key: KeyBytes) -> Option<KeyBytes> {
    if key.iter().all(|byte| *byte == 0) { None } else { Some(key) }
}

#[cfg(test)]
#[path = "key_text_tests.rs"]
mod tests;
