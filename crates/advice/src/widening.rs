//! What a new policy newly allows, in words for people (GATE-16).
//!
//! Takes two policies; gives what is wider in the second. Sound: where it gives nothing, no question has
//! a lower decision under the second than under the first. Not complete: where that cannot be shown
//! cheaply, it says that something changed. Payers and launches count, too, though no decision shows them.

mod admin;
mod approvers;
mod auto_run;
mod entries;
mod limits;
mod modes;
mod roles;
mod rules;
mod servers;
mod settings;
mod users;

use std::fmt;

use toolwarden_core::Origin;
use toolwarden_policy::PolicySet;

/// One thing that a new policy allows and the one before did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widening {
    /// Stable, for scripts.
    pub code: &'static str,
    pub what: String,
    /// Where it is written: in the new policy, or in the old one for what was taken away.
    pub origin: Option<Origin>,
}

impl fmt::Display for Widening {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) => write!(formatter, "{} ({origin})", self.what),
            None => formatter.write_str(&self.what),
        }
    }
}

/// What `after` allows that `before` did not; nothing where no call gets a lower decision.
#[must_use]
pub fn widens(before: &PolicySet, after: &PolicySet) -> Vec<Widening> {
    let mut found = Found::default();
    auto_run::compare(before, after, &mut found);
    admin::compare(before, after, &mut found);
    users::compare(before, after, &mut found);
    modes::compare(before, after, &mut found);
    roles::compare(before, after, &mut found);
    rules::compare(before, after, &mut found);
    settings::compare(before, after, &mut found);
    servers::compare(before, after, &mut found);
    limits::compare(before, after, &mut found);
    approvers::compare(before, after, &mut found);
    found.0
}

/// What was found so far.
#[derive(Debug, Default)]
struct Found(Vec<Widening>);

impl Found {
    fn add(&mut self, code: &'static str, what: impl Into<String>, origin: Option<&Origin>) {
        self.0.push(Widening { code, what: what.into(), origin: origin.cloned() });
    }

    /// For a protection, restriction or demand that was on.
    fn if_off(&mut self, before: bool, after: bool, code: &'static str, what: &str) {
        if before && !after {
            self.add(code, what, None);
        }
    }
}
