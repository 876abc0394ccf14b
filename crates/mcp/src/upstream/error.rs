//! What can go wrong while talking to an upstream over HTTP, in plain words.
//!
//! No variant carries a header, a query or a body: they may hold secrets.

use std::sync::Arc;
use std::time::Duration;

use crate::sse::SseError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    #[error("cannot connect to {place}: {reason}")]
    Unreachable { place: Arc<str>, reason: String },
    #[error("no secure connection to {place}: {reason}")]
    Tls { place: Arc<str>, reason: String },
    #[error("{place} {what} within {within:?}")]
    Timeout { place: Arc<str>, what: &'static str, within: Duration },
    #[error("{place} {what}")]
    Protocol { place: Arc<str>, what: &'static str },
    /// It answered, and not as a server of the transport that was tried would.
    #[error("{place} {what}")]
    OtherTransport { place: Arc<str>, what: &'static str },
    #[error("{place} closed the connection before its answer was complete")]
    Closed { place: Arc<str> },
    #[error("the answer of {place} is larger than {limit} bytes")]
    TooLarge { place: Arc<str>, limit: usize },
    #[error("the event stream of {place} is refused: {reason}")]
    Events { place: Arc<str>, reason: SseError },
}

impl UpstreamError {
    /// What hyper says about an exchange that was begun.
    pub(super) fn from_hyper(place: &Arc<str>, error: &hyper::Error) -> Self {
        let place = place.clone();
        if error.is_parse_too_large() {
            return Self::Protocol { place, what: "sent response headers larger than the limit" };
        }
        if error.is_parse() {
            return Self::Protocol { place, what: "did not answer in HTTP/1.1" };
        }
        Self::Closed { place }
    }
}
