//! Step 6, first form: a held call goes back to its caller at once, with the reason and what would
//! let it through. Nothing of it leaves.

use toolwarden_policy::Pending;

use crate::settings::Hold;
use toolwarden_refusals::{Denial, Refusal};

pub fn hold(habit: Hold, pending: &Pending) -> Refusal {
    let message = pending.explanation().message(pending.query());
    let denial = Box::new(Denial { explanation: pending.explanation().clone(), message, retry_after: None });
    match habit {
        Hold::Return => Refusal::Held(denial),
        Hold::Deny => Refusal::Denied(denial),
    }
}
