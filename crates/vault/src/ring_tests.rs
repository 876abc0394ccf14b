//! The ring: what one root, purpose or binding made, no other accepts; newer lists are taken over in use.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use toolwarden_core::{Keyring, KeyringError, Purpose};

use super::{OVERLAP, Ring, RingError};
use crate::kit::{KNOWN, Outcome, Process, known_master, master, tells_of};
use crate::{
    Backend, FileKeyring, KEY_FILE, KeySource, Master, StoredKey, add_waiting, head_of, make_current, retire, root_of,
};

/// A ring whose third root is current, and what it was made of.
fn third() -> Outcome<(Master, Vec<StoredKey>, Ring)> {
    let master = master()?;
    let (_, first) = Ring::first(&master)?;
    let two = make_current(&add_waiting(&master, &[first])?, 2)?;
    let three = make_current(&add_waiting(&master, &two)?, 3)?;
    let ring = Ring::open(&master, &three)?;
    Ok((master, three, ring))
}

/// A sealed value that names another root.
fn naming(sealed: &[u8], root: u32) -> Vec<u8> {
    let mut changed = sealed.to_vec();
    for (to, from) in changed.iter_mut().skip(1).zip(root.to_be_bytes()) {
        *to = from;
    }
    changed
}

#[test]
fn a_sealed_value_opens_only_as_it_was_made() -> Outcome {
    let ((_, _, ring), (_, _, other)) = (third()?, third()?);
    for purpose in Purpose::ALL {
        let sealed = ring.seal(purpose, b"anna", b"plain")?;
        assert_eq!(root_of(&sealed), Some(3));
        assert_eq!(ring.open(purpose, b"anna", &sealed)?, b"plain");
        assert_eq!(ring.open(purpose, b"ann", &sealed), Err(KeyringError::NotAuthentic));
        assert_eq!(other.open(purpose, b"anna", &sealed), Err(KeyringError::NotAuthentic));
        for wrong in Purpose::ALL.into_iter().filter(|wrong| *wrong != purpose) {
            assert_eq!(ring.open(wrong, b"anna", &sealed), Err(KeyringError::NotAuthentic));
        }
        for root in [0, 1, 2, 4, u32::MAX] {
            let renamed = naming(&sealed, root);
            assert_eq!(root_of(&renamed), Some(root));
            assert_eq!(ring.open(purpose, b"anna", &renamed), Err(KeyringError::NotAuthentic));
        }
    }
    let sealed = ring.seal(Purpose::Token, b"", b"plain")?;
    assert!(sealed.starts_with(&head_of(3)) && root_of(&head_of(7)) == Some(7));
    assert_eq!(root_of(b""), None);
    assert_eq!(root_of(&[1, 0, 0, 0, 1, 9]), None, "another format");
    Ok(())
}

#[test]
fn vault_4_values_of_every_former_root_open_verify_and_mark_alike() -> Outcome {
    let master = master()?;
    let (mut ring, first) = Ring::first(&master)?;
    let mut stored = vec![first];
    let mark = ring.mark(Purpose::Record, b"a");
    let (mut values, mut signatures) = (Vec::new(), Vec::new());
    for id in 1..=5 {
        values.push(ring.seal(Purpose::Token, b"anna", &[id])?);
        signatures.push(ring.sign(Purpose::Checkpoint, b"head")?);
        stored = make_current(&add_waiting(&master, &stored)?, u32::from(id) + 1)?;
        ring = Ring::open(&master, &stored)?;
    }
    for (value, id) in values.iter().zip(1..) {
        assert_eq!(root_of(value), Some(id));
        assert_eq!(ring.open(Purpose::Token, b"anna", value)?, [u8::try_from(id)?]);
    }
    let publics: HashSet<_> = signatures.iter().map(|signature| signature.public_key).collect();
    assert_eq!(publics.len(), 5, "each root signs with a key of its own");
    assert!(signatures.iter().all(|signature| ring.verifies(Purpose::Checkpoint, b"head", signature)));
    assert!(!signatures.iter().any(|signature| ring.verifies(Purpose::Session, b"head", signature)));
    assert_eq!(ring.mark(Purpose::Record, b"a"), mark);
    assert_eq!(ring.current(), 6);
    Ok(())
}

/// What is given out and brought back; everything else lasts.
const PASSING: [Purpose; 4] = [Purpose::Session, Purpose::RequestState, Purpose::Cursor, Purpose::Link];

