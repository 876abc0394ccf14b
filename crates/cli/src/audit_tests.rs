//! Times as people say them.

use std::time::Duration;

use super::When;

#[test]
fn spans_and_times_are_understood_and_nothing_else() {
    let ago = |seconds| Ok(When::Span(Duration::from_secs(seconds)));
    assert_eq!("90s".parse(), ago(90));
    assert_eq!("1h".parse(), ago(3600));
    assert_eq!("2w".parse(), ago(14 * 24 * 3600));
    assert!(matches!("2026-11-15T08:00:00Z".parse(), Ok(When::At(_))));
    for wrong in ["", "h", "1", "1y", "-1h", "1h30m", "yesterday", "99999999999999999999d"] {
        assert!(wrong.parse::<When>().is_err(), "{wrong}");
    }
}

#[test]
fn a_span_longer_than_time_reaches_to_the_beginning() {
    let now = jiff::Timestamp::constant(1_800_000_000, 0);
    assert_eq!(When::Span(Duration::from_secs(60)).resolve(now), jiff::Timestamp::constant(1_799_999_940, 0));
    assert_eq!(When::Span(Duration::from_secs(u64::MAX)).resolve(now), jiff::Timestamp::UNIX_EPOCH);
}
