//! Paying for a hold: the call is judged again, and every hold found then must list the payer.

use toolwarden_core::{ApprovalNeeds, Decision, Payer, Payment, Reason};

use crate::decide::decide;
use crate::permit::Permit;
use crate::query::Query;
use crate::set::PolicySet;
use crate::shell::FileFacts;
use crate::verdict::{Explanation, Verdict};

/// A held call, waiting for whoever may pay.
#[derive(Debug, Clone)]
#[must_use]
pub struct Pending {
    query: Query,
    explanation: Explanation,
    /// Who is listed by every hold of this call.
    settling: Vec<Payer>,
    /// Which persons, and how.
    needs: ApprovalNeeds,
}

impl Pending {
    pub(crate) fn new(query: Query, explanation: Explanation, settling: Vec<Payer>, needs: ApprovalNeeds) -> Self {
        Self { query, explanation, settling, needs }
    }

    /// Which persons may answer, and how.
    #[must_use]
    pub fn needs(&self) -> &ApprovalNeeds {
        &self.needs
    }

    #[must_use]
    pub fn query(&self) -> &Query {
        &self.query
    }

    #[must_use]
    pub fn explanation(&self) -> &Explanation {
        &self.explanation
    }

    /// The same call with what the file system says of its paths by now: links may have been turned since it was held.
    pub fn with_files(mut self, files: FileFacts) -> Self {
        self.query = self.query.with_files(files);
        self
    }

    /// Whether every hold of this call lists the payer.
    #[must_use]
    pub fn may_be_paid_by(&self, payer: Payer) -> bool {
        self.settling.contains(&payer)
    }
}

/// Settles a held call at `now` (CORE-5). What has become denied stays denied; a payer that some
/// hold does not list pays nothing.
pub fn settle(policy: &PolicySet, pending: Pending, payment: &Payment, now: jiff::Timestamp) -> Verdict {
    let query = pending.query.at(now);
    match decide(policy, &query) {
        Verdict::Hold(again) if pays(&again, payment) => {
            let mut explanation = again.explanation;
            explanation.decision = Decision::Allow;
            explanation.reason = Reason::Paid;
            explanation.detail = Some(payment.payer().as_str().into());
            explanation.payers.clear();
            explanation.candidates.clear();
            Verdict::Allow(Permit::new(query.into_call(), explanation))
        }
        verdict => verdict,
    }
}

fn pays(pending: &Pending, payment: &Payment) -> bool {
    pending.may_be_paid_by(payment.payer())
}
