//! Clients and servers of different eras: each hears its own words, under the same judge.
//!
//! `newer_server` carries what a legacy client says to a modern server, `older_server` the other way
//! round. What is judged is the client's message; what is sent is the same call in the other era's
//! envelope. A server's question finds its way back as a request or as `input_required`.

mod leg;
mod listening;
mod newer_server;
mod older_server;

use std::sync::{Arc, PoisonError};

use toolwarden_conversations::sessions::AnswerTo;
use toolwarden_core::Outbound;
use toolwarden_core::json::Part;
use toolwarden_mcp::Era;

pub(crate) use listening::listen_for;

use toolwarden_refusals::Refusal;
use toolwarden_steps::answer::Answer;
use toolwarden_steps::arrival::Arrival;
use toolwarden_steps::audit::Trail;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::resolve::{Asked, What, text_member};

/// Carries a judged message to a server of the other era.
pub(crate) async fn carry(
    gateway: &Arc<Gateway>,
    asked: &Arc<Asked>,
    outbound: Outbound,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    match asked.arrival.version.era() {
        Era::Legacy => newer_server::carry(gateway, asked, outbound, trail).await,
        Era::Modern => older_server::carry(gateway, asked, outbound, trail).await,
    }
}

/// Answers and cancellations that end here: somebody carries the call they belong to.
pub(crate) fn delivered(asked: &Asked) -> Option<Answer> {
    match &asked.what {
        What::Answer(question, outcome) => {
            let (AnswerTo::Waiter(waiter) | AnswerTo::Gateway(waiter)) = &question.to else { return None };
            let waiter = waiter.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Whoever waited may have given up.
            let _ = waiter.map(|waiter| waiter.send(outcome.clone()));
            Some(Answer::Accepted)
        }
        _ => None,
    }
}

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Remembers the log level a legacy client wants: a modern server is told with each request.
pub(crate) fn set_level(arrival: &Arrival, params: Option<&Part>) -> Result<(), Refusal> {
    let level = text_member(params, "level").filter(|level| LEVELS.contains(&level.as_str()));
    let level = level.ok_or_else(|| Refusal::Params(format!("`level` must be one of {}", LEVELS.join(", "))))?;
    if let Some(session) = &arrival.session {
        session.set_level(format!("\"{level}\""));
    }
    Ok(())
}

/// How severe a level is; unknown ones are heard by nobody.
fn severity(level: &str) -> Option<usize> {
    LEVELS.iter().position(|known| *known == level)
}
