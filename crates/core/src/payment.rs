//! What settles a hold: who pays, and with what proof.
//!
//! A payment lowers nothing by itself: `policy::settle` judges the call again and checks that every
//! hold found then lists this payer. clippy.toml forbids the constructor outside the payers' files.

use serde::{Deserialize, Serialize};

/// Who may pay for a hold (CORE-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payer {
    Person,
    SecondPerson,
    Classifier,
    Sandbox,
    Accept,
}

impl Payer {
    pub const ALL: [Self; 5] = [Self::Person, Self::SecondPerson, Self::Classifier, Self::Sandbox, Self::Accept];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::SecondPerson => "second_person",
            Self::Classifier => "classifier",
            Self::Sandbox => "sandbox",
            Self::Accept => "accept",
        }
    }
}

/// One payment, for one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    payer: Payer,
    receipt: String,
}

impl Payment {
    /// A payment by `payer`; `receipt` names the answer it stands for (an approval id, a verdict id).
    #[must_use]
    pub fn by(payer: Payer, receipt: impl Into<String>) -> Self {
        Self { payer, receipt: receipt.into() }
    }

    #[must_use]
    pub fn payer(&self) -> Payer {
        self.payer
    }

    #[must_use]
    pub fn receipt(&self) -> &str {
        &self.receipt
    }
}
