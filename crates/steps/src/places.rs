//! A place among the requests on their way (GATE-13), after the judge and before anything is recorded or leaves.
//!
//! The request's flight holds it, so it is given back when nobody has to do with the request any more, whichever way that
//! came about. A call that waits parked for its client keeps its place, and the request that comes back goes on with it.

use std::sync::Arc;

use tokio::time::sleep;
use toolwarden_conversations::request_state::Carried;
use toolwarden_conversations::sessions::identity;
use toolwarden_guard::Over;
use toolwarden_refusals::{Denial, Refusal};

use crate::arrival::Arrival;
use crate::gateway::Gateway;
use crate::resolve::{Asked, What};

/// Streams of news are counted as such, at the door.
const LISTEN: &str = "subscriptions/listen";

pub async fn take(gateway: &Gateway, asked: &Asked) -> Result<(), Refusal> {
    let goes_on = matches!(asked.state.as_ref().map(|state| &state.carried), Some(Carried::Parked(_)));
    if asked.id.is_none() || goes_on || &*asked.method == LISTEN {
        return Ok(());
    }
    let call = matches!(asked.what, What::Call).then(|| (&*asked.upstream.name, &*asked.query.call.tool));
    enter(gateway, &asked.arrival, call).await
}

/// A place for a call of a tool, or for anything else that only the gateway counts.
pub async fn enter(gateway: &Gateway, arrival: &Arrival, call: Option<(&str, &str)>) -> Result<(), Refusal> {
    let now = gateway.started.elapsed().as_secs();
    let who = || identity(&arrival.caller);
    let beyond = async |levels| match &gateway.protection {
        Some(protection) => protection.count(levels, gateway.clock.now()).await,
        None => Ok(()),
    };
    let patience = sleep(gateway.settings.turn_time);
    let entered = gateway.limiter.enter(call, who, now, patience, beyond).await;
    let held = entered.map_err(|over| refuse(gateway, &over))?;
    arrival.course.flight().hold(Arc::new(held));
    Ok(())
}

pub(crate) fn refuse(gateway: &Gateway, over: &Over) -> Refusal {
    let explanation = over.explanation(gateway.live.policy().version());
    Refusal::Denied(Box::new(Denial {
        retry_after: Some(over.retry_after),
        ..Denial::new(explanation, over.words.clone())
    }))
}
