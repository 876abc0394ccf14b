//! Why there is no verdict. Every one of these holds; none of them repeats what anybody said.

/// Why a question was not asked, or its answer is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Failure {
    #[error("the call is too long to be shown whole")]
    TooLong,
    #[error("as many questions were asked within an hour as may be")]
    OverBudget,
    #[error("as much money was spent today as may be")]
    OverCost,
    #[error("as many questions are being asked as may be at once")]
    Busy,
    #[error("it held calls of this tool by this caller again and again, so it is a person's turn")]
    Insists,
    #[error("it failed again and again, so it is left alone for a while")]
    BreakerOpen,
    #[error("it did not answer in time")]
    Late,
    #[error("it cannot be reached")]
    Unreachable,
    #[error("it answered with the status {0}")]
    Status(u16),
    #[error("it answered more than may be")]
    AnswerTooLong,
    #[error("its answer is not of the form it was asked for: {0}")]
    Answer(&'static str),
    #[error("it declined to answer")]
    Declined,
    #[error("the answer does not carry the mark of the question")]
    Mark,
    #[error("the program ended with an error")]
    Program,
    #[error("the operating system gives no random bytes")]
    Random,
    #[error("what was asked and spent cannot be looked up in the store")]
    Uncounted,
}

impl Failure {
    /// A stable word: one of `core::NO_VERDICT`.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::OverBudget => "over_budget",
            Self::OverCost => "over_cost",
            Self::Busy => "busy",
            Self::Insists => "insists",
            Self::BreakerOpen => "breaker_open",
            Self::Late => "late",
            Self::Unreachable => "unreachable",
            Self::Status(_) => "status",
            Self::AnswerTooLong => "answer_too_long",
            Self::Answer(_) => "answer",
            Self::Declined => "declined",
            Self::Mark => "mark",
            Self::Program => "program",
            Self::Random => "random",
            Self::Uncounted => "uncounted",
        }
    }
}

#[cfg(test)]
#[test]
fn every_failure_has_a_code_of_its_own_that_can_be_counted() {
    use Failure as F;
    let all = [
        F::TooLong,
        F::OverBudget,
        F::OverCost,
        F::Busy,
        F::Insists,
        F::BreakerOpen,
        F::Late,
        F::Unreachable,
        F::Status(500),
        F::AnswerTooLong,
        F::Answer("x"),
        F::Declined,
        F::Mark,
        F::Program,
        F::Random,
        F::Uncounted,
    ];
    assert_eq!(all.map(Failure::code), toolwarden_core::NO_VERDICT);
}