/// Every purpose, by roots before and after their time: lasting values open for ever, passing ones by the root in use and
/// for a while by the one that it replaced.
#[test]
fn self_7_a_former_root_opens_no_new_link_login_session_state_or_cursor() -> Outcome {
    let master = master()?;
    let (ring, first) = Ring::first(&master)?;
    let made = |ring: &Ring| {
        Purpose::ALL.map(|purpose| {
            (purpose, ring.seal(purpose, b"anna", b"x").unwrap_or_default(), ring.sign(purpose, b"x").ok())
        })
    };
    let of_first = made(&ring);
    let waiting = add_waiting(&master, &[first])?;
    let two = make_current(&waiting, 2)?;
    let early = made(&Ring::open(&master, &two)?);
    let opens = |ring: &Ring, values: &[_], lasting_only: bool| {
        values.iter().all(|(purpose, value, signature): &(Purpose, Vec<u8>, Option<_>)| {
            let wanted = !lasting_only || !PASSING.contains(purpose);
            let verifies = signature.as_ref().is_some_and(|it| ring.verifies(*purpose, b"x", it));
            ring.open(*purpose, b"anna", value).is_ok() == wanted && verifies == wanted
        })
    };
    assert!(ring.take(&master, &waiting)?);
    assert!(opens(&ring, &early, false), "another gateway may be first to use the new root");
    let form = ring.mark(Purpose::Link, b"form");
    assert!(ring.take(&master, &two)?);
    assert!(opens(&ring, &of_first, false), "for a while, in a process that saw it replaced");
    assert_ne!(ring.mark(Purpose::Link, b"form"), form, "forms are marked by the root in use");
    let roots = ring.roots.load();
    let late = roots.replaced.first().map(|(_, since)| *since + OVERLAP).ok_or("it is remembered")?;
    for (purpose, value, _) in &of_first {
        let is_open = roots.open_at(late, *purpose, b"anna", value).is_ok();
        assert_eq!(is_open, !PASSING.contains(purpose), "{purpose:?}");
    }
    // A process that starts later, whatever the state of the rows: former, and retired.
    for stored in [two.clone(), retire(&two)?] {
        let ring = Ring::open(&master, &stored)?;
        assert!(opens(&ring, &of_first, true) && opens(&ring, &early, false));
        let forged = Ring::open(&master, &waiting)?;
        assert!(opens(&ring, &made(&forged), true), "made now with the former root");
    }
    // Nor does a root that was replaced twice come back.
    let three = make_current(&add_waiting(&master, &two)?, 3)?;
    assert!(ring.take(&master, &three)? && opens(&ring, &early, false) && ring.current() == 3);
    Ok(())
}

#[test]
fn vault_4_what_a_key_file_signed_and_marked_can_be_checked_without_the_store() -> Outcome {
    let process = Process::new()?;
    let former = FileKeyring::open(&process.place("config"))?;
    let (mark, signature) = (former.mark(Purpose::Launch, b"a"), former.sign(Purpose::Checkpoint, b"head")?);
    let (ring, stored) = Ring::continued(&KeySource::Auto.obtain(&process, &[])?)?;
    assert_eq!(ring.mark(Purpose::Launch, b"a"), mark);
    assert!(ring.verifies(Purpose::Checkpoint, b"head", &signature));
    let master = KeySource::Auto.obtain(&process, std::slice::from_ref(&stored))?;
    let later = Ring::open(&master, &make_current(&add_waiting(&master, &[stored])?, 2)?)?;
    assert_eq!(later.mark(Purpose::Launch, b"a"), mark);
    assert!(later.verifies(Purpose::Checkpoint, b"head", &signature));
    Ok(())
}

#[test]
fn self_7_the_first_root_of_a_new_store_is_random_whatever_the_master_is() -> Outcome {
    let fresh = Process::new()?;
    let master = KeySource::File(KEY_FILE.into()).obtain(&fresh, &[])?;
    let (ring, stored) = Ring::first(&master)?;
    let bare = FileKeyring::open(&fresh.place("config"))?;
    assert_ne!(ring.mark(Purpose::Launch, b"a"), bare.mark(Purpose::Launch, b"a"));
    let signature = bare.sign(Purpose::Checkpoint, b"head")?;
    assert!(!ring.verifies(Purpose::Checkpoint, b"head", &signature), "the file alone signs nothing");
    let sealed = bare.seal(Purpose::Link, b"link", b"forged")?;
    assert!(Keyring::open(&ring, Purpose::Link, b"link", &sealed).is_err(), "the file alone makes no link");
    // The file opens it with what the store holds, and two stores of one file share nothing.
    assert_eq!(Ring::open(&master, &[stored])?.mark(Purpose::Launch, b"a"), ring.mark(Purpose::Launch, b"a"));
    assert_ne!(Ring::first(&master)?.0.mark(Purpose::Launch, b"a"), ring.mark(Purpose::Launch, b"a"));
    Ok(())
}

#[test]
fn a_ring_takes_newer_lists_and_no_older_or_foreign_ones() -> Outcome {
    let master = master()?;
    let (ring, first) = Ring::first(&master)?;
    let one = vec![first];
    let waiting = add_waiting(&master, &one)?;
    let two = make_current(&waiting, 2)?;
    assert!(ring.take(&master, &one)?);
    assert!(ring.take(&master, &waiting)?);
    assert_eq!((ring.current(), ring.latest()), (1, 2));
    let early = Ring::open(&master, &two)?.seal(Purpose::Record, b"", b"x")?;
    assert_eq!(ring.open(Purpose::Record, b"", &early)?, b"x", "a waiting root opens");
    assert!(ring.take(&master, &two)?);
    for older in [&one, &waiting] {
        assert!(!ring.take(&master, older)?);
        assert_eq!(ring.current(), 2);
    }
    let (_, another) = Ring::first(&master)?;
    assert_eq!(ring.take(&master, &[another]), Err(RingError::Foreign { id: 1 }));
    let wrong = self::master()?;
    assert!(matches!(ring.take(&wrong, &two), Err(RingError::WrongMaster { .. })));
    assert!(matches!(ring.take(&master, &[]), Err(RingError::Incomplete { .. })));
    assert_eq!(ring.open(Purpose::Record, b"", &early)?, b"x", "it goes on after every refusal");
    Ok(())
}

