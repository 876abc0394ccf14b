//! Answers that are streams of messages: each is looked at, and passed on, answered or dropped.
//!
//! A server's questions pass only where the server may ask them (GATE-18) and are remembered, so that
//! the answer counts once and from nobody else. News of an unlisted kind is dropped.

mod child;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use tokio::time::{Instant, sleep_until, timeout};
use toolwarden_conversations::bounds::CallBounds;
use toolwarden_conversations::questions::{self, Whom};
use toolwarden_conversations::sessions::{AnswerTo, ClientSession, Parked, Question, Shown};
use toolwarden_conversations::tasks::{Maker, without_questions};
use toolwarden_conversations::upstreams::{Link, Upstream, http_failure};
use toolwarden_conversations::whole::{self, DEEPEST, status_of};
use toolwarden_conversations::{Failure, Scope};
use toolwarden_core::json::{Document, Limits, Part};
use toolwarden_core::{Caller, Outbound, Weakness, name, weak};
use toolwarden_mcp::compose::object_with;
use toolwarden_mcp::message::read_one;
use toolwarden_mcp::sse::{Event, Item};
use toolwarden_mcp::upstream::http::EventStream;
use toolwarden_mcp::{Direction, Era, Form, Id, Message, Method, Notification, Request, Response, Version, compose};
use toolwarden_policy::{acknowledge, decline};

use super::{Check, composed, receipt_is_wanted, result_type, with_receipt};
use crate::answer::Events;
use crate::audit::Trail;
use crate::decide::still_permitted;
use crate::ending::{take_away, tell_servers};
use crate::exchange;
use crate::gateway::Gateway;
use crate::over;
use crate::resolve::{Asked, What};
use toolwarden_refusals::Refusal;

pub use self::child::from_child;

/// What must be known to look at the messages of one stream.
#[derive(Debug)]
pub struct Heard {
    /// The request it answers; none for a stream of its own.
    asked: Option<(Arc<Gateway>, Arc<Asked>)>,
    session: Option<Arc<ClientSession>>,
    /// Who hears it; none where the gateway listens for many.
    caller: Option<Arc<Caller>>,
    upstream: Arc<Upstream>,
    link: Link,
    version: Version,
    /// The request whose response ends the stream; none for a standalone stream.
    id: Option<Id>,
    wants_receipt: bool,
    /// Who will own the task the response may make.
    task_owner: Option<Maker>,
    /// How long the server may be silent; none for streams that wait for news.
    patience: Option<Duration>,
    trail: Option<Trail>,
    bounds: CallBounds,
    size: u64,
    /// The client can come back for the rest by these ids.
    has_ids: bool,
    done: bool,
}

impl Heard {
    pub fn new(gateway: &Arc<Gateway>, asked: &Arc<Asked>, link: Link, trail: Option<Trail>) -> Self {
        let waits_for_news = matches!(asked.what, What::Watch);
        Self {
            asked: Some((gateway.clone(), asked.clone())),
            session: asked.arrival.session.clone(),
            caller: Some(asked.arrival.caller.clone()),
            upstream: asked.upstream.clone(),
            link,
            version: asked.arrival.version,
            id: asked.id.clone(),
            wants_receipt: receipt_is_wanted(&asked.query),
            task_owner: asked.task_maker(),
            patience: (!waits_for_news).then_some(asked.bounds.silence),
            trail,
            bounds: asked.bounds,
            size: 0,
            has_ids: false,
            done: false,
        }
    }

    /// A stream of a session that answers no request.
    pub fn standalone(session: Arc<ClientSession>, upstream: Arc<Upstream>, link: Link) -> Self {
        Self { version: session.version(), session: Some(session), ..Self::of_nobody(upstream, link) }
    }

    /// The stream of a session that the gateway holds for modern clients: its questions are nobody's.
    pub fn of_nobody(upstream: Arc<Upstream>, link: Link) -> Self {
        let bounds = upstream.bounds();
        Self {
            asked: None,
            bounds,
            version: Version::LATEST_LEGACY,
            caller: None,
            session: None,
            upstream,
            link,
            id: None,
            wants_receipt: false,
            task_owner: None,
            patience: None,
            trail: None,
            size: 0,
            has_ids: false,
            done: false,
        }
    }

