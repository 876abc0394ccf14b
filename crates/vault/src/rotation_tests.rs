//! Rotation: each step leaves a list that works and from which the next one goes on, whoever does it.

use toolwarden_core::{Keyring, Purpose};

use super::{Step, add_waiting, make_current, next_step, retire, rewrap};
use crate::kit::{Outcome, Process, master};
use crate::{Backend, KeySource, KeyState, Master, Ring, RingError, StoredKey, root_of};

/// A store with rows, as far as a rotation sees it.
#[derive(Clone)]
struct Store {
    keys: Vec<StoredKey>,
    rows: Vec<Vec<u8>>,
}

impl Store {
    fn new(master: &Master) -> Outcome<Self> {
        let (ring, first) = Ring::first(master)?;
        let rows = (0..4).map(|row: u8| ring.seal(Purpose::Record, &[row], b"plain")).collect::<Result<_, _>>()?;
        Ok(Self { keys: vec![first], rows })
    }

    /// One step of what is left, kept as a whole or not at all; false where nothing is left.
    fn one_step(&mut self, master: &Master) -> Outcome<bool> {
        match next_step(&self.keys)? {
            Step::Nothing => return Ok(false),
            Step::MakeCurrent { id } => self.keys = make_current(&self.keys, id)?,
            Step::SealAgain { current } => {
                let ring = Ring::open(master, &self.keys)?;
                let left = self.rows.iter_mut().zip(0u8..).find(|(row, _)| root_of(row) != Some(current));
                let Some((row, number)) = left else {
                    self.keys = retire(&self.keys)?;
                    return Ok(true);
                };
                let plain = ring.open(Purpose::Record, &[number], row)?;
                *row = ring.seal(Purpose::Record, &[number], &plain)?;
            }
        }
        Ok(true)
    }

    fn check(&self, ring: &Ring) -> Outcome {
        for (row, number) in self.rows.iter().zip(0u8..) {
            assert_eq!(ring.open(Purpose::Record, &[number], row)?, b"plain");
        }
        Ok(())
    }
}

#[test]
fn vault_4_a_rotation_resumes_after_a_kill_between_any_two_steps() -> Outcome {
    let process = Process::new()?;
    let source = KeySource::File("a.key".into());
    let master = source.obtain(&process, &[])?;
    let mut store = Store::new(&master)?;
    // A replica that only ever hears of lists, and sealed a value of its own before it all.
    let replica = Ring::open(&master, &store.keys)?;
    let mark = replica.mark(Purpose::Record, b"a");
    drop(master);
    for round in 1..4 {
        let master = source.obtain(&process, &store.keys)?;
        let added = add_waiting(&master, &store.keys)?;
        // Killed before the list was stored: the next one adds another key, and nobody ever used the lost one.
        drop(added);
        store.keys = add_waiting(&master, &store.keys)?;
        drop(master);
        let mut steps = 0;
        loop {
            // Nothing but the store is left of the process that did the last step.
            let master = source.obtain(&process, &store.keys)?;
            let ring = Ring::open(&master, &store.keys)?;
            store.check(&ring)?;
            replica.take(&master, &store.keys)?;
            store.check(&replica)?;
            assert_eq!((replica.mark(Purpose::Record, b"a"), ring.mark(Purpose::Record, b"a")), (mark, mark));
            // What a replica seals at any moment, the others open.
            let sealed = replica.seal(Purpose::Token, b"", b"x")?;
            assert_eq!(ring.open(Purpose::Token, b"", &sealed)?, b"x");
            // Killed in the middle of a step: its work is lost, and it is done again.
            store.clone().one_step(&master)?;
            if !store.one_step(&master)? {
                break;
            }
            steps += 1;
        }
        assert_eq!(steps, 6, "one new current key, four rows, and the former key retired");
        assert_eq!(replica.current(), round + 1);
        assert!(store.rows.iter().all(|row| root_of(row) == Some(round + 1)));
    }
    Ok(())
}

#[test]
fn a_step_done_twice_changes_nothing() -> Outcome {
    let master = master()?;
    let (_, first) = Ring::first(&master)?;
    assert_eq!(next_step(std::slice::from_ref(&first))?, Step::Nothing);
    let waiting = add_waiting(&master, &[first])?;
    assert_eq!(add_waiting(&master, &waiting)?, waiting);
    assert_eq!(next_step(&waiting)?, Step::MakeCurrent { id: 2 });
    let current = make_current(&waiting, 2)?;
    assert_eq!(make_current(&current, 2)?, current);
    assert_eq!(next_step(&current)?, Step::SealAgain { current: 2 });
    let over = retire(&current)?;
    assert_eq!(
        (retire(&over)?, make_current(&over, 2)?, next_step(&over)?),
        (over.clone(), over.clone(), Step::Nothing)
    );
    let next = add_waiting(&master, &over)?;
    assert_eq!((retire(&next)?, next_step(&next)?), (next.clone(), Step::MakeCurrent { id: 3 }));
    let states: Vec<KeyState> = make_current(&next, 3)?.iter().map(|key| key.state).collect();
    assert_eq!(states, [KeyState::Retired, KeyState::Former, KeyState::Current]);
    let refused = |id, state| Err(RingError::NotWaiting { id, state });
    assert_eq!(make_current(&current, 1), refused(1, Some(KeyState::Former)));
    assert_eq!(make_current(&current, 3), refused(3, None));
    assert_eq!(make_current(&waiting, 1)?, waiting, "the waiting one goes on waiting");
    Ok(())
}

#[test]
fn vault_4_a_new_master_changes_no_root() -> Outcome {
    let process = Process::new()?.typing("correct horse");
    let old = KeySource::File("a.key".into()).obtain(&process, &[])?;
    let mut store = Store::new(&old)?;
    store.keys = make_current(&add_waiting(&old, &store.keys)?, 2)?;
    let replica = Ring::open(&old, &store.keys)?;
    let new = KeySource::Passphrase.obtain(&process, &[])?;
    let wrapped = rewrap(&old, &new, &store.keys)?;
    assert_eq!(rewrap(&old, &new, &wrapped)?, wrapped, "done again after a crash, it changes nothing");
    // Half of the rows stored is no state we make, and still nothing is lost by it.
    let half: Vec<StoredKey> = wrapped.iter().take(1).chain(store.keys.iter().skip(1)).cloned().collect();
    assert!(matches!(Ring::open(&new, &half), Err(RingError::WrongMaster { .. })));
    store.check(&Ring::open(&new, &rewrap(&old, &new, &half)?)?)?;
    // The old list stays good until the new one is stored, and from then on only the new master opens.
    store.check(&Ring::open(&old, &store.keys)?)?;
    assert!(matches!(Ring::open(&old, &wrapped), Err(RingError::WrongMaster { .. })));
    assert!(matches!(replica.take(&old, &wrapped), Err(RingError::WrongMaster { .. })));
    store.check(&replica)?;
    let again = KeySource::Auto.obtain(&process, &wrapped)?;
    assert_eq!(again.backend(), Backend::Passphrase);
    let ring = Ring::open(&again, &wrapped)?;
    store.check(&ring)?;
    assert!(replica.take(&again, &wrapped)?, "a replica that has the new master goes on with it");
    let wrong = master()?;
    assert!(matches!(rewrap(&wrong, &new, &store.keys), Err(RingError::WrongMaster { .. })));
    Ok(())
}
