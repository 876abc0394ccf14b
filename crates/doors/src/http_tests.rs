//! Which mode a URL asks for.

use super::mode_of;

#[test]
fn mode_8_a_mode_that_is_meant_and_cannot_be_told_is_refused() {
    for (query, mode) in [
        ("", None),
        ("a=b", None),
        ("model=x", None),
        ("mode=code", Some("code")),
        ("session=1&mode=c%6fde", Some("code")),
    ] {
        assert_eq!(mode_of(query).ok(), Some(mode.map(str::to_owned)), "{query}");
    }
    for query in ["modes=code", "Mode=code", "MODE=code", "%6Dodes=code", "mode=a&mode=b", "mode=%zz", "mode%20=x"] {
        assert!(mode_of(query).is_err(), "{query}");
    }
}