    /// Looks at one event; none where the client is not to see it.
    async fn judge(&mut self, mut event: Event) -> Option<Event> {
        self.has_ids |= event.id.is_some();
        let Some(data) = event.data.clone().filter(|data| !data.is_empty()) else { return Some(event) };
        self.size += data.len() as u64;
        // Streams that wait for news have no end, so they have no size either.
        if self.patience.is_some() && self.size > self.bounds.response_bytes {
            self.done = true;
            return Some(Event::of(self.fail(&Failure::TooLarge)));
        }
        let limits = Limits { bytes: data.len(), depth: DEEPEST };
        match read_one(&data, limits) {
            Ok(Message::Response(response)) => {
                event.data = Some(self.respond(&response, data).await?);
                Some(event)
            }
            Ok(Message::Notification(news)) if &*news.method == "notifications/cancelled" => {
                event.data = Some(self.taken_back(&news, data)?);
                Some(event)
            }
            Ok(Message::Notification(news)) => {
                self.upstream.take_note(&news);
                let row = Method::find(&news.method, Direction::ToClient, Form::Notification, self.version);
                // Whoever's session it is, in the mode it is in by now.
                let hearer = self.session.as_ref().map(|session| session.caller()).or_else(|| self.caller.clone());
                let may_hear = hearer.is_none_or(|caller| self.upstream.may_tell(&news, &caller));
                let told = self.upstream.screened(&news)?;
                let shown = told.params.as_ref().and_then(|params| without_questions(params, &news.method));
                let words = shown.as_ref().or(told.params.as_ref()).map(Part::raw);
                if shown.is_some() || matches!(told, Cow::Owned(_)) {
                    event.data = Some(compose::to_client(None, &news.method, words));
                }
                let is_own = self.asked.as_ref().is_none_or(|(_, asked)| asked.may_hear_progress(&news));
                ((row.is_some() || weak::is(Weakness::Methods)) && may_hear && is_own).then_some(event)
            }
            Ok(Message::Request(question)) => {
                let (id, params) = self.ask(&question).await?;
                event.data = Some(compose::to_client(Some(&id), &question.method, params.as_deref()));
                Some(event)
            }
            // It may have been the answer.
            Err(error) if self.id.is_some() && whole::unread(&error) == Failure::TooDeep => {
                self.done = true;
                Some(Event::of(self.fail(&Failure::TooDeep)))
            }
            Err(error) => {
                tracing::warn!(server = %self.upstream.name, "a message of the server is dropped: {error}");
                None
            }
        }
    }

    /// A server takes back what it asked, and is not answered any more; nobody hears of it where the question is not its own (GATE-19).
    fn taken_back(&self, news: &Notification, data: Bytes) -> Option<Bytes> {
        if weak::is(Weakness::Owners) {
            return Some(data);
        }
        let params = news.params.as_ref()?.value();
        let asked = Id::from_raw(params.get("requestId")?.raw())?;
        let shown = self.session.as_ref()?.taken_back(&self.upstream.name, &asked)?;
        if shown == asked {
            return Some(data);
        }
        let params = object_with(Some(params), &[("requestId", Some(shown.raw()))]);
        Some(compose::to_client(None, &news.method, Some(&params)))
    }

    async fn respond(&mut self, response: &Response, mut data: Bytes) -> Option<Bytes> {
        if response.id != self.id && !weak::is(Weakness::Answers) {
            return self.late(response, data).await;
        }
        self.done = true;
        match self.looked_at(&response.outcome).await {
            Ok(shown) => data = shown.unwrap_or(data),
            Err(failure) => return Some(self.fail(&failure)),
        }
        self.release();
        let mut trail = self.trail.take();
        if let Some(trail) = &mut trail {
            trail.outcome(status_of(&response.outcome), self.size);
        }
        let receipt = trail.as_ref().and_then(Trail::receipt).filter(|_| self.wants_receipt);
        Some(receipt.map_or(data.clone(), |receipt| with_receipt(data, receipt)))
    }

    /// The response of another request: one of this session whose own stream broke off.
    async fn late(&mut self, response: &Response, data: Bytes) -> Option<Bytes> {
        let parked = self.session.as_ref()?.unpark(response.id.as_ref()?, &self.upstream.name)?;
        match parked.answered(&response.outcome, data.len() as u64).await {
            Ok(shown) => Some(shown.unwrap_or(data)),
            Err(failure) => Some(toolwarden_refusals::failure_message(response.id.as_ref(), &failure)),
        }
    }

