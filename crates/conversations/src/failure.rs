//! Every way a server can let a message down.

use toolwarden_core::json::JsonError;
use toolwarden_core::{Reason, Status};

/// What went wrong with a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// It could not be started a moment ago, and is not tried again yet.
    #[error("the server cannot be reached: {why}; the next try is in {seconds} s")]
    Resting { why: String, seconds: u64 },
    #[error("the server did not answer in time")]
    Timeout,
    #[error("the server's answer is larger than the limit")]
    TooLarge,
    #[error("the server's answer is nested deeper than the limit")]
    TooDeep,
    /// The same with the limit it went over.
    #[error("{what}: {limit}")]
    OverLimit { what: Box<Self>, limit: String },
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    /// The call was made, and what came of it is kept from the client.
    #[error("the call was made, and its result is withheld: {0}")]
    Withheld(String),
    #[error("the server ended while the call was on its way; whether it had an effect is not known")]
    Died,
    #[error("the server speaks only {0}, and this client does not")]
    OtherEra(&'static str),
    #[error("the server wants credentials it was not given")]
    NeedsAuth,
    #[error("the server answered with status {status} and no message")]
    Wordless { status: u16 },
    #[error("the call no longer waits at the server; whether it had an effect is not known")]
    Lost,
    #[error("the client gave the call up; whether it had an effect is not known")]
    GivenUp,
    #[error("the policy changed while the call was on its way; whether it had an effect is not known")]
    TakenAway,
    #[error("the server has forgotten the conversation; try again")]
    Forgotten,
    #[error("the server is busy with other calls of yours that wait for an answer")]
    Busy,
    /// It answered with an error of its own, already in wire form.
    #[error("the server answered with an error")]
    Answered { status: u16, error: String },
}

impl From<JsonError> for Failure {
    fn from(error: JsonError) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl Failure {
    /// The limit it went over, if that is what it is.
    pub fn over(&self) -> Option<Reason> {
        match self {
            Self::Timeout => Some(Reason::TimeOver),
            Self::TooLarge => Some(Reason::ResponseTooLarge),
            Self::TooDeep => Some(Reason::ResponseTooDeep),
            Self::OverLimit { what, .. } => what.over(),
            _ => None,
        }
    }

    /// How a call ended that failed so.
    pub fn status(&self) -> Status {
        match self {
            Self::Timeout => Status::Timeout,
            Self::TooLarge | Self::TooDeep => Status::TooLarge,
            Self::OverLimit { what, .. } => what.status(),
            Self::Died | Self::Lost | Self::TakenAway => Status::Unknown,
            Self::GivenUp => Status::Cancelled,
            Self::Answered { .. } => Status::ToolError,
            Self::Unreachable(_)
            | Self::Resting { .. }
            | Self::Protocol(_)
            | Self::Withheld(_)
            | Self::OtherEra(_)
            | Self::NeedsAuth
            | Self::Wordless { .. }
            | Self::Forgotten
            | Self::Busy => Status::UpstreamError,
        }
    }
}
