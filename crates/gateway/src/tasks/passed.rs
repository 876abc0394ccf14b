//! A held call of which its server made a task: whoever asks for the gateway's is answered with the server's, as long as this
//! gateway remembers whose that is.

use futures_util::StreamExt;
use toolwarden_core::json::Part;
use toolwarden_mcp::Message;
use toolwarden_mcp::compose::{object_with, quoted};
use toolwarden_refusals::Refusal;
use toolwarden_steps::answer::{Answer, gathered};
use toolwarden_steps::audit::Trail;
use toolwarden_steps::resolve::{Resolved, resolve};

use super::{Followed, words};
use crate::aggregate::{mirror, with_params};
use crate::pipeline;

/// Carries a message about a task on to the server, under the name it has there.
pub(super) async fn carry(followed: &Followed, theirs: &str, trail: &mut Option<Trail>) -> Result<Answer, Refusal> {
    let (gateway, upstream, ours) = (&followed.gateway, &followed.upstream, &followed.task.id);
    let unfit = |error: toolwarden_core::json::JsonError| Refusal::Upstream(error.into());
    let Message::Request(request) = &followed.arrival.message else { return Err(Refusal::ForeignTask) };
    let params = object_with(request.params.as_ref().map(Part::value), &[("taskId", Some(&quoted(theirs)))]);
    let mut onward = with_params(&followed.arrival, Part::composed(params).map_err(unfit)?);
    mirror(&mut onward, theirs);
    let Resolved::Asked(asked) = resolve(gateway, onward, &upstream.name)? else { return Err(Refusal::ForeignTask) };
    let answer = Box::pin(pipeline::pass(gateway, &asked, trail)).await?;
    Ok(match answer {
        Answer::Message(mut reply) => {
            reply.body = words::renamed(&reply.body, theirs, ours);
            Answer::Message(reply)
        }
        Answer::Body(body) => match gathered(body).await {
            Some(whole) => Answer::message(words::renamed(&whole, theirs, ours)),
            None => Answer::Accepted,
        },
        Answer::Events { events, resumable } => {
            let (theirs, ours) = (theirs.to_owned(), ours.clone());
            let events = events.map(move |mut event| {
                event.data = event.data.map(|data| words::renamed(&data, &theirs, &ours));
                event
            });
            Answer::Events { events: Box::pin(events), resumable }
        }
        Answer::Accepted => Answer::Accepted,
    })
}
