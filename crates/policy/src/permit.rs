//! The value that lets a call out. Only the judge makes one, and it owns the call it judged.
//!
//! ```compile_fail
//! // A permit has no constructor outside the judge.
//! fn forge(call: toolwarden_core::Call) -> toolwarden_policy::Permit {
//!     toolwarden_policy::Permit::new(call, unreachable!())
//! }
//! ```
//!
//! ```compile_fail
//! // Its fields are private, so it cannot be written as a literal either.
//! fn forge(call: toolwarden_core::Call, why: toolwarden_policy::Explanation) -> toolwarden_policy::Permit {
//!     toolwarden_policy::Permit { call, explanation: Box::new(why) }
//! }
//! ```
//!
//! ```compile_fail
//! // Nor can one permit be used for two calls.
//! fn twice(permit: toolwarden_policy::Permit) {
//!     let _first = permit.into_call();
//!     let _second = permit.into_call();
//! }
//! ```
//!
//! ```compile_fail
//! // Nor copied.
//! fn copy(permit: &toolwarden_policy::Permit) -> toolwarden_policy::Permit { permit.clone() }
//! ```
//!
//! ```
//! // What an honest holder can do.
//! fn send(permit: toolwarden_policy::Permit) -> toolwarden_core::Outbound { permit.into_call() }
//! ```

use toolwarden_core::{Call, Content, Outbound};

use crate::verdict::Explanation;

/// Permission for one call, with the call itself.
#[derive(Debug)]
#[must_use]
pub struct Permit {
    call: Call,
    explanation: Box<Explanation>,
}

impl Permit {
    pub(crate) fn new(call: Call, explanation: Explanation) -> Self {
        Self { call, explanation: Box::new(explanation) }
    }

    /// The call that was judged.
    #[must_use]
    pub fn call(&self) -> &Call {
        &self.call
    }

    #[must_use]
    pub fn explanation(&self) -> &Explanation {
        &self.explanation
    }

    /// Turns the permit into the message it permits: the judged bytes, and no others.
    #[must_use]
    pub fn into_call(self) -> Outbound {
        let method = self.call.requested_operation().method();
        #[expect(clippy::disallowed_methods, reason = "the judge is where outbound messages are made")]
        Outbound::release(self.call.server, Content::Method { method: method.into(), params: self.call.params })
    }
}
