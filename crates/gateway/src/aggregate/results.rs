//! URIs in answers: a resource that a result speaks of must be readable under the name it is given.

use std::ops::Range;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use toolwarden_conversations::alias::Alias;
use toolwarden_core::json::{Document, Kind, Limits, Value};
use toolwarden_mcp::compose::{push_spliced, quoted};

use toolwarden_steps::answer::{Answer, gathered};

/// The answer with the URIs of its server under their common names. A large answer that is not the
/// reading of a resource passes as it is: it streams.
pub(super) async fn shown(answer: Answer, alias: Alias, method: &str) -> Answer {
    match answer {
        Answer::Message(mut reply) => {
            reply.body = rewritten(reply.body, &alias);
            Answer::Message(reply)
        }
        Answer::Body(body) if method == "resources/read" => match gathered(body).await {
            Some(whole) => Answer::message(rewritten(whole, &alias)),
            None => Answer::Events { events: Box::pin(stream::empty()), resumable: true },
        },
        Answer::Events { events, resumable } => {
            let events = events.map(move |mut event| {
                event.data = event.data.map(|data| rewritten(data, &alias));
                event
            });
            Answer::Events { events: Box::pin(events), resumable }
        }
        other => other,
    }
}

pub(super) fn rewritten(message: Bytes, alias: &Alias) -> Bytes {
    let Ok(text) = std::str::from_utf8(&message) else { return message };
    if !text.contains("uri") {
        return message;
    }
    let limits = Limits { bytes: text.len(), depth: 1024 };
    let Ok(document) = Document::parse(text, limits) else { return message };
    let mut places: Vec<(Range<usize>, String)> = Vec::new();
    if let Some(result) = document.root().get("result") {
        let mut found = |holder: Value<'_>| {
            if let Some((place, uri)) = holder.get("uri").and_then(|uri| Some((uri, uri.as_str()?))) {
                places.push((place.span(), quoted(&alias.expose_uri(&uri))));
            }
        };
        items(result, "contents").for_each(&mut found);
        items(result, "content").for_each(|block| of_block(block, &mut found));
        for message in items(result, "messages") {
            if let Some(block) = message.get("content") {
                of_block(block, &mut found);
            }
        }
    }
    if places.is_empty() {
        return message;
    }
    places.sort_unstable_by_key(|(range, _)| range.start);
    let splices: Vec<(Range<usize>, &str)> = places.iter().map(|(range, uri)| (range.clone(), uri.as_str())).collect();
    let mut shown = String::with_capacity(text.len() + 64);
    push_spliced(&mut shown, text, &splices);
    Bytes::from(shown)
}

fn items<'a>(result: Value<'a>, key: &str) -> impl Iterator<Item = Value<'a>> {
    let list = result.get(key).filter(|list| list.kind() == Kind::Array);
    list.into_iter().flat_map(Value::items)
}

fn of_block(block: Value<'_>, found: &mut impl FnMut(Value<'_>)) {
    match block.get("type").and_then(|kind| kind.as_str()).as_deref() {
        Some("resource_link") => found(block),
        Some("resource") => block.get("resource").into_iter().for_each(found),
        _ => {}
    }
}
