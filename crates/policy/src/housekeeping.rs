//! The gateway's own messages to a server: a fixed list that carries no caller's intent.

use std::sync::Arc;

use toolwarden_core::json::{Document, Limits, Part};
use toolwarden_core::{Content, Outbound};

/// Methods the gateway may send on its own account. The last two only end something: whoever may not begin it any
/// more may still let go of it.
pub const METHODS: [&str; 11] = [
    "initialize",
    "notifications/initialized",
    "server/discover",
    "ping",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "subscriptions/listen",
    "notifications/cancelled",
    "resources/unsubscribe",
];

/// A method that needs a caller and a permit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a housekeeping method")]
pub struct NotHousekeeping(String);

/// Refuses a server's question on the gateway's own account: the text says no, and carries nothing else.
///
/// # Errors
/// The text is not a JSON-RPC error object.
pub fn decline(server: Arc<str>, error: Part) -> Result<Outbound, NotHousekeeping> {
    if error.value().get("code").is_none() || error.value().get("message").is_none() {
        return Err(NotHousekeeping("answer".to_owned()));
    }
    #[expect(clippy::disallowed_methods, reason = "the judge is where outbound messages are made")]
    Ok(Outbound::release(server, Content::Error(error)))
}

/// Says yes to a server that asks whether we are still there.
#[must_use]
pub fn acknowledge(server: Arc<str>) -> Outbound {
    let empty = Document::parse("{}", Limits::DEFAULT).map(|document| Part::whole(Arc::new(document)));
    let content = match empty {
        Ok(empty) => Content::Result(empty),
        // Two braces always parse; were they not to, a notification says nothing.
        Err(_) => Content::Method { method: "ping".into(), params: None },
    };
    #[expect(clippy::disallowed_methods, reason = "the judge is where outbound messages are made")]
    Outbound::release(server, content)
}

/// Lets one of the gateway's own messages out.
///
/// # Errors
/// The method is not on the fixed list.
pub fn housekeeping(server: Arc<str>, method: &str, params: Option<Part>) -> Result<Outbound, NotHousekeeping> {
    if !METHODS.contains(&method) {
        return Err(NotHousekeeping(method.to_owned()));
    }
    #[expect(clippy::disallowed_methods, reason = "the judge is where outbound messages are made")]
    Ok(Outbound::release(server, Content::Method { method: method.into(), params }))
}

#[cfg(test)]
#[path = "housekeeping_tests.rs"]
mod tests;
