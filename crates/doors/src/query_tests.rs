//! Which mode an address asks for.

use super::Query;

/// Ways to write a mode that somebody means and no program of ours reads as one.
const MEANT: [&str; 28] = [
    "x=1;mode=strict",
    "mode=strict;x=1&a",
    "x=1&amp;mode=strict",
    "mode[]=strict",
    "mode%5B%5D=strict",
    "mode:strict",
    "+mode=strict",
    "?mode=strict",
    "mode%3Dstrict",
    "mode%00=strict",
    "mode%E2%80%8B=strict",
    "mod=review",
    "modes=code",
    "Mode=code",
    "MODE=code",
    "%6Dodes=code",
    "%6Dode=code",
    "mode=a&mode=b",
    "mode=%zz",
    "mode%20=x",
    "mode",
    "mode=code&",
    "&mode=code",
    "mode=code&x=1",
    "a=b",
    "model=x",
    "session=1&mode=code",
    "&",
];

#[test]
fn mode_8_an_address_says_one_mode_or_nothing() {
    let mode = |query| Query::read(query, false).ok().map(|said| said.mode.map(std::borrow::Cow::into_owned));
    for (query, wanted) in [
        (None, None),
        (Some(""), None),
        (Some("mode=code"), Some("code")),
        (Some("mode=c%6fde"), Some("code")),
        // No mode is called so, which is said later.
        (Some("mode="), Some("")),
        (Some("mode=code;x"), Some("code;x")),
        (Some("mode=code=x"), Some("code=x")),
    ] {
        assert_eq!(mode(query), Some(wanted.map(str::to_owned)), "{query:?}");
    }
    for query in MEANT {
        assert!(Query::read(Some(query), false).is_err(), "{query}");
    }
}

#[test]
fn mode_8_sessions_are_named_where_the_oldest_door_is_posted_to() {
    let read = |query| Query::read(Some(query), true);
    assert!(read("session=1").is_ok_and(|said| said.session == Some("1") && said.mode.is_none()));
    let both = read("session=1&mode=c%6fde");
    assert!(both.is_ok_and(|said| said.session == Some("1") && said.mode_pair == Some("mode=c%6fde")));
    for query in ["session=1&session=2", "Session=1", "session=1;mode=code", "session=1&amp;mode=code"] {
        assert!(read(query).is_err(), "{query}");
    }
}
