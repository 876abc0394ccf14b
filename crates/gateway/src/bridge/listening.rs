//! News across eras: a legacy client hears a modern server through one `subscriptions/listen`, a modern
//! client hears a legacy server through the session that is held for it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use toolwarden_conversations::sessions::{ClientSession, Refresh, principal};
use toolwarden_conversations::source::Source;
use toolwarden_conversations::upstreams::{
    HttpLink, Link, News, Older, TakesQuestions, Upstream, Wanted, acknowledged, ended,
};
use toolwarden_conversations::whole::Reply;
use toolwarden_conversations::{Failure, Scope};
use toolwarden_core::json::{Limits, Part, Value};
use toolwarden_core::{Call, Caller, Operation, Outbound};
use toolwarden_mcp::compose::{self, object_with, quoted};
use toolwarden_mcp::eras::{Introduction, modern_meta};
use toolwarden_mcp::ladder::META_SUBSCRIPTION;
use toolwarden_mcp::sse::Event;
use toolwarden_mcp::upstream::http::EventStream;
use toolwarden_mcp::{Backoff, Id, Message, Notification, headers};
use toolwarden_policy::{Message as Admitted, admit, housekeeping};

use toolwarden_refusals::Refusal;
use toolwarden_steps::answer::Answer;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::inspect::{Heard, stream_events};
use toolwarden_steps::resolve::{Asked, query, text_member};
use toolwarden_steps::watching::may_watch;

/// A stream that ended is opened again after this.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a server may take to say what it will tell.
const AGREEING: Duration = Duration::from_secs(10);

/// Listens to a modern server for a legacy session, from now on; gives whom to tell of changes.
pub(crate) fn listen_for(
    gateway: &Arc<Gateway>,
    session: &Arc<ClientSession>,
    upstream: &Arc<Upstream>,
) -> mpsc::Sender<Refresh> {
    session.listener(upstream, || {
        let (tell, changes) = mpsc::channel(16);
        let listener =
            Listener { gateway: Arc::downgrade(gateway), session: Arc::downgrade(session), upstream: upstream.clone() };
        let following = tokio::spawn(listener.run(changes));
        session.followed_by(following.abort_handle());
        tell
    })
}

/// `resources/subscribe` and `unsubscribe` of a legacy client: the stream is opened anew with what it
/// watches now.
pub(super) async fn change(gateway: &Arc<Gateway>, session: &Arc<ClientSession>, asked: &Asked) -> Result<(), Refusal> {
    let missing = || Refusal::Params("`uri`, a string, is missing".to_owned());
    let uri = text_member(asked.query.call.params.as_ref(), "uri").ok_or_else(missing)?;
    let server = &asked.upstream.name;
    let subscribes = &*asked.method == "resources/subscribe";
    session.unwatch(server, &uri);
    if subscribes && !session.watch(server.clone(), uri.clone()) {
        return Err(Refusal::Params("this session watches too many resources".to_owned()));
    }
    let listener = listen_for(gateway, session, &asked.upstream);
    let (answer, agreed) = oneshot::channel();
    let told = listener.send(answer).await;
    let agreed = timeout(AGREEING, agreed).await;
    let is_agreed = matches!((told, agreed), (Ok(()), Ok(Ok(uris))) if uris.contains(&uri));
    if subscribes && !is_agreed {
        // Remembered only where the server agreed: a failed subscription must not look like one.
        session.unwatch(server, &uri);
        return Err(Refusal::Upstream(Failure::Protocol("it does not tell of changes of this resource".to_owned())));
    }
    Ok(())
}

struct Listener {
    gateway: Weak<Gateway>,
    session: Weak<ClientSession>,
    upstream: Arc<Upstream>,
}

