//! Asking the engine, in the words of the naive evaluator; and how many cases a test runs.

use proptest::test_runner::{Config, TestCaseError};
use toolwarden_core::Reason;
use toolwarden_policy::{Explanation, PolicySet, Query, decide};

use crate::naive::{Naive, World};

/// The engine's answer.
pub fn engine(policy: &PolicySet, query: &Query) -> Naive {
    of(decide(policy, query).explanation())
}

pub fn of(explanation: &Explanation) -> Naive {
    let rule = explanation
        .rule
        .as_ref()
        .filter(|_| matches!(explanation.reason, Reason::AllowlistMatch | Reason::NarrowedMatch));
    Naive {
        decision: explanation.decision,
        stage: explanation.stage,
        reason: explanation.reason,
        rule: rule.map(|rule| rule.text.to_string()),
        candidates: explanation.candidates.clone(),
        payers: explanation.payers.clone(),
    }
}

/// Compiles a policy; a generated one must not be refused.
pub fn compile(world: &World) -> Result<PolicySet, TestCaseError> {
    PolicySet::compile(&world.input).map_err(|refused| TestCaseError::fail(format!("refused: {refused:?}")))
}

/// So many cases, times `TOOLWARDEN_SOAK`; or that percentage of them which `TOOLWARDEN_CASES` says, for mutation tests,
/// which ask the same questions of thousands of builds.
pub fn cases(cases: u32) -> Config {
    #[expect(clippy::disallowed_methods, reason = "tests are told by the environment how long to soak")]
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let percent = number("TOOLWARDEN_CASES").unwrap_or(100).min(100);
    Config {
        cases: (cases.saturating_mul(number("TOOLWARDEN_SOAK").unwrap_or(1)).saturating_mul(percent) / 100).max(1),
        failure_persistence: None,
        max_shrink_iters: 30_000,
        max_shrink_time: 60_000,
        ..Config::default()
    }
}
