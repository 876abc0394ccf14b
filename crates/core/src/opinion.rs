//! What a classifier said of a held call: a machine's opinion, on record, kept with the call and shown as what it is.
//!
//! Its words come from a model that read hostile data: they are shown, never acted on.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How the id of a verdict begins: it stands where ids of approvals stand, and is never one.
pub const VERDICT: &str = "classifier:";

/// What a machine can say. It cannot deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineVerdict {
    Allow,
    Hold,
}

impl MachineVerdict {
    pub const ALL: [Self; 2] = [Self::Allow, Self::Hold];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Hold => "hold",
        }
    }
}

/// One opinion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opinion {
    /// As the record names it.
    pub id: String,
    /// None where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<MachineVerdict>,
    /// The machine's own words; without a verdict, why there is none.
    pub words: String,
    pub model: String,
    pub prompt_version: u32,
    pub at: Timestamp,
    /// A mark of what was asked.
    pub question: String,
    /// It was only listened to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shadow: bool,
}

/// Why a machine has no verdict, as records and counts name it.
pub const NO_VERDICT: [&str; 16] = [
    "too_long",
    "over_budget",
    "over_cost",
    "busy",
    "insists",
    "breaker_open",
    "late",
    "unreachable",
    "status",
    "answer_too_long",
    "answer",
    "declined",
    "mark",
    "program",
    "random",
    "uncounted",
];

/// How often persons answered as a machine would have, or otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    pub allow_approved: u64,
    pub allow_rejected: u64,
    pub hold_approved: u64,
    pub hold_rejected: u64,
}

impl Agreement {
    /// The names these are kept and told under.
    pub const NAMES: [&'static str; 4] = ["allow_approved", "allow_rejected", "hold_approved", "hold_rejected"];

    /// The name of one case.
    #[must_use]
    pub fn name(verdict: MachineVerdict, is_approval: bool) -> &'static str {
        match (verdict, is_approval) {
            (MachineVerdict::Allow, true) => "allow_approved",
            (MachineVerdict::Allow, false) => "allow_rejected",
            (MachineVerdict::Hold, true) => "hold_approved",
            (MachineVerdict::Hold, false) => "hold_rejected",
        }
    }

    /// The count of one case.
    pub fn count_mut(&mut self, name: &str) -> Option<&mut u64> {
        match name {
            "allow_approved" => Some(&mut self.allow_approved),
            "allow_rejected" => Some(&mut self.allow_rejected),
            "hold_approved" => Some(&mut self.hold_approved),
            "hold_rejected" => Some(&mut self.hold_rejected),
            _ => None,
        }
    }

    /// Every case: what the machine said, what the person said, how often.
    #[must_use]
    pub fn cases(self) -> [(&'static str, &'static str, u64); 4] {
        [
            ("allow", "approved", self.allow_approved),
            ("allow", "rejected", self.allow_rejected),
            ("hold", "approved", self.hold_approved),
            ("hold", "rejected", self.hold_rejected),
        ]
    }
}

#[cfg(test)]
#[test]
fn every_case_has_its_own_count() {
    let mut agreement = Agreement::default();
    for (number, (verdict, is_approval)) in
        MachineVerdict::ALL.into_iter().flat_map(|verdict| [(verdict, true), (verdict, false)]).enumerate()
    {
        let name = Agreement::name(verdict, is_approval);
        assert_eq!(Agreement::NAMES.get(number), Some(&name));
        assert!(agreement.count_mut(name).map(|count| *count = 1 + number as u64).is_some());
        let person = if is_approval { "approved" } else { "rejected" };
        assert!(agreement.cases().contains(&(verdict.as_str(), person, 1 + number as u64)), "{agreement:?}");
    }
    assert_eq!(agreement.count_mut("policy"), None);
}
