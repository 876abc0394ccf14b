//! A finding in the form that travels: the same words, without borrowed parts.

use serde::{Deserialize, Serialize};

/// What is worth telling about a place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// `error`, `warning` or `note`.
    pub severity: String,
    pub code: String,
    pub source: String,
    /// From 1; 0 where the whole file is meant.
    pub line: u32,
    pub column: u32,
    pub message: String,
    pub suggestion: Option<String>,
}

impl Remark {
    /// A warning that is about no file.
    pub(crate) fn warning(code: &str, source: &str, message: String) -> Self {
        Self {
            severity: "warning".to_owned(),
            code: code.to_owned(),
            source: source.to_owned(),
            line: 0,
            column: 0,
            message,
            suggestion: None,
        }
    }
}

impl From<&toolwarden_policy::Finding> for Remark {
    fn from(finding: &toolwarden_policy::Finding) -> Self {
        Self {
            severity: finding.severity.as_str().to_owned(),
            code: finding.code.to_owned(),
            source: finding.origin.source.to_string(),
            line: finding.origin.line,
            column: finding.origin.column,
            message: finding.message.clone(),
            suggestion: finding.suggestion.clone(),
        }
    }
}

impl From<&toolwarden_sources::Finding> for Remark {
    fn from(finding: &toolwarden_sources::Finding) -> Self {
        Self {
            severity: finding.severity.as_str().to_owned(),
            code: finding.code.to_owned(),
            source: finding.path.to_string(),
            line: finding.line,
            column: finding.column,
            message: finding.message.clone(),
            suggestion: finding.suggestion.clone(),
        }
    }
}
