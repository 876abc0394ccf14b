//! Stretching: the same again from what is stored, another one from anything else, never at a ruinous cost.

use super::Stretching;
use crate::kit::Outcome;

#[test]
fn vault_4_a_passphrase_gives_its_key_again_from_what_is_stored() -> Outcome {
    let stretching = Stretching::fresh()?;
    let stored = stretching.to_string();
    assert!(stored.starts_with("argon2id:") && stored.ends_with(":65536:3:1"), "{stored}");
    let again: Stretching = stored.parse().map_err(|()| "not read")?;
    assert_eq!(again, stretching);
    let key = stretching.stretch("correct horse");
    assert!(key.is_some());
    assert_eq!(again.stretch("correct horse"), key);
    assert_ne!(again.stretch("correct horsf"), key);
    assert_ne!(Stretching::fresh()?.stretch("correct horse"), key, "another salt");
    Ok(())
}

#[test]
fn the_stretching_is_argon2id_as_everybody_knows_it() -> Outcome {
    // The reference program: echo -n password | argon2 somesaltsomesalt -id -t 2 -m 8 -p 1 -l 32 -r
    let text = format!("argon2id:{}:256:2:1", b"somesaltsomesalt".map(|byte| format!("{byte:02x}")).concat());
    let stretching: Stretching = text.parse().map_err(|()| "not read")?;
    let key = stretching.stretch("password").ok_or("no key")?;
    let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digits, "cab746b4621993fdc91ec50787980b414a90a692f0bc68dfe19f9c25b3cba9ec");
    Ok(())
}

#[test]
fn a_row_cannot_ask_for_more_than_a_machine_has() {
    let salt = "00".repeat(16);
    let refused = [
        format!("argon2id:{salt}:4294967295:3:1"),
        format!("argon2id:{salt}:65536:4000000000:1"),
        format!("argon2id:{salt}:65536:3:5000"),
        format!("argon2id:{salt}:0:3:1"),
        format!("argon2id:{salt}:65536:3"),
        format!("argon2id:{salt}:65536:3:1:1"),
        format!("argon2id:{salt}:065536:3:1"),
        format!("argon2id:{salt}00:65536:3:1"),
        format!("argon2id:+{}:65536:3:1", "0".repeat(31)),
        format!("argon2i:{salt}:65536:3:1"),
        String::new(),
    ];
    for text in refused {
        assert!(text.parse::<Stretching>().is_err(), "{text}");
    }
}
