//! What a reader has to say about a file: severity, code, place, message, suggestion.
//!
//! Findings are collected and shown; nothing a reader notices is dropped silently.

use std::fmt;
use std::sync::Arc;

use toolwarden_core::name;
pub use toolwarden_policy::Severity;

use crate::tree::Place;

/// One remark about one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// Stable, for scripts.
    pub code: &'static str,
    pub path: Arc<str>,
    /// From 1; 0 where the remark is about the whole file.
    pub line: u32,
    pub column: u32,
    pub message: String,
    pub suggestion: Option<String>,
}

impl Finding {
    /// A remark about a whole file.
    #[must_use]
    pub fn whole(severity: Severity, code: &'static str, path: &str, message: impl Into<String>) -> Self {
        Self::at(severity, code, path.into(), Place::default(), message.into())
    }

    pub(crate) fn at(severity: Severity, code: &'static str, path: Arc<str>, place: Place, message: String) -> Self {
        Self { severity, code, path, line: place.line, column: place.column, message, suggestion: None }
    }

    #[must_use]
    pub fn with_help(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&name::shown(&self.path))?;
        if self.line > 0 {
            write!(formatter, ":{}:{}", self.line, self.column)?;
        }
        write!(formatter, ": {}: {}", self.severity.as_str(), name::shown(&self.message))?;
        match &self.suggestion {
            Some(suggestion) => write!(formatter, " (help: {})", name::shown(suggestion)),
            None => Ok(()),
        }
    }
}
