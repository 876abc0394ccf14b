//! `subscriptions/listen` at the common door: one stream, fed by every server that offers one.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::{self, select_all};
use toolwarden_conversations::alias::Alias;
use toolwarden_conversations::upstreams::Upstream;
use toolwarden_core::json::{Kind, Limits, Part};
use toolwarden_mcp::ladder::META_SUBSCRIPTION;
use toolwarden_mcp::sse::Event;
use toolwarden_mcp::{Id, Message, compose};

use super::{named, with_params};
use crate::answer::{Answer, Events};
use crate::arrival::Arrival;
use crate::gateway::Gateway;
use crate::pipeline::pass;
use crate::refusal::Refusal;
use crate::resolve::{Resolved, resolve};

pub(super) async fn listen(
    gateway: &Arc<Gateway>,
    arrival: Arrival,
    id: &Id,
    params: Option<&Part>,
) -> Result<Answer, Refusal> {
    let Some(params) = params else { return Err(Refusal::Params("`notifications` is missing".to_owned())) };
    let wanted = params.member("notifications").filter(|wanted| wanted.value().kind() == Kind::Object);
    let Some(wanted) = wanted else { return Err(Refusal::Params("`notifications` must be an object".to_owned())) };
    let servers = named(gateway, &arrival);
    let opening = servers.into_iter().map(|(alias, upstream)| {
        let (arrival, params, wanted) = (&arrival, params, &wanted);
        async move { open_one(gateway, arrival, params, wanted, alias, upstream).await }
    });
    let sources: Vec<Events> = join_all(opening).await.into_iter().flatten().collect();
    let first = acknowledged(id, &wanted);
    // The stream stays open where no server has news: the policy may change what is visible.
    let silent: Events = Box::pin(stream::pending());
    let news = select_all(sources.into_iter().chain([silent]));
    let events = stream::once(async move { Event::of(first) }).chain(news);
    Ok(Answer::Events { events: Box::pin(events), resumable: true })
}

fn acknowledged(id: &Id, wanted: &Part) -> Bytes {
    let params = format!("{{\"notifications\":{},\"_meta\":{{\"{META_SUBSCRIPTION}\":{}}}}}", wanted.raw(), id.raw());
    compose::to_client(None, "notifications/subscriptions/acknowledged", Some(&params))
}

/// The stream of one server, its acknowledgement taken off and its URIs under their common names.
async fn open_one(
    gateway: &Arc<Gateway>,
    arrival: &Arrival,
    params: &Part,
    wanted: &Part,
    alias: Alias,
    upstream: Arc<Upstream>,
) -> Option<Events> {
    let filter = own_filter(wanted, &alias);
    let mut text = String::new();
    let place = params.span_of(wanted.value());
    compose::push_spliced(&mut text, params.raw(), &[(place, &filter)]);
    let params = Part::composed(text).ok()?;
    let asked = match resolve(gateway, with_params(arrival, params), &upstream.name) {
        Ok(Resolved::Asked(asked)) => asked,
        _ => return None,
    };
    let mut no_trail = None;
    let opening = tokio::time::timeout(gateway.settings.gather_time, pass(gateway, &asked, &mut no_trail));
    let Ok(Ok(Answer::Events { events, .. })) = opening.await else { return None };
    Some(Box::pin(events.filter_map(move |event| {
        let shown = shown(event, &alias);
        async move { shown }
    })))
}

/// Only the URIs of this server, under its own names.
fn own_filter(wanted: &Part, alias: &Alias) -> String {
    let mut members = Vec::new();
    for (key, value) in wanted.value().entries() {
        if key == "\"resourceSubscriptions\"" {
            let own: Vec<String> = value
                .items()
                .filter_map(|uri| alias.reveal_uri(&uri.as_str()?).map(|uri| compose::quoted(&uri)))
                .collect();
            if !own.is_empty() {
                members.push(format!("{key}:[{}]", own.join(",")));
            }
        } else if key != "\"taskIds\"" {
            // Behind the common door there are no tasks.
            members.push(format!("{key}:{}", value.raw()));
        }
    }
    format!("{{{}}}", members.join(","))
}

fn shown(mut event: Event, alias: &Alias) -> Option<Event> {
    let data = event.data.clone()?;
    let limits = Limits { bytes: data.len(), depth: 1024 };
    let Ok(Message::Notification(news)) = toolwarden_mcp::message::read_one(&data, limits) else {
        // The end of one server's stream is not the end of ours.
        return None;
    };
    if &*news.method == "notifications/subscriptions/acknowledged" {
        return None;
    }
    let params = news.params.as_ref()?;
    if let Some((place, uri)) = params.value().get("uri").and_then(|uri| Some((uri, uri.as_str()?))) {
        let mut text = String::new();
        let shown = compose::quoted(&alias.expose_uri(&uri));
        compose::push_spliced(&mut text, params.raw(), &[(params.span_of(place), &shown)]);
        event.data = Some(compose::to_client(None, &news.method, Some(&text)));
    }
    Some(event)
}
