//! `subscriptions/listen` at the common door: one stream, fed by every server that offers one.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::{self, select_all};
use tokio::time::timeout;
use toolwarden_conversations::alias::Alias;
use toolwarden_conversations::upstreams::{Upstream, Wanted, acknowledged};
use toolwarden_core::json::{Kind, Limits, Part};
use toolwarden_mcp::message::read_one;
use toolwarden_mcp::sse::Event;
use toolwarden_mcp::{Id, Message, compose};

use super::{named, with_params};
use crate::answer::{Answer, Events};
use crate::arrival::{Arrival, Course};
use crate::gateway::Gateway;
use crate::pipeline::pass;
use crate::refusal::Refusal;
use crate::resolve::{Resolved, resolve};

/// A server's stream that ended, or could not be opened, is tried again after this; twice as long each time.
const AGAIN: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

pub(super) async fn listen(
    gateway: &Arc<Gateway>,
    arrival: Arrival,
    id: &Id,
    params: Option<&Part>,
) -> Result<Answer, Refusal> {
    let Some(params) = params else { return Err(Refusal::Params("`notifications` is missing".to_owned())) };
    let wanted = params.member("notifications").filter(|wanted| wanted.value().kind() == Kind::Object);
    let Some(wanted) = wanted else { return Err(Refusal::Params("`notifications` must be an object".to_owned())) };
    let opening = named(gateway, &arrival).into_iter().map(|(alias, upstream)| {
        // Each server has a request of its own, which ends with this one.
        let arrival = Arrival { session: None, course: Course::default(), ..arrival.clone() };
        let gateway = Arc::downgrade(gateway);
        Voice { gateway, arrival, params: params.clone(), wanted: wanted.clone(), alias, upstream }.begin()
    });
    let mut agreed = Wanted::default();
    let mut sources: Vec<Events> = Vec::new();
    for (said, news) in join_all(opening).await {
        agreed.join(said);
        sources.push(news);
    }
    let first = acknowledged(&agreed, id);
    // The stream stays open where no server has news: the policy may change what is visible.
    sources.push(Box::pin(stream::pending()));
    let events = stream::once(async move { Event::of(first) }).chain(select_all(sources));
    Ok(Answer::Events { events: Box::pin(events), resumable: true })
}

/// One server that is listened to for a client of the common door.
struct Voice {
    gateway: Weak<Gateway>,
    arrival: Arrival,
    params: Part,
    wanted: Part,
    alias: Alias,
    upstream: Arc<Upstream>,
}

impl Voice {
    /// What the server agreed to tell, and its news from now on: a stream that ends is opened again.
    async fn begin(self) -> (Wanted, Events) {
        let (agreed, open) = match self.open().await {
            Some((agreed, events)) => (agreed, Some(events)),
            None => (Wanted::default(), None),
        };
        let news = stream::unfold((self, open, AGAIN), |(voice, mut open, mut pause)| async move {
            loop {
                while let Some(event) = next_of(&mut open).await {
                    if let Some(event) = shown(event, &voice.alias) {
                        return Some((event, (voice, open, AGAIN)));
                    }
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                if voice.gateway.strong_count() == 0 {
                    return None;
                }
                open = voice.open().await.map(|(_, events)| events);
            }
        });
        (agreed, Box::pin(news))
    }

    /// Opens the stream of the server, and waits for what it agrees to tell.
    async fn open(&self) -> Option<(Wanted, Events)> {
        let gateway = self.gateway.upgrade()?;
        let filter = own_filter(&self.wanted, &self.alias);
        let mut text = String::new();
        let place = self.params.span_of(self.wanted.value());
        compose::push_spliced(&mut text, self.params.raw(), &[(place, &filter)]);
        let params = Part::composed(text).ok()?;
        let asked = match resolve(&gateway, with_params(&self.arrival, params), &self.upstream.name) {
            Ok(Resolved::Asked(asked)) => asked,
            _ => return None,
        };
        let opening = async {
            let mut no_trail = None;
            let answer = pass(&gateway, &asked, &mut no_trail).await.ok()?;
            let Answer::Events { mut events, .. } = answer else { return None };
            let first = events.next().await?;
            Some((agreed_in(&first, &self.alias)?, events))
        };
        timeout(gateway.settings.gather_time, opening).await.ok().flatten()
    }
}

/// The next event; none where nothing is open, or it has ended.
async fn next_of(open: &mut Option<Events>) -> Option<Event> {
    open.as_mut()?.next().await
}

/// What a server agrees to tell, under the names of the common door; none where it says something else first.
fn agreed_in(first: &Event, alias: &Alias) -> Option<Wanted> {
    let data = first.data.as_ref()?;
    let Ok(Message::Notification(news)) = read_one(data, Limits { bytes: data.len(), depth: 256 }) else { return None };
    if &*news.method != "notifications/subscriptions/acknowledged" {
        return None;
    }
    let mut agreed = Wanted::of(news.params.as_ref()?.value().get("notifications")?);
    agreed.uris = agreed.uris.iter().map(|uri| alias.expose_uri(uri)).collect();
    Some(agreed)
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
    let Ok(Message::Notification(news)) = read_one(&data, limits) else {
        // The end of one server's stream is not the end of ours.
        return None;
    };
    if &*news.method == "notifications/subscriptions/acknowledged" {
        return None;
    }
    let Some(params) = news.params.as_ref() else { return Some(event) };
    if let Some((place, uri)) = params.value().get("uri").and_then(|uri| Some((uri, uri.as_str()?))) {
        let mut text = String::new();
        let shown = compose::quoted(&alias.expose_uri(&uri));
        compose::push_spliced(&mut text, params.raw(), &[(params.span_of(place), &shown)]);
        event.data = Some(compose::to_client(None, &news.method, Some(&text)));
    }
    Some(event)
}
