//! Flow labels of a call (GATE-20): what its conversation has met so far, and what it meets now.
//!
//! A conversation of a person is their session, or whatever they do without one until they pause; that of an
//! agent is its credential's task or run, whatever sessions it opens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolwarden_conversations::sessions::identity;
use toolwarden_policy::PolicySet;

use crate::gateway::Gateway;
use crate::resolve::Asked;

/// How long an agent's labels last without a call.
const OF_AGENTS: Duration = Duration::from_secs(24 * 60 * 60);

fn anchor(asked: &Asked) -> String {
    let (caller, session) = (&asked.arrival.caller, &asked.arrival.session);
    if let (false, Some(session)) = (caller.is_agent(), session) {
        return session.mark.clone();
    }
    let part = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
    [identity(caller), part(&caller.context.run), part(&caller.context.session)].join("\u{1f}")
}

/// The labels its conversation has met, where any tool has one.
pub fn seen(gateway: &Gateway, policy: &PolicySet, asked: &Asked) -> Arc<[String]> {
    if !policy.servers().have_labels() {
        return Arc::default();
    }
    let life = if asked.arrival.caller.is_agent() { OF_AGENTS } else { gateway.settings.session_idle };
    gateway.flows.seen(&anchor(asked), now(), life)
}

/// Leaves the labels of a call that is about to be made with its conversation.
pub fn meets(gateway: &Gateway, policy: &PolicySet, asked: &Asked) {
    let call = &asked.query.call;
    let labels = policy.servers().get(&call.server).map(|server| server.labels(&call.tool)).unwrap_or_default();
    if !labels.is_empty() {
        gateway.flows.add(&anchor(asked), labels, now());
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
