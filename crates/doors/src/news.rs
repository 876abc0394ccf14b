//! Streams of news: counted for each caller, and ended in the words of their era when the gateway is told to stop.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use toolwarden_conversations::upstreams::ended;
use toolwarden_gateway::{Answer, Arrival, Gateway, Shape, answer, handle};
use toolwarden_mcp::Message;
use toolwarden_mcp::sse::Event;

use crate::observing::{turn_away, why};

const LISTEN: &str = "subscriptions/listen";

/// Walks a message through the corridor; a subscription of a modern client is a stream of news.
pub(crate) async fn walk(gateway: &Arc<Gateway>, arrival: Arrival) -> Answer {
    let id = match &arrival.message {
        Message::Request(request) if &*request.method == LISTEN => request.id.clone(),
        _ => return handle(gateway, arrival).await,
    };
    match gateway.open_stream(&arrival.caller) {
        Ok(counted) => {
            let last = ended(&id);
            standing(gateway, handle(gateway, arrival).await, counted, Some(last))
        }
        Err(refusal) => {
            turn_away(gateway, why(&refusal));
            let shape = Shape { id: Some(id), wants_answer: true, is_tool_call: false, era: arrival.version.era() };
            answer::refuse(&shape, &refusal)
        }
    }
}

/// A stream that goes on until the gateway is told to stop. Holds what it counts as; says a last word where it has one.
pub(crate) fn standing(gateway: &Gateway, answer: Answer, counted: impl Send + 'static, last: Option<Bytes>) -> Answer {
    let Answer::Events { events, resumable } = answer else { return answer };
    let closing = Box::pin(gateway.closing().begun());
    let open = Some((events, closing, counted, last));
    let events = stream::unfold(open, |open| async move {
        let (mut events, mut closing, counted, last) = open?;
        tokio::select! {
            biased;
            event = events.next() => Some((event?, Some((events, closing, counted, last)))),
            () = &mut closing => Some((Event::of(last?), None)),
        }
    });
    Answer::Events { events: Box::pin(events), resumable }
}
