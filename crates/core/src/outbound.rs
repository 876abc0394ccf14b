//! The only thing the wire room sends to a server: bytes that a permit, or housekeeping, let out.
//!
//! clippy.toml forbids the constructor outside `policy`, so nothing else can make one.

use std::sync::Arc;

/// A message on its way to an upstream server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbound {
    server: Arc<str>,
    method: Arc<str>,
    params: Option<Arc<str>>,
}

impl Outbound {
    /// Lets a message out; `params` are the exact bytes that were judged.
    #[must_use]
    pub fn release(server: Arc<str>, method: Arc<str>, params: Option<Arc<str>>) -> Self {
        Self { server, method, params }
    }

    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    #[must_use]
    pub fn params(&self) -> Option<&str> {
        self.params.as_deref()
    }
}
