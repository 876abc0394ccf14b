//! Stored keys: only a whole list of the right master opens, and rows cannot be passed off as others.

use super::{KeyState, SealedBy, StoredKey, in_order};
use crate::kit::{Outcome, master};
use crate::ring::{RingError, fresh_root};
use crate::{Backend, KeySource, Ring, add_waiting, make_current};

fn list(states: &[(u32, KeyState)]) -> Vec<StoredKey> {
    let row = |&(id, state)| StoredKey { id, state, master: String::new(), sealed: Vec::new() };
    states.iter().map(row).collect()
}

#[test]
fn only_lists_that_rotation_makes_are_whole() {
    use KeyState::{Current, Former, Retired, Waiting};
    let whole: [&[_]; 8] = [
        &[(1, Current)],
        &[(1, Current), (2, Waiting)],
        &[(2, Current), (1, Former)],
        &[(1, Former), (2, Former), (3, Current)],
        &[(3, Waiting), (2, Current), (1, Former)],
        &[(1, Retired), (2, Current)],
        &[(1, Retired), (2, Current), (3, Waiting)],
        &[(1, Retired), (2, Former), (3, Current)],
    ];
    for states in whole {
        assert!(in_order(&list(states)).is_ok(), "{states:?}");
    }
    let broken: [&[_]; 14] = [
        &[],
        &[(0, Current)],
        &[(2, Current)],
        &[(1, Former)],
        &[(1, Waiting)],
        &[(1, Current), (2, Current)],
        &[(1, Current), (1, Former)],
        &[(1, Current), (2, Former)],
        &[(1, Waiting), (2, Current)],
        &[(1, Current), (2, Waiting), (3, Waiting)],
        &[(1, Former), (3, Current)],
        &[(1, Retired)],
        &[(1, Former), (2, Retired), (3, Current)],
        &[(1, Current), (2, Retired)],
    ];
    for states in broken {
        assert!(matches!(in_order(&list(states)), Err(RingError::Incomplete { .. })), "{states:?}");
    }
}

#[test]
fn a_row_cannot_stand_for_another_one() -> Outcome {
    let master = master()?;
    let root = fresh_root()?;
    let row = StoredKey::seal(&master, 1, KeyState::Current, &root)?;
    assert_eq!(row.open(&master)?, root);
    let renumbered = StoredKey { id: 2, ..row.clone() };
    assert_eq!(renumbered.open(&master), Err(RingError::Changed { id: 2 }));
    let renamed = StoredKey { master: row.master.replace("memory", "file"), ..row.clone() };
    assert_eq!(renamed.open(&master), Err(RingError::Changed { id: 1 }));
    for position in 0..row.sealed.len() {
        let mut changed = row.clone();
        if let Some(byte) = changed.sealed.get_mut(position) {
            *byte ^= 1;
        }
        assert_eq!(changed.open(&master), Err(RingError::Changed { id: 1 }));
        let short = StoredKey { sealed: row.sealed.iter().copied().take(position).collect(), ..row.clone() };
        assert_eq!(short.open(&master), Err(RingError::Changed { id: 1 }));
    }
    Ok(())
}

#[test]
fn vault_4_a_wrong_master_is_told_with_both_marks_and_changes_nothing() -> Outcome {
    let process = crate::kit::Process::new()?;
    let right = KeySource::File("one.key".into()).obtain(&process, &[])?;
    let (_, first) = Ring::first(&right)?;
    let stored = make_current(&add_waiting(&right, &[first])?, 2)?;
    let wrong = KeySource::File("two.key".into()).obtain(&process, &stored).err();
    assert!(wrong.is_some_and(|error| error.to_string().contains("no new key was made")));
    let wrong = master()?;
    let error = Ring::open(&wrong, &stored).err().ok_or("opened")?.to_string();
    assert!(error.contains(&format!("file {}", right.mark())), "{error}");
    assert!(error.contains(&format!("memory {}", wrong.mark())), "{error}");
    assert!(error.contains("file:PATH") && error.contains("nothing was changed"), "{error}");
    assert!(add_waiting(&wrong, &stored).is_err(), "nobody adds a key of another master");
    assert_eq!(Ring::open(&right, &stored)?.current(), 2, "the right one still opens them");
    Ok(())
}

#[test]
fn what_a_row_says_of_its_master_is_read_as_it_was_written() -> Outcome {
    let stretching = crate::Stretching::fresh()?;
    for backend in Backend::ALL {
        let mut said = SealedBy::new(backend, "0123456789abcdef".to_owned());
        if backend == Backend::Passphrase {
            said.stretching = Some(stretching.clone());
        }
        assert_eq!(said.to_string().parse::<SealedBy>(), Ok(said));
        assert_eq!(Backend::from_word(backend.as_str()), Some(backend));
    }
    for state in KeyState::ALL {
        assert_eq!(KeyState::from_word(state.as_str()), Some(state));
    }
    let refused = ["", "file", "file 0123", "file 0123456789ABCDEF", "floppy 0123456789abcdef"];
    let beside = ["file 0123456789abcdef x", "passphrase 0123456789abcdef"];
    for text in refused.into_iter().chain(beside) {
        assert_eq!(text.parse::<SealedBy>(), Err(()), "{text}");
    }
    assert_eq!(format!("file 0123456789abcdef {stretching}").parse::<SealedBy>(), Err(()));
    Ok(())
}
