//! GATE-16: where nothing is said to be wider, no question has a lower decision.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, proptest};
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestCaseError, TestRunner};
use toolwarden_advice::widens;
use toolwarden_policy::{PolicySet, Query, decide};

use crate::ask::{cases, compile};
use crate::edits::edit;
use crate::generate::{queries, world};
use crate::naive::World;
use crate::tape::Tape;

/// Three edits at most, each from its own piece of the tape.
fn edited(world: &World, tape: &[u8]) -> World {
    let mut changed = world.clone();
    let mut tape = Tape::new(tape);
    for _ in 0..=tape.byte() % 3 {
        edit(&mut tape.section(64), &mut changed);
    }
    changed
}

fn edits() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 200)
}

/// Both ways: what narrows in one direction widens in the other.
fn holds(one: &PolicySet, other: &PolicySet, queries: &[Query]) -> Result<(), TestCaseError> {
    for (before, after) in [(one, other), (other, one)] {
        if !widens(before, after).is_empty() {
            continue;
        }
        for query in queries {
            let (was, is) = (decide(before, query), decide(after, query));
            prop_assert!(
                is.decision() >= was.decision(),
                "{:?}\nnow {:?}\nof {query:#?}",
                was.explanation(),
                is.explanation()
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(4_000))]

    #[test]
    fn gate_16_where_nothing_widens_no_decision_falls(world in world(), tape in edits(), queries in queries(150)) {
        let changed = edited(&world, &tape);
        // An edit may make a policy that is refused: then there is nothing to compare.
        if let Ok(changed) = PolicySet::compile(&changed.input) {
            holds(&compile(&world)?, &changed, &queries)?;
        }
    }

    #[test]
    fn gate_16_strangers_are_compared_soundly(world in world(), other in world(), queries in queries(20)) {
        holds(&compile(&world)?, &compile(&other)?, &queries)?;
    }

    #[test]
    fn gate_16_a_policy_does_not_widen_itself(world in world()) {
        let policy = compile(&world)?;
        prop_assert!(widens(&policy, &compile(&world)?).is_empty());
    }
}

#[test]
fn gate_16_many_edits_only_narrow() {
    let mut runner = TestRunner::deterministic();
    let (mut compared, mut silent, mut stricter) = (0_u32, 0_u32, 0_u32);
    for _ in 0..400 {
        let made = (world(), edits(), queries(99)).new_tree(&mut runner).map(|tree| tree.current());
        let Ok((world, tape, queries)) = made else { continue };
        let pair = PolicySet::compile(&world.input)
            .and_then(|old| Ok((old, PolicySet::compile(&edited(&world, &tape).input)?)));
        let Ok((old, new)) = pair else { continue };
        for (before, after) in [(&old, &new), (&new, &old)] {
            compared += 1;
            if widens(before, after).is_empty() {
                silent += 1;
                let falls = |query: &Query| decide(after, query).decision() > decide(before, query).decision();
                stricter += u32::from(queries.iter().any(falls));
            }
        }
    }
    assert!(silent * 4 > compared, "{silent} of {compared} edits are said to widen nothing");
    assert!(stricter > 40, "only {stricter} of {compared} edits narrow something that was asked");
}
