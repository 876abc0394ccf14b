//! Tokens: what is made is read again, what is not one is refused, and no secret shows.

use proptest::prelude::{any, proptest};
use proptest::{prop_assert, prop_assert_eq};

use super::{NewToken, ShownToken, TOKEN_BYTES};

#[test]
fn gate_3_a_token_is_read_again_and_shows_no_secret() {
    let token = NewToken::of_random(&[0xa5; TOKEN_BYTES]);
    let text = token.text.reveal_to_upstream().to_owned();
    assert_eq!(text.len(), 3 + 13 + 1 + 52, "{text}");
    let shown = ShownToken::parse(&text);
    assert!(shown.as_ref().is_some_and(|shown| shown.id == token.id && shown.digest() == token.digest));
    let secret = text.rsplit('_').next().unwrap_or_default();
    assert!(!format!("{token:?}{shown:?}").contains(secret));
}

#[test]
fn what_is_no_token_is_refused() {
    let token = NewToken::of_random(&[7; TOKEN_BYTES]);
    let text = token.text.reveal_to_upstream();
    for wrong in [
        "",
        "tw_",
        "tw__",
        "sk-live-123",
        text.get(1..).unwrap_or_default(),
        &text.to_uppercase(),
        &format!("{text} "),
        &format!("{text}0"),
        &text.replace('_', "-"),
        text.get(..text.len() - 1).unwrap_or_default(),
    ] {
        assert!(ShownToken::parse(wrong).is_none(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn other_bytes_are_another_token(bytes in any::<[u8; TOKEN_BYTES]>(), place in 0..TOKEN_BYTES * 8) {
        let mut other = bytes;
        if let Some(byte) = other.get_mut(place / 8) {
            *byte ^= 1 << (place % 8);
        }
        let (one, other) = (NewToken::of_random(&bytes), NewToken::of_random(&other));
        prop_assert!(one.text.reveal_to_upstream() != other.text.reveal_to_upstream());
        prop_assert_eq!(one.digest == other.digest, place < 64);
    }
}
