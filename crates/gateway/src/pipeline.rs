//! The corridor: the one function every message walks through, whichever door it came in by.
//!
//! open audit → resolve → decide → record intent → forward → inspect → answer. Reading, identifying
//! and finding the session happen at the door; nothing leaves but through `decide`.

use std::sync::Arc;

use toolwarden_conversations::Scope;
use toolwarden_conversations::questions;
use toolwarden_mcp::{Era, Message};

use crate::answer::{self, Answer, Shape};
use crate::arrival::Arrival;
use crate::audit::Trail;
use crate::decide::{Judged, decide};
use crate::ending::{Endings, unless_ended};
use crate::gateway::Gateway;
use crate::inspect::inspect;
use crate::refusal::Refusal;
use crate::resolve::{Asked, Resolved, What, resolve};
use crate::{aggregate, bridge, catalog, forward, opening, parameters, shared};

/// Walks one message through. Every exit closes the trail.
pub async fn handle(gateway: &Arc<Gateway>, arrival: Arrival) -> Answer {
    let shape = shape_of(&arrival);
    let method = match &arrival.message {
        Message::Request(request) => request.method.clone(),
        Message::Notification(notification) => notification.method.clone(),
        Message::Response(_) => "".into(),
    };
    let mut trail = Some(Trail::open(gateway, &arrival, method));
    match walk(gateway, arrival, &mut trail).await {
        Ok(answer) => answer,
        Err(refusal) => {
            if let Some(trail) = trail {
                trail.refused(&refusal).await;
            }
            answer::refuse(&shape, &refusal)
        }
    }
}

async fn walk(gateway: &Arc<Gateway>, arrival: Arrival, trail: &mut Option<Trail>) -> Result<Answer, Refusal> {
    let server = match &arrival.scope {
        Scope::One(server) => server.clone(),
        Scope::All => return aggregate::handle(gateway, arrival, trail).await,
    };
    let asked = match resolve(gateway, arrival, &server)? {
        Resolved::Asked(asked) => asked,
        Resolved::Dropped(what) => {
            tracing::debug!("dropped: {what}");
            return Ok(Answer::Accepted);
        }
        Resolved::Foreign(what) => return Ok(drop_foreign(what, trail).await),
    };
    pass(gateway, &asked, trail).await
}

/// A message that speaks of what is not its caller's own reaches nobody, and is recorded (GATE-19).
pub(crate) async fn drop_foreign(what: &'static str, trail: &mut Option<Trail>) -> Answer {
    if let Some(trail) = trail.take() {
        trail.dropped(what).await;
    }
    Answer::Accepted
}

/// The steps for a message whose server is known.
pub(crate) async fn pass(
    gateway: &Arc<Gateway>,
    asked: &Arc<Asked>,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    if let Some(trail) = trail.as_mut() {
        trail.asks(asked);
    }
    catalog::know(gateway, asked).await?;
    let endings = Endings::of(gateway, asked);
    let judged = decide(gateway, asked)?;
    parameters::check(gateway, asked)?;
    if let Some(state) = &asked.state {
        gateway.states.consume(state, &asked.arrival.caller)?;
    }
    if let Judged::Call(permit) = &judged {
        let trail = trail.as_mut().ok_or(Refusal::NoRecord)?;
        trail.intent(permit.explanation(), permit.call().params.as_ref()).await?;
    }
    if let (What::Task(Some(_)), Some(trail)) = (&asked.what, trail.as_mut()) {
        trail.intent_of_task().await?;
    }
    let outbound = judged.into_outbound();
    if matches!(asked.what, What::Opening) && asked.arrival.version.era() == Era::Legacy {
        return opening::open(gateway, asked, &outbound).await;
    }
    if let What::Answer(question, outcome) = &asked.what {
        let (caller, outcome) = (&asked.arrival.caller, outcome.as_ref());
        if !questions::answered(&asked.upstream, caller, &question.method, outcome).await {
            return Err(Refusal::NoRecord);
        }
    }
    if let Some(answer) = bridge::delivered(asked) {
        return Ok(answer);
    }
    let link = forward::link_of(asked).await?;
    if link.as_ref().is_some_and(|link| link.era() != asked.arrival.version.era()) {
        let going = bridge::carry(gateway, asked, outbound, trail);
        return unless_ended(gateway, asked, endings, going).await;
    }
    if let Some(answer) = shared::answered(asked) {
        return Ok(answer);
    }
    let stop = endings.stop.clone();
    let going = async {
        let forwarded = forward::forward(gateway, asked, &outbound, link, stop.as_ref()).await?;
        inspect(gateway, asked, forwarded, trail).await
    };
    unless_ended(gateway, asked, endings, going).await
}

/// What an answer to a message must be shaped to.
pub(crate) fn shape_of(arrival: &Arrival) -> Shape {
    let era = arrival.version.era();
    match &arrival.message {
        Message::Request(request) => Shape {
            id: Some(request.id.clone()),
            wants_answer: true,
            is_tool_call: &*request.method == "tools/call",
            era,
        },
        Message::Notification(_) | Message::Response(_) => {
            Shape { id: None, wants_answer: false, is_tool_call: false, era }
        }
    }
}
