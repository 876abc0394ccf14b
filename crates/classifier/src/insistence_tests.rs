//! After so many that were held nobody is asked, for that caller and tool, for a while.

use jiff::Timestamp;
use toolwarden_core::Digest;

use super::{HELD, Insistence};
use crate::Failure;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_481_600 + second).unwrap_or_default()
}

#[test]
fn review_2_whoever_asks_again_in_other_words_is_a_persons_turn() {
    let (insistence, one, other) = (Insistence::default(), Digest::of_bytes(b"one"), Digest::of_bytes(b"other"));
    for second in 0..HELD {
        let second = i64::try_from(second).unwrap_or_default();
        assert_eq!(insistence.enter(one, at(second)), Ok(()), "{second}");
        insistence.held(one, at(second));
    }
    assert_eq!(insistence.enter(one, at(599)), Err(Failure::Insists));
    assert_eq!(insistence.enter(one, at(-10)), Err(Failure::Insists), "a clock that goes back gives nothing back");
    assert_eq!(insistence.enter(other, at(10)), Ok(()), "others are asked about");
    assert_eq!(insistence.enter(one, at(601)), Ok(()), "the first ones count no more");
}
