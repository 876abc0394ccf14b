//! The payers' file: an answer, or a call that left under one, becomes a payment. Whether it counts is the judge's word.

use toolwarden_core::{HeldCaller, Payer, Payment};
use toolwarden_policy::Pending;
use toolwarden_store::state::Approval;

/// What a person's answer pays; none where it is no approval, or another person is needed.
#[must_use]
pub fn payment(approval: &Approval, pending: &Pending) -> Option<Payment> {
    let answer = approval.answer.as_ref().filter(|answer| answer.is_approval)?;
    // By the rules of now, whatever they were when it was answered (CORE-5), and by what the caller's token is now:
    // whoever answered may have been shown its secret since.
    let caller = HeldCaller::from(&*pending.query().caller);
    if [&approval.call.caller, &caller].into_iter().any(|caller| pending.needs().lacks(caller, answer).is_some()) {
        return None;
    }
    Some(paid(payer_of(pending), &approval.id))
}

/// A call that left under an approval and goes on in another round was paid for then: it is judged again, and not held
/// again.
#[must_use]
pub fn goes_on(approval: &str, pending: &Pending) -> Payment {
    paid(payer_of(pending), approval)
}

fn payer_of(pending: &Pending) -> Payer {
    if pending.may_be_paid_by(Payer::Person) { Payer::Person } else { Payer::SecondPerson }
}

fn paid(payer: Payer, approval: &str) -> Payment {
    #[expect(clippy::disallowed_methods, reason = "persons pay here, by answers that the store keeps sealed")]
    Payment::by(payer, approval)
}
