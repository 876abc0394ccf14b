//! Mirrored header values are read strictly.

use http::{HeaderMap, HeaderValue};

use super::{NAME, Single, decode, encode, single};

#[test]
fn base64_values_are_decoded_strictly() {
    for (value, decoded) in [
        ("plain", Some("plain")),
        ("=?base64?w7xiZXI=?=", Some("über")),
        ("=?base64??=", Some("")),
        ("=?base64?YQ==?=", Some("a")),
        ("=?base64?YR==?=", None),
        ("=?base64?YQ=?=", None),
        ("=?base64?YQ?=", None),
        ("=?base64?Y Q=?=", None),
        ("=?base64?_w==?=", None),
        ("=?base64?/w==?=", None),
    ] {
        assert_eq!(decode(value).as_deref(), decoded, "{value}");
    }
}

#[test]
fn a_header_given_twice_is_unusable() {
    let mut headers = HeaderMap::new();
    assert_eq!(single(&headers, &NAME), Single::Absent);
    headers.append(NAME, HeaderValue::from_static(" a "));
    assert_eq!(single(&headers, &NAME), Single::One("a"));
    headers.append(NAME, HeaderValue::from_static("a"));
    assert_eq!(single(&headers, &NAME), Single::Unusable);
}

#[test]
fn what_is_encoded_decodes() {
    for text in ["plain", "", "a b", "über", "=?base64?YQ==?=", "tab\t", "日本語", "a", "ab", "abc", "abcd"] {
        let value = encode(text);
        assert_eq!(value.to_str().ok().and_then(decode).as_deref(), Some(text), "{text}");
    }
}