    /// A result or an error, before anybody gets it: what becomes of it where it does not stay as it is.
    async fn looked_at(&mut self, outcome: &Result<Part, Part>) -> Result<Option<Bytes>, Failure> {
        whole::check_depth(outcome, self.bounds.depth)?;
        if let Ok(result) = outcome {
            let kind = result.value().get("resultType").and_then(|kind| kind.as_str());
            result_type(kind.as_deref())?;
        }
        let mut shown = None;
        if let Some((gateway, asked)) = &self.asked {
            shown = match outcome {
                Ok(result) => exchange::outgoing(gateway, asked, result).await?.map(Ok),
                Err(error) => exchange::outgoing_error(asked, error.value()).await?.map(Err),
            }
            .map(read_back)
            .transpose()?;
            if let Some(check) = Check::of(gateway, asked) {
                let judged = shown.as_ref().unwrap_or(outcome);
                shown = check.show((gateway, asked), judged, self.trail.as_mut()).await?.or(shown);
            }
        }
        if let Ok(result) = outcome {
            self.bind_task(result)?;
        }
        Ok(shown.and_then(|shown| composed(self.id.as_ref(), &shown)))
    }

    /// The id under which a question goes on to the client, and its params. Where it does not, the server
    /// gets its answer here.
    async fn ask(&mut self, question: &Request) -> Option<(Id, Option<String>)> {
        if &*question.method == "ping" {
            self.answer(&acknowledge(self.upstream.name.clone()), &question.id).await;
            return None;
        }
        let params = question.params.as_ref().map(Part::value);
        let listed = Method::find(&question.method, Direction::ToClient, Form::Request, self.version).is_some();
        let has_room = |session: &&Arc<ClientSession>| session.may_be_asked(&self.upstream.name);
        if let (true, Some(session)) = (listed, self.session.as_ref().filter(has_room)) {
            let declared = session.agreed().and_then(|agreed| agreed.capabilities.as_ref()).map(Part::value);
            let whom = Whom { caller: &session.caller(), declared };
            if let Ok(put) = questions::judge(&self.upstream, whom, &question.method, params).await {
                let to = AnswerTo::Server(self.link.clone(), question.id.clone());
                let (server, method) = (self.upstream.name.clone(), question.method.clone());
                // Behind the common door two servers may ask under the same id.
                let id = match &session.scope {
                    // An id that is still open would let the answer to one question pass for that to another.
                    Scope::One(_) if session.asked_by(&question.id).is_none() => question.id.clone(),
                    Scope::One(_) | Scope::All => Id::from_raw(&format!("\"tw-{}\"", session.next_number()))?,
                };
                let course = self.id.as_ref().and_then(|call| session.asked_during(call));
                session.ask(id.clone(), Question { server, method, to }, course);
                return Some((id, put.params));
            }
        }
        tracing::info!(server = %self.upstream.name, method = %name::shown(&question.method), "a question of the server is declined");
        let refusal = r#"{"code":-32601,"message":"this request is not offered to this server"}"#;
        if let Ok(error) = Document::parse(refusal, Limits::DEFAULT)
            && let Ok(outbound) = decline(self.upstream.name.clone(), Part::whole(Arc::new(error)))
        {
            self.answer(&outbound, &question.id).await;
        }
        None
    }

    async fn answer(&self, outbound: &Outbound, id: &Id) {
        let sent = match &self.link {
            Link::Http(http) => http.answer(outbound, id).await.map(drop),
            Link::Stdio(stdio) => stdio.answer(outbound, id).await,
        };
        if let Err(failure) = sent {
            tracing::debug!(server = %self.upstream.name, "an answer could not be given: {failure}");
        }
    }

    /// The stream broke off. A legacy client that can resume will; any other is told.
    fn broken_off(&mut self, failure: &Failure) -> Option<Event> {
        if self.done || self.id.is_none() {
            return None;
        }
        self.done = true;
        let resumes = self.version.era() == Era::Legacy && self.has_ids && *failure == Failure::Died;
        if let (true, Some(session), Some(id)) = (resumes, self.session.clone(), self.id.clone())
            && let Some(parked) = self.parked()
        {
            let (ends, waiting) = (parked.ends(), Arc::downgrade(&session));
            session.park(id, Box::new(parked));
            // The stream that looked after its time is gone.
            tokio::spawn(async move {
                sleep_until(ends).await;
                waiting.upgrade().iter().for_each(|session| session.end_late());
            });
            return None;
        }
        Some(Event::of(self.fail(failure)))
    }

    fn parked(&mut self) -> Option<BrokenOff> {
        let (gateway, asked) = self.asked.clone()?;
        let began = self.trail.as_ref().map_or_else(Instant::now, Trail::began);
        let ends = began + asked.bounds.time;
        Some(BrokenOff { gateway, asked, trail: self.trail.take(), task_owner: self.task_owner.take(), ends })
    }

