//! The only thing the wire room sends to a server: bytes that a permit, or housekeeping, let out.
//!
//! clippy.toml forbids the constructor outside `policy`, so nothing else can make one.

use std::sync::Arc;

use crate::json::Part;

/// A message on its way to an upstream server.
#[derive(Debug, Clone)]
pub struct Outbound {
    server: Arc<str>,
    content: Content,
}

/// What a message carries: the exact bytes that were judged.
#[derive(Debug, Clone)]
pub enum Content {
    /// A request or a notification.
    Method { method: Arc<str>, params: Option<Part> },
    /// A client's answer to something the server asked.
    Result(Part),
    /// A client's, or the gateway's, refusal to answer.
    Error(Part),
}

impl Outbound {
    /// Lets a message out.
    #[must_use]
    pub fn release(server: Arc<str>, content: Content) -> Self {
        Self { server, content }
    }

    #[must_use]
    pub fn server(&self) -> &Arc<str> {
        &self.server
    }

    #[must_use]
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// The method; none for answers.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        match &self.content {
            Content::Method { method, .. } => Some(method),
            Content::Result(_) | Content::Error(_) => None,
        }
    }

    #[must_use]
    pub fn params(&self) -> Option<&Part> {
        match &self.content {
            Content::Method { params, .. } => params.as_ref(),
            Content::Result(_) | Content::Error(_) => None,
        }
    }
}
