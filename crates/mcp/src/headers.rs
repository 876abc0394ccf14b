//! The HTTP headers of MCP, and the values that mirror the body.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};

pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Parameters that a tool's schema wants repeated as headers begin with this.
pub const PARAMETER_PREFIX: &str = "mcp-param-";

/// The one value of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Single<'a> {
    Absent,
    One(&'a str),
    /// Twice, or not visible ASCII: who reads the first and who reads the last would disagree.
    Unusable,
}

/// Looks a header up that may stand there once.
#[must_use]
pub fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Single<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Single::Absent,
        (Some(value), None) => value.to_str().map_or(Single::Unusable, |text| Single::One(text.trim())),
        (Some(_), Some(_)) => Single::Unusable,
    }
}

/// A mirrored value: as it stands, or `=?base64?..?=` around its UTF-8.
#[must_use]
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    let Some(inner) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(Cow::Borrowed(value));
    };
    String::from_utf8(base64(inner)?).ok().map(Cow::Owned)
}

/// A value that mirrors a text of the body.
#[must_use]
pub fn encode(text: &str) -> HeaderValue {
    let is_plain = text.bytes().all(|byte| matches!(byte, 0x21..=0x7e)) && !text.starts_with("=?");
    let plain = is_plain.then(|| HeaderValue::from_str(text).ok()).flatten();
    let wrapped = || HeaderValue::try_from(format!("=?base64?{}?=", to_base64(text.as_bytes())));
    plain.or_else(|| wrapped().ok()).unwrap_or(HeaderValue::from_static("=?base64??="))
}

/// Bytes in the standard alphabet, padded.
#[must_use]
pub fn to_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let held = chunk.iter().enumerate().fold(0_u32, |held, (at, byte)| held | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let digit = usize::try_from(held >> (18 - 6 * at) & 0x3f).ok().and_then(|digit| DIGITS.get(digit));
            text.push(if at > chunk.len() { '=' } else { digit.map_or('=', |digit| char::from(*digit)) });
        }
    }
    text
}

/// Strict: the standard alphabet, whole padding, no loose bits.
#[must_use]
pub fn base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut held, mut bits) = (0_u32, 0_u32);
    for digit in digits.bytes() {
        held = held << 6 | u32::from(digit_value(digit)?);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).ok()?);
            held &= (1 << bits) - 1;
        }
    }
    (held == 0).then_some(bytes)
}

fn digit_value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