    /// The id of the request is free again.
    fn release(&self) {
        if let Some((_, asked)) = &self.asked {
            asked.arrival.course.release();
        }
    }

    fn bind_task(&self, result: &Part) -> Result<(), Failure> {
        self.task_owner.as_ref().map_or(Ok(()), |owner| self.upstream.tasks.bind(owner, result))
    }

    fn fail(&mut self, failure: &Failure) -> Bytes {
        self.release();
        if let Some(mut trail) = self.trail.take() {
            trail.failed(failure, self.size);
        }
        let Some((gateway, asked)) = self.asked.as_ref().filter(|_| failure.over().is_some()) else {
            return toolwarden_refusals::failure_message(self.id.as_ref(), failure);
        };
        tell_servers(asked.arrival.course.flight());
        toolwarden_refusals::failure_message(self.id.as_ref(), &over::named(gateway, asked, failure.clone()))
    }
}

/// A request whose stream broke off before its response came.
#[derive(Debug)]
struct BrokenOff {
    gateway: Arc<Gateway>,
    asked: Arc<Asked>,
    trail: Option<Trail>,
    task_owner: Option<Maker>,
    ends: Instant,
}

impl BrokenOff {
    /// The same looks as an answer on its own stream gets; the client may have come back under another policy.
    async fn looked_at(&mut self, outcome: &Result<Part, Part>) -> Result<Option<Bytes>, Failure> {
        still_permitted(&self.gateway, &self.asked).map_err(|_| Failure::TakenAway)?;
        whole::check_words(outcome.as_ref().map(Part::value).map_err(Part::value))?;
        whole::check_depth(outcome, self.asked.bounds.depth)?;
        if outcome.as_ref().is_err_and(|error| questions::wants_addresses(error.value())) {
            return Err(Failure::Protocol("it asked for addresses to be opened, too late".to_owned()));
        }
        let shown = match Check::of(&self.gateway, &self.asked) {
            Some(check) => check.judge((&self.gateway, &self.asked), outcome, self.trail.as_mut()).await?,
            None => None,
        };
        if let (Ok(result), Some(owner)) = (outcome, &self.task_owner) {
            self.asked.upstream.tasks.bind(owner, result)?;
        }
        Ok(shown.and_then(|shown| composed(self.asked.id.as_ref(), &shown)))
    }
}

impl Parked for BrokenOff {
    fn server(&self) -> &str {
        &self.asked.upstream.name
    }

    fn answered(mut self: Box<Self>, outcome: &Result<Part, Part>, size: u64) -> Shown<'_> {
        Box::pin(async move {
            let looked_at = self.looked_at(outcome).await;
            if let Some(trail) = &mut self.trail {
                match &looked_at {
                    Ok(_) => trail.outcome(status_of(outcome), size),
                    Err(failure) => trail.failed(failure, size),
                }
            }
            looked_at
        })
    }

    fn ends(&self) -> Instant {
        self.ends
    }

    fn is_late(mut self: Box<Self>) {
        take_away(&self.asked, &Refusal::Upstream(Failure::Timeout));
        if let Some(trail) = &mut self.trail {
            trail.failed(&Failure::Timeout, 0);
        }
    }
}

/// A text of ours, to be looked into again.
fn read_back(outcome: Result<String, String>) -> Result<Result<Part, Part>, Failure> {
    Ok(match outcome {
        Ok(result) => Ok(Part::composed(result)?),
        Err(error) => Err(Part::composed(error)?),
    })
}

/// The events of an HTTP answer.
pub fn stream_events(events: Box<EventStream>, heard: Heard) -> Events {
    let state = (events, heard);
    Box::pin(stream::unfold(state, |(mut events, mut heard)| async move {
        let event = next_event(&mut events, &mut heard).await?;
        Some((event, (events, heard)))
    }))
}

async fn next_event(events: &mut EventStream, heard: &mut Heard) -> Option<Event> {
    loop {
        if heard.done && heard.id.is_some() && !weak::is(Weakness::Answers) {
            return None;
        }
        let item = match heard.patience {
            Some(patience) => match timeout(patience, events.next_item()).await {
                Ok(item) => item.map_err(http_failure),
                Err(_) => Err(Failure::Timeout),
            },
            None => events.next_item().await.map_err(http_failure),
        };
        match item {
            Ok(Some(Item::Event(event))) => {
                if let Some(event) = heard.judge(event).await {
                    return Some(event);
                }
            }
            Ok(Some(Item::Comment(_))) => {}
            Ok(None) => return heard.broken_off(&Failure::Died),
            Err(failure) => return heard.broken_off(&failure),
        }
    }
}
