//! Every way a message ends without an answer of its server. `answer.rs` alone puts them on the wire.

use toolwarden_core::Status;
use toolwarden_core::json::JsonError;
use toolwarden_mcp::MessageError;
use toolwarden_mcp::ladder::Rung;
use toolwarden_policy::Explanation;

/// Why a message got no further.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// A credential was shown and is not good.
    Unauthorized,
    UnknownMode(String),
    Malformed(MessageError),
    /// Several messages in one text, where the revision knows no batches.
    Batch,
    /// A modern request lacks what its revision demands.
    Rung(Rung),
    /// No table lists the method.
    Method(String),
    /// `initialize` of an open conversation, or anything before it.
    Order(&'static str),
    /// The id of a request that is still in flight.
    RepeatedId,
    SessionMissing,
    SessionGone,
    TooManySessions,
    VersionHeader(String),
    /// Params lack something the method needs.
    Params(String),
    /// The task is another's, or nobody's.
    ForeignTask,
    /// The `requestState` cannot be used.
    State(&'static str),
    /// The server needs something of the client that it did not declare; the capability.
    Capability(&'static str),
    /// No such server at this door.
    UnknownServer(String),
    UnknownTool(String),
    /// Hidden from a caller who may not know why: answered as unknown, recorded as what it is.
    Hidden(String, Box<Explanation>),
    Denied(Box<Denial>),
    Held(Box<Denial>),
    /// The record could not be written, so nothing leaves (GATE-15).
    NoRecord,
    Upstream(Failure),
}

/// A decision that went against the caller.
#[derive(Debug)]
pub(crate) struct Denial {
    pub(crate) explanation: Explanation,
    /// In words for the caller.
    pub(crate) message: String,
}

/// What went wrong with a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// It could not be started a moment ago, and is not tried again yet.
    #[error("the server cannot be reached: {why}; the next try is in {seconds} s")]
    Resting { why: String, seconds: u64 },
    #[error("the server did not answer in time")]
    Timeout,
    #[error("the server's answer is larger than the limit")]
    TooLarge,
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
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
    /// How a call ended that failed so.
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Timeout => Status::Timeout,
            Self::TooLarge => Status::TooLarge,
            Self::Died | Self::Lost => Status::Unknown,
            Self::Answered { .. } => Status::ToolError,
            Self::Unreachable(_)
            | Self::Resting { .. }
            | Self::Protocol(_)
            | Self::OtherEra(_)
            | Self::NeedsAuth
            | Self::Wordless { .. }
            | Self::Forgotten
            | Self::Busy => Status::UpstreamError,
        }
    }
}
