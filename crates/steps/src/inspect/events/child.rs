//! What children answer: one message, or a stream where more comes first.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use toolwarden_conversations::Failure;
use toolwarden_conversations::upstreams::{Last, StdioReply};
use toolwarden_conversations::whole::status_of;
use toolwarden_mcp::sse::Event;
use toolwarden_refusals::Refusal;

use super::{Heard, with_receipt};
use crate::answer::Answer;
use crate::audit::Trail;
use crate::resolve::Asked;

/// The answer of a child: one message where that is all, a stream where more comes first.
pub async fn from_child(
    asked: &Asked,
    mut reply: StdioReply,
    mut heard: Heard,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    let first = next_of_child(&mut reply, &mut heard).await;
    match first {
        Told::Event(event) => {
            let state = (reply, heard, false);
            let rest = stream::unfold(state, |(mut reply, mut heard, ended)| async move {
                if ended {
                    return None;
                }
                match next_of_child(&mut reply, &mut heard).await {
                    Told::Event(event) => Some((Event::of(event), (reply, heard, false))),
                    Told::Last(last) => {
                        let message = heard.last_of_child(*last).await.unwrap_or_else(|failure| heard.fail(&failure));
                        Some((Event::of(message), (reply, heard, true)))
                    }
                    Told::Failed(failure) => {
                        let message = heard.fail(&failure);
                        Some((Event::of(message), (reply, heard, true)))
                    }
                }
            });
            let events = stream::once(async move { Event::of(event) }).chain(rest);
            Ok(Answer::Events { events: Box::pin(events), resumable: false })
        }
        Told::Last(last) => {
            let error = last.outcome.as_ref().err().and_then(|error| error.value().get("code")?.raw().parse().ok());
            let checked = heard.last_of_child(*last).await;
            if checked.is_err() {
                *trail = heard.trail.take();
            }
            let era = asked.arrival.version.era();
            checked.map(|body| Answer::of_child(body, error, era)).map_err(Refusal::Upstream)
        }
        Told::Failed(failure) => {
            *trail = heard.trail.take();
            Err(Refusal::Upstream(failure))
        }
    }
}

/// What a child told next.
enum Told {
    Event(Bytes),
    Last(Box<Last>),
    Failed(Failure),
}

async fn next_of_child(reply: &mut StdioReply, heard: &mut Heard) -> Told {
    if let Some(last) = reply.held.take() {
        return match reply.events.try_recv() {
            Ok(event) => {
                reply.held = Some(last);
                Told::Event(event)
            }
            Err(_) => Told::Last(last),
        };
    }
    let patience = heard.patience.unwrap_or(Duration::MAX);
    tokio::select! {
        biased;
        Some(event) = reply.events.recv() => Told::Event(event),
        last = &mut reply.last => match last {
            // What was said before the end may still wait in its channel.
            Ok(last) => match reply.events.try_recv() {
                Ok(event) => {
                    reply.held = Some(Box::new(last));
                    Told::Event(event)
                }
                Err(_) => Told::Last(Box::new(last)),
            },
            Err(failure) => Told::Failed(failure),
        },
        () = sleep(patience) => {
            reply.guard.cancel();
            Told::Failed(Failure::Timeout)
        }
    }
}

async fn sleep(patience: Duration) {
    if patience == Duration::MAX {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(patience).await;
}

impl Heard {
    async fn last_of_child(&mut self, mut last: Last) -> Result<Bytes, Failure> {
        if last.message.len() as u64 > self.bounds.response_bytes {
            return Err(Failure::TooLarge);
        }
        if let Some(shown) = self.looked_at(&last.outcome).await? {
            last.message = shown;
        }
        self.done = true;
        self.release();
        let mut trail = self.trail.take();
        if let Some(trail) = &mut trail {
            trail.outcome(status_of(&last.outcome), self.size + last.message.len() as u64);
        }
        let receipt = trail.as_ref().and_then(Trail::receipt).filter(|_| self.wants_receipt);
        Ok(match receipt {
            Some(receipt) => with_receipt(last.message, receipt),
            None => last.message,
        })
    }
}
