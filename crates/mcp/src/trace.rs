//! The place of a call in a trace, as a server is told it: in headers, and in `_meta` where the client did so.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::compose::quoted;

pub const PARENT: HeaderName = HeaderName::from_static("traceparent");
pub const STATE: HeaderName = HeaderName::from_static("tracestate");

/// `traceparent` and `tracestate` of one hop.
#[derive(Debug, Clone)]
pub struct Trace {
    parent: HeaderValue,
    state: Option<HeaderValue>,
    /// The parent as a JSON string.
    quoted: String,
}

impl Trace {
    /// None where the texts cannot be sent.
    #[must_use]
    pub fn new(parent: &str, state: Option<&str>) -> Option<Self> {
        let header = |text: &str| HeaderValue::from_str(text).ok();
        let state = match state {
            Some(state) => Some(header(state)?),
            None => None,
        };
        Some(Self { parent: header(parent)?, state, quoted: quoted(parent) })
    }

    /// The same place without `tracestate`.
    #[must_use]
    pub fn without_state(&self) -> Self {
        Self { state: None, ..self.clone() }
    }

    pub(crate) fn quoted(&self) -> &str {
        &self.quoted
    }

    /// Puts it into the headers of a request.
    pub fn insert_into(&self, headers: &mut HeaderMap) {
        headers.insert(PARENT, self.parent.clone());
        if let Some(state) = &self.state {
            headers.insert(STATE, state.clone());
        }
    }
}
