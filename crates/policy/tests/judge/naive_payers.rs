//! CORE-3: who may ever approve what is held for a reason.

use toolwarden_core::{Payer, Reason};

pub fn payers_of(reason: Reason) -> Vec<Payer> {
    match reason {
        // Changed definition: accept only.
        Reason::DefinitionChanged | Reason::DefinitionNew => vec![Payer::Accept],
        // Not in allowlist: sandbox, classifier, person.
        Reason::NotInAllowlist => vec![Payer::Sandbox, Payer::Classifier, Payer::Person],
        // Fetch: classifier, person.
        Reason::FetchReview => vec![Payer::Classifier, Payer::Person],
        // Invalid names, disabled by admin, protections, ask every time, blocked, unparsable, deletions, self-protection,
        // mandatory ask, allowlist gate off: a person.
        _ => vec![Payer::Person],
    }
}
