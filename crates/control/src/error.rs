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
    State(StateError),
    #[error("{message}")]
    Conflict { message: String, sides: Box<Sides> },
    #[error("{0}")]
    Forbidden(String),
    #[error("{0} is needed for this, and this process has not opened it")]
    Without(&'static str),
    #[error("the operation ended before it was done; see the log")]
    Ended,
}

/// What two people wrote to the same place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sides {
    /// The version that is there.
    pub found: u64,
    pub now: Option<serde_json::Value>,
    pub yours: Option<serde_json::Value>,
}

/// An error as it travels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    pub code: String,
    pub message: String,
    #[serde(default)]
    pub help: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Remark>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sides: Option<Sides>,
}

impl Fault {
    #[must_use]
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), help: None, findings: Vec::new(), sides: None }
    }
}

impl ControlError {
    /// Stable, for scripts and for exit codes.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadInput(_) => "bad_input",
            Self::Policy(_) => "policy_refused",
            Self::NotFound { .. } => "not_found",
            Self::Conflict { .. } => "conflict",
            Self::Forbidden(_) => "forbidden",
            _ => "failed",
        }
    }

    #[must_use]
    pub fn fault(&self) -> Fault {
        let mut fault = Fault::new(self.code(), self.to_string());
        match self {
            Self::NotFound { help, .. } => fault.help = Some(help.clone()),
            Self::Policy(findings) => fault.findings.clone_from(findings),
            Self::Conflict { sides, .. } => fault.sides = Some((**sides).clone()),
            _ => {}
        }
        fault
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

impl From<StateError> for ControlError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::NoVersion(_) => {
                Self::NotFound { message: error.to_string(), help: "see `toolwarden policy history`".to_owned() }
            }
            other => Self::State(other),
        }
    }
}

/// An entry or a file a person can repair is their input; the rest is this machine's trouble.
impl From<EditError> for ControlError {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Invalid { .. } | EditError::Broken { .. } | EditError::OnlyWorkspace { .. } => {
                Self::BadInput(error.to_string())
            }
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
