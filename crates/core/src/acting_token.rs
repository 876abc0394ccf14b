//! The token somebody acts with at the control side: its id, and the tokens it comes from.
//!
//! The credential that made a call never answers it (SELF-5). All tokens that were issued or rotated with one token,
//! directly or through others, count as one credential with it: whoever bears that token was shown their secrets.

use serde::{Deserialize, Serialize};

/// A token in use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActingToken {
    pub id: String,
    /// The tokens it was issued or rotated with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<String>,
}

impl ActingToken {
    /// Whether both tokens come from one credential: one issued or rotated the other, or a third token did so with
    /// both. Tokens issued at the machine itself share nothing.
    #[must_use]
    pub fn is_related_to(&self, other: &Self) -> bool {
        let is_own = |token: &String| *token == self.id || self.ancestors.contains(token);
        is_own(&other.id) || other.ancestors.iter().any(is_own)
    }

    /// The ancestors of a token whose secret this one was shown.
    #[must_use]
    pub fn line(&self) -> Vec<String> {
        self.ancestors.iter().chain([&self.id]).cloned().collect()
    }
}
