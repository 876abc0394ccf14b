//! Sealing, marking and signing: what one purpose, binding or key made, no other accepts.

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use toolwarden_core::{Keyring, KeyringError, Purpose};

use super::FileKeyring;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn keyring() -> Result<(tempfile::TempDir, FileKeyring), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let keyring = FileKeyring::open(directory.path())?;
    Ok((directory, keyring))
}

#[test]
fn a_sealed_value_opens_only_as_it_was_made() -> Outcome {
    let (_directory, keyring) = keyring()?;
    let (_other_directory, other) = self::keyring()?;
    for purpose in Purpose::ALL {
        let sealed = keyring.seal(purpose, b"anna", b"plain")?;
        assert_eq!(keyring.open(purpose, b"anna", &sealed)?, b"plain");
        assert_eq!(keyring.open(purpose, b"ann", &sealed), Err(KeyringError::NotAuthentic));
        assert_eq!(other.open(purpose, b"anna", &sealed), Err(KeyringError::NotAuthentic));
        for wrong in Purpose::ALL.into_iter().filter(|wrong| *wrong != purpose) {
            assert_eq!(keyring.open(wrong, b"anna", &sealed), Err(KeyringError::NotAuthentic));
        }
    }
    Ok(())
}

#[test]
fn every_bit_of_a_sealed_value_counts() -> Outcome {
    let (_directory, keyring) = keyring()?;
    let sealed = keyring.seal(Purpose::Session, b"", b"some plain bytes")?;
    for position in 0..sealed.len() {
        for bit in 0..8 {
            let mut changed = sealed.clone();
            if let Some(byte) = changed.get_mut(position) {
                *byte ^= 1 << bit;
            }
            assert_eq!(keyring.open(Purpose::Session, b"", &changed), Err(KeyringError::NotAuthentic));
        }
        let short = sealed.get(..position).unwrap_or_default();
        assert_eq!(keyring.open(Purpose::Session, b"", short), Err(KeyringError::NotAuthentic));
    }
    Ok(())
}

#[test]
fn the_same_plain_bytes_are_never_sealed_alike() -> Outcome {
    let (_directory, keyring) = keyring()?;
    let mut seen = std::collections::HashSet::new();
    for _ in 0..1000 {
        assert!(seen.insert(keyring.seal(Purpose::Cursor, b"", b"x")?));
    }
    Ok(())
}

#[test]
fn marks_differ_by_purpose_bytes_and_key_and_stay_after_a_restart() -> Outcome {
    let (directory, keyring) = keyring()?;
    let (_other_directory, other) = self::keyring()?;
    let mut seen = std::collections::HashSet::new();
    for purpose in Purpose::ALL {
        assert!(seen.insert(keyring.mark(purpose, b"a")));
        assert!(seen.insert(keyring.mark(purpose, b"b")));
        assert!(seen.insert(other.mark(purpose, b"a")));
        assert_eq!(FileKeyring::open(directory.path())?.mark(purpose, b"a"), keyring.mark(purpose, b"a"));
    }
    Ok(())
}

#[test]
fn signatures_hold_for_their_bytes_purpose_and_key_only() -> Outcome {
    let (directory, keyring) = keyring()?;
    let (_other_directory, other) = self::keyring()?;
    let signature = keyring.sign(Purpose::Checkpoint, b"head")?;
    assert!(keyring.verifies(Purpose::Checkpoint, b"head", &signature));
    assert!(FileKeyring::open(directory.path())?.verifies(Purpose::Checkpoint, b"head", &signature));
    assert!(!keyring.verifies(Purpose::Checkpoint, b"heat", &signature));
    assert!(!keyring.verifies(Purpose::Session, b"head", &signature));
    assert!(!other.verifies(Purpose::Checkpoint, b"head", &signature));
    // Somebody else's signature is good under their own key, which must not be enough.
    let foreign = other.sign(Purpose::Checkpoint, b"head")?;
    assert!(!keyring.verifies(Purpose::Checkpoint, b"head", &foreign));
    for position in 0..64 {
        let mut changed = signature.clone();
        if let Some(byte) = changed.bytes.get_mut(position) {
            *byte ^= 1;
        }
        assert!(!keyring.verifies(Purpose::Checkpoint, b"head", &changed));
    }
    Ok(())
}

#[test]
fn debug_shows_nothing() -> Outcome {
    let (_directory, keyring) = keyring()?;
    assert_eq!(format!("{keyring:?}"), "FileKeyring");
    Ok(())
}

#[test]
fn random_bytes_differ() -> Outcome {
    let (_directory, keyring) = keyring()?;
    let (mut first, mut second) = ([0; 32], [0; 32]);
    keyring.random(&mut first)?;
    keyring.random(&mut second)?;
    assert_ne!(first, second);
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_survive_sealing(plain in any::<Vec<u8>>(), bound_to in any::<Vec<u8>>()) {
        let made = keyring();
        prop_assert!(made.is_ok());
        if let Ok((_directory, keyring)) = made {
            let sealed = keyring.seal(Purpose::RequestState, &bound_to, &plain);
            prop_assert!(sealed.is_ok());
            let opened = keyring.open(Purpose::RequestState, &bound_to, &sealed.unwrap_or_default());
            prop_assert_eq!(opened, Ok(plain.clone()));
        }
    }
}
