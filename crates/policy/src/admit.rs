//! Protocol messages of a caller that are no calls: lists, subscriptions, answers, cancellations.
//!
//! They need a server the caller may reach, judged by the same stages as a call as far as these speak
//! of servers. Watching a resource needs the right to read it, and nobody can be asked about it: where reading it always
//! asks, watching it is denied. A method of neither list is refused.

use toolwarden_core::json::Part;
use toolwarden_core::{Content, Decision, Outbound, Reason, Stage, Weakness, weak};

use crate::authorize::{authorize, authorize_server};
use crate::holds::{cannot_be_held, mandatory_holds};
use crate::query::Query;
use crate::set::PolicySet;
use crate::subject::Subject;
use crate::verdict::{Explanation, Step};

/// Messages that pass once their server does.
pub const METHODS: [&str; 20] = [
    "initialize",
    "notifications/initialized",
    "server/discover",
    "ping",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "logging/setLevel",
    "resources/unsubscribe",
    "subscriptions/listen",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
    "notifications/tasks/status",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tasks/cancel",
];

/// Calls, which are decided whole and never pass as messages.
const CALLS: [&str; 4] = ["tools/call", "resources/read", "prompts/get", "completion/complete"];

/// Messages that pass once reading the resource they name does.
pub const WATCHING: [&str; 1] = ["resources/subscribe"];

/// Every method that is decided by a row of its own.
pub fn known_methods() -> impl Iterator<Item = &'static str> {
    METHODS.into_iter().chain(WATCHING).chain(CALLS)
}

/// What a caller sends besides calls.
#[derive(Debug, Clone)]
pub enum Message {
    /// A request or notification of one of the lists above.
    Listed {
        method: String,
    },
    /// One that the config added: `[gateway] methods`.
    Configured {
        method: String,
    },
    /// An answer to something the server asked.
    Result(Part),
    Error(Part),
}

/// Judges a protocol message. `query.call` names the server, and carries the params.
///
/// # Errors
/// The caller may not reach the server, or the method is on no list.
pub fn admit(policy: &PolicySet, query: &Query, message: Message) -> Result<Outbound, Box<Explanation>> {
    let subject = Subject::new(policy, query);
    let denied = match &message {
        Message::Listed { method } if WATCHING.contains(&method.as_str()) => watching(&subject),
        Message::Listed { method } if !METHODS.contains(&method.as_str()) => {
            Some((Stage::Names, Step::because(Reason::MethodNotListed)))
        }
        // A call must never pass as a configured method: it would skip the judge.
        Message::Configured { method } if is_call(method) && !weak::is(Weakness::Methods) => {
            Some((Stage::Names, Step::because(Reason::MethodNotListed)))
        }
        Message::Listed { .. } | Message::Configured { .. } | Message::Result(_) | Message::Error(_) => {
            authorize_server(&subject)
        }
    };
    if let Some((stage, step)) = denied {
        return Err(Box::new(explain(policy, stage, step)));
    }
    let content = match message {
        Message::Listed { method } | Message::Configured { method } => {
            Content::Method { method: method.into(), params: query.call.params.clone() }
        }
        Message::Result(part) => Content::Result(part),
        Message::Error(part) => Content::Error(part),
    };
    #[expect(clippy::disallowed_methods, reason = "the judge is where outbound messages are made")]
    Ok(Outbound::release(query.call.server.clone(), content))
}

fn watching(subject: &Subject<'_>) -> Option<(Stage, Step)> {
    let authorization = authorize(subject);
    authorization.denied.or_else(|| {
        let hold = mandatory_holds(subject, authorization.hold).into_iter().next()?;
        Some((Stage::MandatoryHold, cannot_be_held(&hold)))
    })
}

/// Whether a method is decided whole, as a call or as the right to read, and never passes as a plain message. In any
/// spelling: a server may forgive case.
#[must_use]
pub fn is_call(method: &str) -> bool {
    CALLS.iter().chain(&WATCHING).any(|call| call.eq_ignore_ascii_case(method.trim()))
}

fn explain(policy: &PolicySet, stage: Stage, step: Step) -> Explanation {
    Explanation {
        decision: Decision::Deny,
        stage,
        reason: step.reason().unwrap_or(Reason::RuleError),
        rule: step.rule,
        detail: step.detail,
        candidates: Vec::new(),
        payers: Vec::new(),
        trace: Vec::new(),
        policy_version: policy.version(),
        valid_until: None,
    }
}

#[cfg(test)]
#[path = "admit_tests.rs"]
mod tests;
