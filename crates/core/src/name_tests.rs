//! ALLOW-2 and ALLOW-5: which names are valid, how they compare, how they are shown.

use super::{NameFault, check, folded, registration_key, shown};

#[test]
fn allow_2_valid_and_invalid_names() {
    let longest = "x".repeat(256);
    let longest_wide = "é".repeat(256);
    for name in ["a", "web.fetch", "get forecast", "データ", "my-server_1", &longest, &longest_wide, "a/b"] {
        assert_eq!(check(name), Ok(()), "{name}");
    }
    let too_long = "x".repeat(257);
    for (name, fault) in [
        ("", NameFault::Empty),
        ("   ", NameFault::Blank),
        ("\u{2003}", NameFault::Blank),
        (too_long.as_str(), NameFault::TooLong),
        ("a:b", NameFault::Reserved),
        ("*", NameFault::Reserved),
        ("a*", NameFault::Reserved),
        ("a\nb", NameFault::Control),
        ("a\u{0}b", NameFault::Control),
        ("a\u{7f}", NameFault::Control),
        ("a\u{85}b", NameFault::Control),
        ("a\u{2028}b", NameFault::Control),
        ("a\u{202e}b", NameFault::Control),
        ("a\u{2066}b", NameFault::Control),
    ] {
        assert_eq!(check(name), Err(fault), "{name:?}");
    }
}

#[test]
fn allow_2_names_are_shown_escaped() {
    assert_eq!(shown("plain"), "plain");
    assert_eq!(shown("a\u{202e}b\n"), "a\\u{202e}b\\u{a}");
    assert_eq!(shown("a\u{200b}b"), "a\\u{200b}b");
}

#[test]
fn allow_5_folding_is_ascii_only() {
    assert_eq!(folded("GitHub"), "github");
    assert_eq!(folded("ÄB"), "Äb");
    // The Kelvin sign is not the letter k.
    assert_ne!(folded("\u{212a}"), folded("k"));
    // But two servers may not hide behind that difference.
    assert_eq!(registration_key("\u{212a}"), registration_key("k"));
    assert_eq!(registration_key("caf\u{e9}"), registration_key("cafe\u{301}"));
}
