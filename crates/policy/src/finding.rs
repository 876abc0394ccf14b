//! Something worth telling about a policy: what, where, and what to do.

use toolwarden_core::Origin;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The piece it is about does not count.
    Error,
    /// It counts, but probably not as meant.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One finding about one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// Stable, for scripts.
    pub code: &'static str,
    pub origin: Origin,
    pub message: String,
    pub suggestion: Option<String>,
}

impl Finding {
    #[must_use]
    pub fn error(code: &'static str, origin: Origin, message: String) -> Self {
        Self { severity: Severity::Error, code, origin, message, suggestion: None }
    }

    #[must_use]
    pub fn warning(code: &'static str, origin: Origin, message: String) -> Self {
        Self { severity: Severity::Warning, code, origin, message, suggestion: None }
    }

    #[must_use]
    pub fn note(code: &'static str, origin: Origin, message: String) -> Self {
        Self { severity: Severity::Note, code, origin, message, suggestion: None }
    }

    #[must_use]
    pub fn suggesting(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}
