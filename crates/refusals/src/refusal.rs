//! Every way a message ends without an answer of its server. `wire.rs` alone puts them on the wire.

use toolwarden_conversations::Failure;
use toolwarden_conversations::request_state::Unusable;
use toolwarden_mcp::MessageError;
use toolwarden_mcp::ladder::Rung;
use toolwarden_policy::Explanation;

/// Why a message got no further.
#[derive(Debug)]
pub enum Refusal {
    /// A credential was shown and is not good, or none was shown and one is needed; in words.
    Unauthorized(&'static str),
    /// Nobody issued what was shown, and too many such were shown within a minute.
    TooManyGuesses,
    /// Nobody knows at the moment whether the credential still counts.
    Unverified,
    UnknownMode(String),
    /// The address of an entrance says more than a mode; what nobody reads.
    Query(String),
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
    TooManyStreams,
    VersionHeader(String),
    /// Params lack something the method needs.
    Params(String),
    /// The task is another's, or nobody's.
    ForeignTask,
    /// A modern client speaks of tasks, and did not say that it knows them.
    Tasks,
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
    /// The policy changed while it was on its way; what it says now.
    TakenAway(Box<Refusal>),
    /// The policy changed what may be listened to.
    ListenAgain,
}

/// A decision that went against the caller.
#[derive(Debug)]
pub struct Denial {
    pub explanation: Explanation,
    /// In words for the caller.
    pub message: String,
    /// Seconds after which it may be tried again, where that alone can help.
    pub retry_after: Option<u64>,
    /// Under which a person finds the call, or found it.
    pub approval: Option<String>,
}

impl Denial {
    #[must_use]
    pub fn new(explanation: Explanation, message: String) -> Self {
        Self { explanation, message, retry_after: None, approval: None }
    }
}

impl From<Unusable> for Refusal {
    fn from(Unusable(why): Unusable) -> Self {
        Self::State(why)
    }
}
