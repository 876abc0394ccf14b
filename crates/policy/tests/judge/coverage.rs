//! The generator is not vacuous: every reason that `decide` can give occurs.

use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use toolwarden_core::Reason;
use toolwarden_policy::PolicySet;

use crate::ask::{cases, engine};
use crate::generate::{queries, world};

/// Given by `settle` and by `admit` only, and by the corridor.
const ELSEWHERE: [Reason; 18] = [
    Reason::Paid,
    Reason::MethodNotListed,
    Reason::ForeignId,
    Reason::CallsPerMinute,
    Reason::CallsInFlight,
    Reason::ResponseTooLarge,
    Reason::ResponseTooDeep,
    Reason::TimeOver,
    // What became of the same call before.
    Reason::Rejected,
    Reason::RejectedOften,
    Reason::OutcomeUnknown,
    Reason::AlreadyRunning,
    Reason::ApprovalUsed,
    Reason::TooManyHeld,
    Reason::TooLargeToShow,
    // The store could not be asked.
    Reason::CallsUncounted,
    Reason::LabelsUnknown,
    // What became of a call that was made.
    Reason::ResultReview,
];

#[test]
fn every_reason_occurs() {
    let mut runner = TestRunner::deterministic();
    let mut counts: BTreeMap<Reason, u32> = Reason::ALL.iter().map(|reason| (*reason, 0)).collect();
    for _ in 0..cases(1_000).cases {
        let made = (world(), queries(99)).new_tree(&mut runner).map(|tree| tree.current());
        assert!(made.is_ok());
        let Ok((world, queries)) = made else { continue };
        let policy = PolicySet::compile(&world.input);
        assert!(policy.is_ok(), "refused: {:?}", policy.err());
        let Ok(policy) = policy else { continue };
        for query in &queries {
            *counts.entry(engine(&policy, query).reason).or_default() += 1;
        }
    }
    let mut histogram = String::new();
    for (reason, count) in &counts {
        let written = writeln!(histogram, "{count:>8} {}", reason.code());
        assert!(written.is_ok());
    }
    let missing: Vec<_> = counts
        .iter()
        .filter(|(reason, count)| **count == 0 && !ELSEWHERE.contains(reason))
        .map(|(reason, _)| reason.code())
        .collect();
    assert!(missing.is_empty(), "never given: {missing:?}\n{histogram}");
}
