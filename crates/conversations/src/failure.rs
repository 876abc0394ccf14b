//! Every way a server can let a message down.

use toolwarden_core::json::{Document, JsonError, Limits};
use toolwarden_core::{Reason, Status};

use crate::whole::DEEPEST;

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
    /// What was judged is not what would be reached.
    #[error("the server was taken away, or is reached otherwise since, so that nothing was sent; try again")]
    Replaced,
    /// The same with a call that had left.
    #[error("the server was taken away, or is reached otherwise since; whether the call had an effect is not known")]
    Withdrawn,
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

    /// Whether the server says that it does not know what it was asked for: a list it does not have.
    pub fn is_unknown_method(&self) -> bool {
        let Self::Answered { error, .. } = self else { return false };
        let Ok(error) = Document::parse(error.as_str(), Limits { bytes: error.len(), depth: DEEPEST }) else {
            return false;
        };
        error.root().get("code").is_some_and(|code| code.raw() == "-32601")
    }

    /// How a call ended that failed so.
    pub fn status(&self) -> Status {
        match self {
            Self::Timeout => Status::Timeout,
            Self::TooLarge | Self::TooDeep => Status::TooLarge,
            Self::OverLimit { what, .. } => what.status(),
            Self::Died | Self::Lost | Self::TakenAway | Self::Withdrawn => Status::Unknown,
            Self::GivenUp => Status::Cancelled,
            Self::Answered { .. } => Status::ToolError,
            Self::Unreachable(_)
            | Self::Resting { .. }
            | Self::Protocol(_)
            | Self::Withheld(_)
            | Self::OtherEra(_)
            | Self::NeedsAuth
            | Self::Wordless { .. }
            | Self::Replaced
            | Self::Forgotten
            | Self::Busy => Status::UpstreamError,
        }
    }
}

#[cfg(test)]
#[test]
fn an_unknown_method_is_known_by_its_code_and_by_nothing_else() {
    let answered = |error: &str| Failure::Answered { status: 200, error: error.to_owned() };
    assert!(answered(r#"{"code":-32601,"message":"no"}"#).is_unknown_method());
    assert!(answered(r#"{ "message": "no", "code" : -32601 }"#).is_unknown_method());
    for other in [
        r#"{"code":-32000,"message":"it said -32601"}"#,
        r#"{"code":-32000,"message":"no","data":{"code":-32601}}"#,
        r#"{"code":-326010,"message":"no"}"#,
        "-32601",
    ] {
        assert!(!answered(other).is_unknown_method(), "{other}");
    }
    assert!(!Failure::Timeout.is_unknown_method());
}
