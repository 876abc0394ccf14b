//! A client gives up a request of its own: nobody waits for the answer any more, and the trail says so.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use tokio::sync::Notify;

use crate::answer::Answer;
use crate::refusal::Refusal;
use crate::resolve::Asked;

/// Told once, when the client gives a request up.
pub(crate) type Stop = Arc<Notify>;

/// Only a request of a session can be given up by another message; any other ends with its connection.
pub(crate) fn stop_of(asked: &Asked) -> Option<Stop> {
    (asked.id.is_some() && asked.arrival.session.is_some()).then(Stop::default)
}

/// The answer, unless the client gives the request up before it is there, or while it streams.
pub(crate) async fn unless_stopped(
    stop: Option<&Stop>,
    going: impl Future<Output = Result<Answer, Refusal>>,
) -> Result<Answer, Refusal> {
    let Some(stop) = stop else { return going.await };
    let answer = tokio::select! {
        biased;
        () = stop.notified() => return Ok(Answer::Events { events: Box::pin(stream::empty()), resumable: true }),
        answer = going => answer?,
    };
    Ok(match answer {
        Answer::Events { events, resumable } => {
            Answer::Events { events: Box::pin(events.take_until(stop.clone().notified_owned())), resumable }
        }
        Answer::Body(mut body) => {
            body.stopped = Some(Box::pin(stop.clone().notified_owned()));
            Answer::Body(body)
        }
        answer => answer,
    })
}
