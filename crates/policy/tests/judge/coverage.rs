//! The generator is not vacuous: every reason that `decide` can give occurs. And the second evaluator is independent.

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
    // Fewer would miss reasons that are rare.
    for _ in 0..cases(1_000).cases.max(1_000) {
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

/// What the second evaluator would have of the first: its reader of lines, its judgements, its tables of what is shipped
/// and of payers, its comparison of names and of entries.
const FOREIGN: [&str; 17] = [
    "policy::shell",
    "toolwarden_shell",
    ".payers()",
    "Reason::payers",
    "decide(",
    "PolicySet",
    "policy::shipped",
    "shipped::ROLES",
    "shipped::SCOPES",
    "preset_scope",
    "registration_key",
    "name::",
    "Entry::parse",
    "Allowlist::",
    "toolwarden_sources",
    "toolwarden_advice",
    "weak::",
];

/// A second evaluator that calls the first proves nothing: it may use the types of questions and answers, not the reader
/// of command lines, the matching of entries or the tables of who may approve and of what is shipped.
#[test]
fn the_second_evaluator_calls_nothing_of_the_first() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/judge");
    let files = std::fs::read_dir(directory);
    assert!(files.is_ok(), "{directory} can be read");
    let mut read = 0_u32;
    for file in files.into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        if !name.starts_with("naive") {
            continue;
        }
        let text = std::fs::read_to_string(file.path()).unwrap_or_default();
        assert!(!text.is_empty(), "{name} can be read");
        read += 1;
        for foreign in FOREIGN {
            assert!(!text.contains(foreign), "{name} uses {foreign}");
        }
    }
    assert!(read >= 15, "only {read} files of the second evaluator were found");
}
