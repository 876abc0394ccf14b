//! Keys as text: every byte is read, in each form that is allowed, and nothing else is a key.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use zeroize::Zeroizing;

use super::{read, read_bare, write};

#[test]
fn every_byte_of_the_key_is_read() {
    let digits: String = (1..=32).map(|byte| format!("{byte:02x}")).collect();
    let key = read(format!("toolwarden-key-1:{digits}").as_bytes());
    assert!(key.is_some_and(|key| key.iter().copied().eq(1..=32)));
}

#[test]
fn a_variable_holds_a_whole_key_or_none() {
    let digits = "0f".repeat(32);
    assert!(read_bare(&digits).is_some());
    assert!(read_bare(&digits.to_uppercase()).is_some());
    assert!(read_bare(&format!(" {digits}\n")).is_some());
    let zero = [0; 32];
    let refused = [
        String::new(),
        "00".repeat(32),
        STANDARD.encode(zero),
        "0f".repeat(31),
        "0f".repeat(33),
        format!("0x{digits}"),
        "g".repeat(64),
        STANDARD.encode([1; 31]),
        STANDARD.encode([1; 33]),
        "hunter2".to_owned(),
        "ä".repeat(32),
        "0f ".repeat(32),
    ];
    for text in refused {
        assert!(read_bare(&text).is_none(), "{text}");
    }
}

proptest! {
    #[test]
    fn any_key_survives_every_form(bytes in any::<[u8; 32]>()) {
        let key = Zeroizing::new(bytes);
        if bytes != [0; 32] {
            prop_assert_eq!(read(&write(&key)), Some(key.clone()));
            let engines = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
            for engine in engines {
                prop_assert_eq!(read_bare(&engine.encode(bytes)), Some(key.clone()));
            }
        }
    }

    #[test]
    fn no_text_is_a_key_by_accident(text in any::<Vec<u8>>()) {
        prop_assert!(read(&text).is_none());
    }
}
