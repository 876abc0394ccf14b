//! The payers' file: an opinion that allows becomes a payment. Whether it counts is the judge's word.

use toolwarden_core::{MachineVerdict, Opinion, Payer, Payment};

/// What an opinion pays: nothing but where it allows, and nothing while it is only listened to.
#[must_use]
pub fn payment(opinion: &Opinion) -> Option<Payment> {
    let allows = opinion.verdict == Some(MachineVerdict::Allow) && !opinion.is_shadow;
    allows.then(|| paid(&opinion.id))
}

/// A call that left under a verdict and goes on in another round was paid for then: it is judged again, and where a hold
/// has come up that a machine may not pay, that holds.
#[must_use]
pub fn goes_on(verdict: &str) -> Payment {
    paid(verdict)
}

fn paid(verdict: &str) -> Payment {
    #[expect(clippy::disallowed_methods, reason = "the classifier pays here, by a verdict that is on record")]
    Payment::by(Payer::Classifier, verdict)
}
