//! `subscriptions/listen` at the common door: one stream, fed by every server that offers one.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::stream::{self, FuturesUnordered, select, select_all};
use futures_util::{Stream, StreamExt};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Instant, timeout, timeout_at};
use toolwarden_conversations::alias::Alias;
use toolwarden_conversations::upstreams::{Upstream, Wanted, acknowledged};
use toolwarden_core::json::{Kind, Limits, Part};
use toolwarden_mcp::ladder::META_SUBSCRIPTION;
use toolwarden_mcp::message::read_one;
use toolwarden_mcp::sse::Event;
use toolwarden_mcp::{Backoff, Id, Message, compose};

use super::{named, with_params};
use crate::pipeline::pass;
use toolwarden_refusals::Refusal;
use toolwarden_steps::answer::{Answer, Events};
use toolwarden_steps::arrival::{Arrival, Course};
use toolwarden_steps::ending::while_known;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::resolve::{Resolved, resolve};
use toolwarden_steps::visible::Change;

/// So long the client waits to hear what is agreed on; slower servers join later.
const AGREEMENT: Duration = Duration::from_secs(2);
/// Servers that came later and are waited for at the same time.
const AT_ONCE: usize = 64;

pub(super) async fn listen(
    gateway: &Arc<Gateway>,
    arrival: Arrival,
    id: &Id,
    params: Option<&Part>,
) -> Result<Answer, Refusal> {
    let Some(params) = params else { return Err(Refusal::Params("`notifications` is missing".to_owned())) };
    let wanted = params.member("notifications").filter(|wanted| wanted.value().kind() == Kind::Object);
    let Some(wanted) = wanted else { return Err(Refusal::Params("`notifications` must be an object".to_owned())) };
    let caller = arrival.caller.clone();
    // Each server has a request of its own, which ends with this one.
    let arrival = Arrival { session: None, course: Course::default(), ..arrival };
    let (params, id) = (params.clone(), id.clone());
    let changes = gateway.visible.subscribe();
    let mut hearer =
        Hearer { gateway: Arc::downgrade(gateway), arrival, id, params, wanted, changes, known: HashSet::new() };
    let mut opening: FuturesUnordered<_> = hearer.voices(gateway).into_iter().map(Voice::begin).collect();
    let mut agreed = Wanted::default();
    let mut sources: Vec<Events> = Vec::new();
    let deadline = Instant::now() + AGREEMENT;
    while let Ok(Some((said, news))) = timeout_at(deadline, opening.next()).await {
        agreed.join(said);
        sources.push(news.events());
    }
    let first = acknowledged(&agreed, &hearer.id);
    let late = opening.chain(hearer.newcomers());
    let late = late.map(|(said, news)| news.after_a_gap(&said).events()).flatten_unordered(None);
    // The stream stays open where no server has news: the policy may change what is visible.
    sources.push(Box::pin(stream::pending()));
    let events = stream::once(async move { Event::of(first) }).chain(select(select_all(sources), late));
    Ok(Answer::Events { events: while_known(gateway, caller, Box::pin(events)), resumable: true })
}

/// A client of the common door that listens, to servers that come later, too.
struct Hearer {
    gateway: Weak<Gateway>,
    arrival: Arrival,
    /// Of the client's request, which names the subscription.
    id: Id,
    params: Part,
    wanted: Part,
    changes: broadcast::Receiver<Arc<Change>>,
    /// The servers it listens to.
    known: HashSet<Arc<str>>,
}

impl Hearer {
    /// Those it may reach and does not listen to.
    fn voices(&mut self, gateway: &Arc<Gateway>) -> Vec<Voice> {
        let mut voices = Vec::new();
        for (alias, upstream) in named(gateway, &self.arrival) {
            if self.known.insert(upstream.name.clone()) {
                let (gateway, arrival) = (self.gateway.clone(), self.arrival.clone());
                let (id, params, wanted) = (self.id.clone(), self.params.clone(), self.wanted.clone());
                voices.push(Voice { gateway, arrival, id, params, wanted, alias, upstream });
            }
        }
        voices
    }

