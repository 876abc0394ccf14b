//! Engine and naive evaluator agree on decision, stage, reason, rule, candidates and payers: 20,000
//! policies, 50 questions each, in four tests side by side.

use proptest::prelude::proptest;
use proptest::test_runner::TestCaseError;
use toolwarden_policy::{PolicySet, Query};

use crate::ask::{cases, compile, engine};
use crate::generate::{queries, world};
use crate::naive::{World, naive};

/// Two answers that differ, with the question; proptest prints the policy.
fn compare(policy: &PolicySet, world: &World, query: &Query) -> Result<(), TestCaseError> {
    let (engine, naive) = (engine(policy, query), naive(world, query));
    if engine == naive {
        return Ok(());
    }
    let arguments = query.call.arguments.as_ref().map(|arguments| arguments.raw());
    Err(TestCaseError::fail(format!("\nengine {engine:?}\nnaive  {naive:?}\nsent {arguments:?}\nquery {query:#?}")))
}

fn all(world: &World, queries: &[Query]) -> Result<(), TestCaseError> {
    let policy = compile(world)?;
    queries.iter().try_for_each(|query| compare(&policy, world, query))
}

proptest! {
    #![proptest_config(cases(5_000))]

    #[test]
    fn the_first_five_thousand_policies_agree(world in world(), queries in queries(99)) {
        all(&world, &queries)?;
    }

    #[test]
    fn the_second_five_thousand_policies_agree(world in world(), queries in queries(99)) {
        all(&world, &queries)?;
    }

    #[test]
    fn the_third_five_thousand_policies_agree(world in world(), queries in queries(99)) {
        all(&world, &queries)?;
    }

    #[test]
    fn the_fourth_five_thousand_policies_agree(world in world(), queries in queries(99)) {
        all(&world, &queries)?;
    }
}
