//! What a reader has to say about a file: severity, code, place, message, suggestion.
//!
//! Findings are collected and shown; nothing a reader notices is dropped silently.

use std::fmt;
use std::sync::Arc;

use toolwarden_core::{Layer, Origin, name};
use toolwarden_policy::Finding as PolicyFinding;
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

    /// The same in the form of findings about a policy.
    #[must_use]
    pub fn of_policy(&self) -> PolicyFinding {
        PolicyFinding {
            severity: self.severity,
            code: self.code,
            origin: Origin::new(Layer::UserFile, self.path.clone(), self.line, self.column),
            message: self.message.clone(),
            suggestion: self.suggestion.clone(),
        }
    }

    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The readers' findings and those about the policy they make, by place. Both may speak of one entry or one mode.
#[must_use]
pub fn merged(of_readers: &[Finding], of_policy: Vec<PolicyFinding>) -> Vec<PolicyFinding> {
    let mut findings: Vec<PolicyFinding> = of_readers.iter().map(Finding::of_policy).collect();
    let place = |finding: &PolicyFinding| (finding.origin.source.clone(), finding.origin.line, finding.origin.column);
    let known: Vec<_> = findings.iter().map(|finding| (finding.code, place(finding))).collect();
    // A mode carries what its reader found on a line, which the reader has already said.
    let is_said =
        |finding: &PolicyFinding| finding.code == "mode_refused" && finding.message.contains("is refused: line ");
    let is_new = |finding: &PolicyFinding| !is_said(finding) && !known.contains(&(finding.code, place(finding)));
    findings.extend(of_policy.into_iter().filter(is_new));
    findings.sort_by_key(place);
    findings
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