    /// What servers tell that can be reached from some moment on.
    fn newcomers(self) -> impl Stream<Item = (Wanted, Told)> + Send {
        let coming = stream::unfold(self, |mut hearer| async move {
            loop {
                if let Err(RecvError::Closed) = hearer.changes.recv().await {
                    return None;
                }
                let gateway = hearer.gateway.upgrade()?;
                let voices = hearer.voices(&gateway);
                if !voices.is_empty() {
                    return Some((stream::iter(voices), hearer));
                }
            }
        });
        coming.flatten().map(Voice::begin).buffer_unordered(AT_ONCE)
    }
}

/// One server that is listened to for a client of the common door.
struct Voice {
    gateway: Weak<Gateway>,
    arrival: Arrival,
    /// Of the client's request, which names the subscription.
    id: Id,
    params: Part,
    wanted: Part,
    alias: Alias,
    upstream: Arc<Upstream>,
}

impl Voice {
    /// What the server agreed to tell, and its news from now on.
    async fn begin(self) -> (Wanted, Told) {
        let voice = Arc::new(self);
        let (agreed, open) = match Self::opened(&voice).await {
            Some((agreed, events)) => (agreed, Some(events)),
            None => (Wanted::default(), None),
        };
        let told = Told { voice, open, since: Instant::now(), waiting: VecDeque::new(), pauses: Backoff::new() };
        (agreed, told)
    }

    /// Apart from the client's stream: whoever does not read it would keep others waiting who want the same server.
    async fn opened(voice: &Arc<Self>) -> Option<(Wanted, Events)> {
        let voice = voice.clone();
        tokio::spawn(async move { voice.open().await }).await.ok().flatten()
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

/// The news of one server: a stream that ends, or could not be opened, is tried again.
struct Told {
    voice: Arc<Voice>,
    open: Option<Events>,
    since: Instant,
    /// What is told before anything the server says.
    waiting: VecDeque<Event>,
    pauses: Backoff,
}

impl Told {
    fn events(self) -> Events {
        Box::pin(stream::unfold(self, |mut told| async move {
            let event = told.next().await?;
            Some((event, told))
        }))
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            while let Some(event) = self.said().await {
                if let Some(event) = shown(event, &self.voice.alias) {
                    return Some(event);
                }
            }
            let lasted = self.open.take().map_or(Duration::ZERO, |_| self.since.elapsed());
            tokio::time::sleep(self.pauses.delay_after(lasted)).await;
            if self.voice.gateway.strong_count() == 0 {
                return None;
            }
            if let Some((agreed, events)) = Voice::opened(&self.voice).await {
                (self.open, self.since) = (Some(events), Instant::now());
                self.waiting = missed(&agreed, &self.voice.id);
            }
        }
    }

    /// What the server says next; none where nothing is open, or it has ended.
    async fn said(&mut self) -> Option<Event> {
        self.open.as_mut()?.next().await
    }

    /// The client listened before the server did: what it agreed to tell may have changed meanwhile.
    fn after_a_gap(mut self, agreed: &Wanted) -> Self {
        self.waiting = missed(agreed, &self.voice.id);
        self
    }
}

/// Says that everything may have changed that was agreed on.
fn missed(agreed: &Wanted, id: &Id) -> VecDeque<Event> {
    let meta = format!("\"_meta\":{{\"{META_SUBSCRIPTION}\":{}}}", id.raw());
    let changed = |kind: &str, params: &str| {
        let method = format!("notifications/{kind}");
        Event::of(compose::to_client(None, &method, Some(params)))
    };
    let lists = [
        ("tools/list_changed", agreed.tools),
        ("prompts/list_changed", agreed.prompts),
        ("resources/list_changed", agreed.resources),
    ];
    let lists = lists.into_iter().filter(|(_, is_agreed)| *is_agreed);
    let lists = lists.map(|(kind, _)| changed(kind, &format!("{{{meta}}}")));
    let watched = agreed.uris.iter();
    let watched =
        watched.map(|uri| changed("resources/updated", &format!("{{\"uri\":{},{meta}}}", compose::quoted(uri))));
    lists.chain(watched).collect()
}

/// What a server agrees to tell, under the names of the common door; none where it says something else first.
fn agreed_in(first: &Event, alias: &Alias) -> Option<Wanted> {
    let data = first.data.as_ref()?;
    let Ok(Message::Notification(news)) = read_one(data, Limits::again(data.len())) else { return None };
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
