//! The token somebody acts with at the control side: its id, and the tokens it comes from.
//!
//! The token that made a call never answers it (SELF-5). A token that was issued or rotated with another token counts as
//! that token here: its secret was shown to whoever bears the other one.

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
    /// Whether this is the token of that id, whatever its secret, or comes from it.
    #[must_use]
    pub fn comes_from(&self, token: &str) -> bool {
        self.id == token || self.ancestors.iter().any(|ancestor| ancestor == token)
    }

    /// The ancestors of a token whose secret this one was shown.
    #[must_use]
    pub fn line(&self) -> Vec<String> {
        self.ancestors.iter().chain([&self.id]).cloned().collect()
    }
}
