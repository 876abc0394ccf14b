//! Why an operation was not done, and the form in which that travels.

use serde::{Deserialize, Serialize};
use toolwarden_policy::Refused;
use toolwarden_sources::edit::EditError;
use toolwarden_sources::stored::StoredError;
use toolwarden_sources::trust::TrustError;
use toolwarden_store::{IndexError, JournalError, StateError};

use crate::remark::Remark;

/// Why an operation was not done.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The request cannot be meant as it is.
    #[error("{0}")]
    BadInput(String),
    #[error("the policy cannot be used")]
    Policy(Vec<Remark>),
    #[error("{message}")]
    NotFound { message: String, help: String },
    #[error("{0}")]
    Edit(EditError),
    #[error("{0}")]
    Trust(TrustError),
    #[error(transparent)]
    Stored(#[from] StoredError),
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("{0} is needed for this, and this process has not opened it")]
    Without(&'static str),
    #[error("the operation ended before it was done; see the log")]
    Ended,
}

/// An error as it travels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub code: String,
    pub message: String,
    #[serde(default)]
    pub help: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Remark>,
}

impl ControlError {
    /// Stable, for scripts and for exit codes.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadInput(_) => "bad_input",
            Self::Policy(_) => "policy_refused",
            Self::NotFound { .. } => "not_found",
            _ => "failed",
        }
    }

    #[must_use]
    pub fn fault(&self) -> Fault {
        let (help, findings) = match self {
            Self::NotFound { help, .. } => (Some(help.clone()), Vec::new()),
            Self::Policy(findings) => (None, findings.clone()),
            _ => (None, Vec::new()),
        };
        Fault { code: self.code().to_owned(), message: self.to_string(), help, findings }
    }
}

impl Fault {
    /// Whether it is the request's fault rather than this machine's.
    #[must_use]
    pub fn is_input(&self) -> bool {
        ["bad_input", "policy_refused", "not_found"].contains(&self.code.as_str())
    }
}

impl From<Refused> for ControlError {
    fn from(refused: Refused) -> Self {
        Self::Policy(refused.0.iter().map(Remark::from).collect())
    }
}

/// An entry or a file a person can repair is their input; the rest is this machine's trouble.
impl From<EditError> for ControlError {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Invalid { .. } | EditError::Broken { .. } => Self::BadInput(error.to_string()),
            other => Self::Edit(other),
        }
    }
}

impl From<TrustError> for ControlError {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::NotADirectory(_) | TrustError::NotText(_) | TrustError::File { .. } => {
                Self::BadInput(error.to_string())
            }
            stored @ TrustError::Stored(_) => Self::Trust(stored),
        }
    }
}