impl Listener {
    async fn run(self, mut changes: mpsc::Receiver<Refresh>) {
        let mut waiting: Vec<Refresh> = Vec::new();
        // Kept until the next one is agreed on, so that nothing is missed in between.
        let mut source: Option<Source> = None;
        loop {
            let opened = self.open().await;
            let (next, agreed) = match opened {
                Ok(opened) => opened,
                Err(Failure::Lost) => return,
                Err(failure) => {
                    tracing::debug!(server = %self.upstream.name, "it cannot be listened to: {failure}");
                    waiting.clear();
                    tokio::select! {
                        () = tokio::time::sleep(AGAIN) => {}
                        change = changes.recv() => match change {
                            Some(change) => waiting.push(change),
                            None => return,
                        },
                    }
                    continue;
                }
            };
            for answer in waiting.drain(..) {
                let _ = answer.send(agreed.uris.clone());
            }
            let listening = source.insert(next);
            loop {
                tokio::select! {
                    message = listening.next() => match message {
                        Ok(Message::Notification(news)) => {
                            if !self.tell(&news) {
                                return;
                            }
                        }
                        Ok(Message::Request(_)) => {}
                        Ok(Message::Response(_)) | Err(_) => break,
                    },
                    change = changes.recv() => match change {
                        Some(change) => {
                            waiting.push(change);
                            break;
                        }
                        None => return,
                    },
                }
            }
            if waiting.is_empty() {
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    /// Opens a stream and waits until the server says what it will tell.
    async fn open(&self) -> Result<(Source, Wanted), Failure> {
        let (Some(gateway), Some(session)) = (self.gateway.upgrade(), self.session.upgrade()) else {
            return Err(Failure::Lost);
        };
        if self.upstream.is_over() {
            return Err(Failure::Lost);
        }
        // Judged each time: what was watched may be forbidden now.
        let mut uris = session.watched(&self.upstream.name);
        uris.retain(|uri| may_watch(&gateway, &session.caller(), &self.upstream, uri));
        let wanted = Wanted { tools: true, prompts: true, resources: true, uris };
        let introduction = Introduction { capabilities: "{}", client: None, log_level: None };
        let params = format!(r#"{{"notifications":{},"_meta":{}}}"#, wanted.filter(), modern_meta(None, introduction));
        let outbound = admitted(&gateway, &session.caller(), &self.upstream, "subscriptions/listen", params)?;
        let link = self.upstream.modern(&principal(&session.caller())).await?;
        let id = Id::from_raw(&quoted(&format!("tw-{}", session.next_number()))).ok_or(Failure::Lost)?;
        let reply = match &link {
            Link::Http(http) => {
                let mut mirrors = http::HeaderMap::new();
                mirrors.insert(headers::METHOD, http::HeaderValue::from_static("subscriptions/listen"));
                Reply::Http(http.request(&outbound, &id, &[], Some(&mirrors), self.upstream.bounds().silence).await?)
            }
            Link::Stdio(child) => Reply::Stdio(
                child.request_for(Some(&session.caller()), &outbound, &id, &[], TakesQuestions::Never).await?,
            ),
        };
        let mut source = Source::of(&self.upstream, &self.upstream.bounds(), &link, reply, id).await?.patient();
        let first = timeout(AGREEING, source.next()).await.map_err(|_| Failure::Timeout)??;
        match first {
            Message::Notification(news) if &*news.method == "notifications/subscriptions/acknowledged" => {
                let filter = news.params.as_ref().and_then(|params| params.value().get("notifications"));
                Ok((source, filter.map(Wanted::of).unwrap_or_default()))
            }
            Message::Response(response) => Err(match response.outcome {
                Err(error) => Failure::Answered { status: 200, error: error.raw().to_owned() },
                Ok(_) => Failure::Died,
            }),
            Message::Notification(_) | Message::Request(_) => {
                Err(Failure::Protocol("it did not say what it will tell".to_owned()))
            }
        }
    }

    /// Tells the session; says whether there still is one.
    fn tell(&self, news: &Notification) -> bool {
        let Some(session) = self.session.upgrade() else { return false };
        let is_listed = matches!(
            &*news.method,
            "notifications/tools/list_changed"
                | "notifications/prompts/list_changed"
                | "notifications/resources/list_changed"
                | "notifications/resources/updated"
        );
        if is_listed && self.upstream.may_tell(news, &session.caller()) {
            session.tell(untagged(news, &session, &self.upstream));
        }
        true
    }
}

/// News as a legacy client knows them: without a subscription, under the name its door gives a resource.
fn untagged(news: &Notification, session: &ClientSession, upstream: &Upstream) -> bytes::Bytes {
    let Some(params) = news.params.as_ref().map(Part::value) else {
        return compose::to_client(None, &news.method, None);
    };
    let meta = params.get("_meta").map(|meta| object_with(Some(meta), &[(META_SUBSCRIPTION, None)]));
    let meta = meta.filter(|meta| meta != "{}");
    let mut changed = vec![("_meta", meta.as_deref())];
    let uri = params.get("uri").and_then(Value::as_str).filter(|_| session.scope == Scope::All);
    let uri = uri.map(|uri| quoted(&upstream.alias.expose_uri(&uri)));
    if let Some(uri) = &uri {
        changed.push(("uri", Some(uri)));
    }
    let params = object_with(Some(params), &changed);
    compose::to_client(None, &news.method, (params != "{}").then_some(&params))
}

/// A message on a caller's behalf that is no call.
fn admitted(
    gateway: &Gateway,
    caller: &Arc<Caller>,
    upstream: &Upstream,
    method: &str,
    params: String,
) -> Result<Outbound, Failure> {
    let params = Part::composed(params)?;
    let call = Call::asked(upstream.name.clone(), Operation::ReadResource, Some(params));
    let asked = query(gateway, caller, call);
    let admitted = admit(&gateway.live.policy(), &asked, Admitted::Listed { method: method.to_owned() });
    admitted.map_err(|why| Failure::Unreachable(why.reason.sentence().to_owned()))
}

/// `subscriptions/listen` of a modern client at a legacy server.
pub(super) async fn listen(
    gateway: &Arc<Gateway>,
    asked: &Arc<Asked>,
    held: &Arc<Older>,
    id: Id,
) -> Result<Answer, Refusal> {
    let filter = asked.query.call.params.as_ref().and_then(|params| params.member("notifications"));
    let Some(filter) = filter else { return Err(Refusal::Params("`notifications` is missing".to_owned())) };
    let link = held.link().await.map_err(Refusal::Upstream)?;
    let wanted = agreed(gateway, asked, held, &link, Wanted::of(filter.value())).await;
    let caller = asked.arrival.caller.clone();
    let news = match &link {
        Link::Http(http) => {
            let news = http.ears.open(caller, wanted.clone(), id.clone());
            if http.takes_follower() {
                tokio::spawn(follow(Arc::downgrade(http), asked.upstream.clone()));
            }
            news
        }
        Link::Stdio(child) => child.ears.open(caller, wanted.clone(), id.clone()),
    };
    let first = acknowledged(&wanted, &id);
    let watch = Watch { asked: asked.clone(), link, uris: wanted.uris };
    let state = (news, Some((watch, held.clone(), id)));
    let rest = stream::unfold(state, |(mut news, held)| async move {
        let held = held?;
        match news.recv().await {
            Some(event) => Some((Event::of(event), (news, Some(held)))),
            // The conversation with the server is over; the client may listen to the next one.
            None => Some((Event::of(ended(&held.2)), (news, None))),
        }
    });
    let events = stream::once(async move { Event::of(first) }).chain(rest);
    Ok(Answer::Events { events: Box::pin(events), resumable: true })
}

/// What of it the server really offers, and lets be watched.
async fn agreed(gateway: &Gateway, asked: &Asked, held: &Older, link: &Link, wanted: Wanted) -> Wanted {
    let offers = |kind: &str, what: &str| {
        let offered = held.said().value().get("capabilities").and_then(|all| all.get(kind)?.get(what));
        offered.is_some_and(|flag| flag.raw() == "true")
    };
    let mut uris = Vec::new();
    for uri in wanted.uris.iter().filter(|_| offers("resources", "subscribe")) {
        if watch(gateway, asked, link, uri).await {
            uris.push(uri.clone());
        }
    }
    Wanted {
        tools: wanted.tools && offers("tools", "listChanged"),
        prompts: wanted.prompts && offers("prompts", "listChanged"),
        resources: wanted.resources && offers("resources", "listChanged"),
        uris,
    }
}

/// Subscribes to a resource, which is judged as reading it is.
async fn watch(gateway: &Gateway, asked: &Asked, link: &Link, uri: &str) -> bool {
    let (caller, params) = (&asked.arrival.caller, format!("{{\"uri\":{}}}", quoted(uri)));
    match admitted(gateway, caller, &asked.upstream, "resources/subscribe", params) {
        Ok(outbound) => is_done(asked, link, &outbound).await,
        Err(_) => false,
    }
}

/// Lets go of one, which is always permitted: a narrower policy must not leave the server telling of it.
async fn unwatch(asked: &Asked, link: &Link, uri: &str) {
    let Ok(params) = Part::composed(format!("{{\"uri\":{}}}", quoted(uri))) else { return };
    if let Ok(outbound) = housekeeping(asked.upstream.name.clone(), "resources/unsubscribe", Some(params)) {
        is_done(asked, link, &outbound).await;
    }
}

/// Whether the server does what it is told.
async fn is_done(asked: &Asked, link: &Link, outbound: &Outbound) -> bool {
    let Ok((mut source, _)) = super::older_server::send(asked, outbound, link, TakesQuestions::Never).await else {
        return false;
    };
    loop {
        match source.next().await {
            Ok(Message::Response(response)) => return response.outcome.is_ok(),
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

/// Lets go of what one listener watched, when it goes.
struct Watch {
    asked: Arc<Asked>,
    link: Link,
    uris: Vec<String>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let (asked, link) = (self.asked.clone(), self.link.clone());
        let uris = std::mem::take(&mut self.uris);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if uris.is_empty() {
            return;
        }
        runtime.spawn(async move {
            for uri in uris {
                let is_watched = match &link {
                    Link::Http(http) => http.ears.watch(&uri),
                    Link::Stdio(child) => child.is_watched(&uri),
                };
                if !is_watched {
                    unwatch(&asked, &link, &uri).await;
                }
            }
        });
    }
}

/// Follows the stream of a session that is held for modern clients, as long as there is one.
async fn follow(link: Weak<HttpLink>, upstream: Arc<Upstream>) {
    let mut pauses = Backoff::new();
    let mut was_heard = false;
    loop {
        let Some(http) = link.upgrade().filter(|http| !http.is_over()) else { return };
        let pause = match http.news().await {
            News::Stream(events) => {
                (pauses, was_heard) = (Backoff::new(), true);
                tell_all(events, &http, &upstream).await;
                AGAIN
            }
            News::Later => pauses.delay_after(Duration::ZERO),
            News::Never => {
                if was_heard {
                    // It has such a stream: what it does not know any more is the session. Who listens comes again.
                    http.forget();
                }
                return;
            }
        };
        drop(http);
        tokio::time::sleep(pause).await;
    }
}

/// One stream to its end, or to that of the session: a silent one would hold both.
async fn tell_all(events: Box<EventStream>, http: &Arc<HttpLink>, upstream: &Arc<Upstream>) {
    let mut events = stream_events(events, Heard::of_nobody(upstream.clone(), Link::Http(http.clone())));
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = http.until_over() => None,
        };
        let Some(event) = event else { return };
        let data = event.data.unwrap_or_default();
        let limits = Limits::again(data.len());
        if let Ok(Message::Notification(news)) = toolwarden_mcp::message::read_one(&data, limits) {
            http.ears.tell(upstream, &news);
        }
    }
}