#[test]
fn vault_4_a_ring_is_used_while_it_takes_lists() -> Outcome {
    let master = master()?;
    let (ring, first) = Ring::first(&master)?;
    let mark = ring.mark(Purpose::Record, b"a");
    let over = AtomicBool::new(false);
    let uses = || -> Result<u32, KeyringError> {
        let mut kept = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let sealed = ring.seal(Purpose::Token, b"b", b"plain")?;
            if ring.open(Purpose::Token, b"b", &sealed)? != b"plain" || ring.mark(Purpose::Record, b"a") != mark {
                return Err(KeyringError::NotAuthentic);
            }
            let signature = ring.sign(Purpose::Checkpoint, b"head")?;
            if !ring.verifies(Purpose::Checkpoint, b"head", &signature) {
                return Err(KeyringError::NotAuthentic);
            }
            kept.push(sealed);
        }
        for sealed in &kept {
            ring.open(Purpose::Token, b"b", sealed)?;
        }
        Ok(kept.iter().filter_map(|sealed| root_of(sealed)).max().unwrap_or(0))
    };
    let rotate = || -> Result<(), RingError> {
        let mut stored = vec![first];
        for id in 2..30 {
            stored = add_waiting(&master, &stored)?;
            ring.take(&master, &stored)?;
            stored = make_current(&stored, id)?;
            ring.take(&master, &stored)?;
        }
        Ok(())
    };
    let (rotated, used) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(uses)).collect();
        let rotated = rotate();
        over.store(true, Ordering::Relaxed);
        (rotated, threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>())
    });
    rotated?;
    for thread in used {
        assert!(thread.map_err(|_| "a thread broke")?? <= 29);
    }
    assert_eq!(ring.current(), 29);
    Ok(())
}

#[test]
fn vault_6_nothing_that_can_be_shown_tells_of_a_key() -> Outcome {
    assert!(tells_of(&format!("{KNOWN:?}"), &KNOWN) && tells_of(&format!("{KNOWN:02x?}").replace(", ", ""), &KNOWN));
    let mut shown = String::new();
    for backend in Backend::ALL {
        let mut master = known_master(backend)?;
        if backend == Backend::Passphrase {
            master = master.with_stretching(crate::Stretching::fresh()?);
        }
        let (ring, stored) = Ring::first(&master)?;
        let waiting = add_waiting(&master, std::slice::from_ref(&stored))?;
        let sealed_by = stored.sealed_by();
        shown += &format!("{master:?} {ring:?} {stored:?} {stored:#?} {waiting:?} {sealed_by:?} {} ", stored.master);
        shown += &format!("{:?} ", stored.sealed);
        let wrong = Ring::open(&self::master()?, &waiting).err().ok_or("opened")?;
        let other = self::master()?;
        let (_, foreign) = Ring::first(&other)?;
        let found = Ring::open(&master, &[foreign]).err().ok_or("opened")?;
        shown += &format!("{wrong:?} {wrong} {found:?} {found} ");
    }
    assert!(!tells_of(&shown, &KNOWN), "{shown}");
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_survive_sealing_and_no_change_does(
        plain in any::<Vec<u8>>(),
        bound_to in any::<Vec<u8>>(),
        other in any::<Vec<u8>>(),
        place in any::<proptest::sample::Index>(),
        bit in 0..8u8,
    ) {
        let made = known_master(Backend::Memory).and_then(|master| Ok(Ring::first(&master)?.0));
        prop_assert!(made.is_ok());
        if let Ok(ring) = made {
            let sealed = ring.seal(Purpose::Record, &bound_to, &plain).unwrap_or_default();
            prop_assert_eq!(ring.open(Purpose::Record, &bound_to, &sealed), Ok(plain.clone()));
            if other != bound_to {
                prop_assert_eq!(ring.open(Purpose::Record, &other, &sealed), Err(KeyringError::NotAuthentic));
            }
            let mut changed = sealed.clone();
            if let Some(byte) = changed.get_mut(place.index(sealed.len())) {
                *byte ^= 1 << bit;
            }
            prop_assert_eq!(ring.open(Purpose::Record, &bound_to, &changed), Err(KeyringError::NotAuthentic));
        }
    }

    #[test]
    fn no_bytes_open_by_accident(bytes in any::<Vec<u8>>()) {
        let made = known_master(Backend::Memory).and_then(|master| Ok(Ring::first(&master)?.0));
        if let Ok(ring) = made {
            prop_assert_eq!(ring.open(Purpose::Record, b"", &bytes), Err(KeyringError::NotAuthentic));
        }
    }
}
