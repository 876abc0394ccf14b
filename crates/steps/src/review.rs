//! A held call goes back to its caller at once, with the reason and what would
//! let it through. Nothing of it leaves.

use toolwarden_core::Decision;
use toolwarden_policy::Pending;

use crate::settings::Hold;
use toolwarden_refusals::{Denial, Refusal};

pub fn hold(habit: Hold, pending: &Pending) -> Refusal {
    let message = pending.explanation().message(pending.query());
    let mut explanation = pending.explanation().clone();
    if habit == Hold::Return {
        return Refusal::Held(Box::new(Denial { explanation, message, retry_after: None }));
    }
    // Nobody is asked, so there is nothing to choose from.
    explanation.decision = Decision::Deny;
    (explanation.candidates, explanation.payers) = (Vec::new(), Vec::new());
    Refusal::Denied(Box::new(Denial { explanation, message, retry_after: None }))
}
