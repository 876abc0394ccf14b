//! Where a child's message goes: to the request it belongs to, to the sessions it concerns, or nowhere.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use toolwarden_core::json::{Document, Limits, Part};
use toolwarden_core::{Caller, Weakness, name, weak};
use toolwarden_mcp::compose::{self, push_spliced};
use toolwarden_mcp::ladder::META_SUBSCRIPTION;
use toolwarden_mcp::message::{MessageError, read_one};
use toolwarden_mcp::{Direction, Form, Id, Message, Method, Notification, Request, Response, Version};
use toolwarden_policy::{acknowledge, decline};

use super::{InFlight, Last, StdioLink, TakesQuestions};
use crate::failure::Failure;
use crate::questions::{self, Whom};
use crate::scope::Scope;
use crate::sessions::{AnswerTo, AskedDuring, ClientSession, Question};
use crate::tasks::without_questions;
use crate::upstreams::Link;
use crate::whole::DEEPEST;

impl StdioLink {
    pub(super) async fn route(self: &Arc<Self>, line: &Bytes) {
        let limits = Limits { bytes: line.len(), depth: DEEPEST };
        match read_one(line, limits) {
            Ok(Message::Response(response)) => self.respond(&response),
            Ok(Message::Notification(news)) => {
                let upstream = self.upstream.upgrade();
                if let Some(upstream) = &upstream {
                    upstream.take_note(&news);
                }
                match upstream.as_ref().and_then(|upstream| upstream.screened(&news)) {
                    Some(Cow::Borrowed(news)) => self.spread(line, news).await,
                    Some(Cow::Owned(news)) => {
                        let line = compose::to_client(None, &news.method, news.params.as_ref().map(Part::raw));
                        self.spread(&line, &news).await;
                    }
                    None => {}
                }
            }
            Ok(Message::Request(question)) => self.ask(&question).await,
            Err(error) => {
                tracing::warn!(server = %self.server, "a message of the server is dropped: {error}");
                self.fail_unread(line, &error);
            }
        }
    }

    fn respond(&self, response: &Response) {
        let number = response.id.as_ref().and_then(|id| id.raw().parse().ok());
        let any =
            || weak::is(Weakness::Answers).then(|| self.lock().drain().next()).flatten().map(|(_, flight)| flight);
        let Some(flight) = number.and_then(|number: u64| self.lock().remove(&number)).or_else(any) else {
            tracing::debug!(server = %self.server, "an answer nobody waits for is dropped");
            return;
        };
        self.touch();
        let message = match &response.outcome {
            Ok(result) => compose::result(&flight.client, &own_subscription(result, &flight.client)),
            Err(error) => compose::raw_error(Some(&flight.client), error.raw()),
        };
        let last = Last { client: flight.client, message, outcome: response.outcome.clone() };
        // Nobody waits any more: the trail has said so.
        drop(flight.last.send(Ok(last)));
    }

    /// An answer that cannot be used ends the request it names, with the reason, so that nobody waits for it in vain.
    fn fail_unread(&self, line: &Bytes, error: &MessageError) {
        /// Read leniently, for its id alone: nothing else of it counts.
        #[derive(serde::Deserialize)]
        struct Unread {
            id: u64,
            method: Option<serde::de::IgnoredAny>,
        }
        let Ok(Unread { id, method: None }) = serde_json::from_slice(line) else { return };
        let Some(flight) = self.lock().remove(&id) else { return };
        self.touch();
        drop(flight.last.send(Err(Failure::Protocol(format!("its answer cannot be used: {error}")))));
    }

    /// The server did not take a request: whoever waits for the answer need not.
    pub(super) fn refuse(&self, request: &Id, status: u16) {
        let number = request.raw().parse().ok();
        let Some(flight) = number.and_then(|number: u64| self.lock().remove(&number)) else { return };
        self.touch();
        drop(flight.last.send(Err(Failure::Wordless { status })));
    }

    async fn spread(self: &Arc<Self>, line: &Bytes, news: &Notification) {
        let version = self.opened().map_or(Version::LATEST_MODERN, |opened| opened.version);
        let row = Method::find(&news.method, Direction::ToClient, Form::Notification, version);
        if row.is_none() && !weak::is(Weakness::Methods) {
            tracing::debug!(server = %self.server, method = %name::shown(&news.method), "news of an unlisted kind is dropped");
            return;
        }
        let params = news.params.as_ref();
        if let Some(watched) = params.and_then(|params| params.value().get("_meta")?.get(META_SUBSCRIPTION)) {
            return self.to_flight(
                watched.raw(),
                news,
                |flight| Some(flight.client.raw().to_owned()),
                &["_meta", META_SUBSCRIPTION],
            );
        }
        match &*news.method {
            "notifications/progress" => {
                let token = params.and_then(|params| params.value().get("progressToken"));
                let Some(token) = token else { return };
                // A request that named no token hears of no progress, whatever the server makes up.
                let made_up = || weak::is(Weakness::Routes).then(|| token.raw().to_owned());
                let own = |flight: &InFlight| flight.token.clone().or_else(made_up);
                self.to_flight(token.raw(), news, own, &["progressToken"]);
            }
            // On a shared child nobody can say whose log it is.
            "notifications/message" if !weak::is(Weakness::Routes) => self.to_the_only_listener(line, news),
            "notifications/cancelled" if !weak::is(Weakness::Routes) => self.take_back(news),
            "notifications/resources/updated" => {
                let uri = params.and_then(|params| params.value().get("uri")).and_then(|uri| uri.as_str());
                let uri = uri.unwrap_or_default();
                self.to_ears(news);
                for session in self.sessions() {
                    let is_wanted = self.is_own() || session.watches(&self.server, &uri);
                    if is_wanted && self.may_tell(news, &session.caller()) {
                        session.tell(self.shown_to(&session, line, news));
                    }
                }
            }
            _ => {
                self.to_ears(news);
                for session in self.sessions() {
                    if self.may_tell(news, &session.caller()) {
                        session.tell(line.clone());
                    }
                }
            }
        }
    }

    /// The child takes back what it asked: whoever was asked need not answer.
    fn take_back(&self, news: &Notification) {
        let Some(session) = self.owning_session() else { return };
        let Some(params) = news.params.as_ref() else { return };
        let asked = params.value().get("requestId").and_then(|id| Id::from_raw(id.raw()));
        let shown = asked.and_then(|asked| session.taken_back(&self.server, &asked));
        if let Some(shown) = shown.filter(|_| self.may_tell(news, &session.caller())) {
            let params = replaced(params, &["requestId"], shown.raw());
            self.to_session(&session, compose::to_client(None, &news.method, Some(&params)));
        }
    }

    fn may_tell(&self, news: &Notification, caller: &Arc<Caller>) -> bool {
        self.upstream.upgrade().is_some_and(|upstream| upstream.may_tell(news, caller))
    }

    fn to_ears(&self, news: &Notification) {
        if let Some(upstream) = self.upstream.upgrade() {
            self.ears.tell(&upstream, news);
        }
    }

    /// Behind the common door a resource has another name.
    fn shown_to(&self, session: &ClientSession, line: &Bytes, news: &Notification) -> Bytes {
        match (&session.scope, self.upstream.upgrade()) {
            (Scope::All, Some(upstream)) => upstream.alias.renamed(news).unwrap_or_else(|| line.clone()),
            _ => line.clone(),
        }
    }

    /// Hands a message to the request it names, with the caller's own id in the place of ours.
    fn to_flight(&self, raw: &str, news: &Notification, own: impl Fn(&InFlight) -> Option<String>, place: &[&str]) {
        let flights = self.lock();
        let flight = raw.parse().ok().and_then(|number: u64| flights.get(&number));
        let (Some(flight), Some(params)) = (flight, &news.params) else { return };
        if !flight.caller.as_ref().is_none_or(|caller| self.may_tell(news, caller)) {
            return;
        }
        let Some(own) = own(flight) else { return };
        let stripped = without_questions(params, &news.method);
        let params = stripped.as_ref().unwrap_or(params);
        let message = compose::to_client(None, &news.method, Some(&replaced(params, place, &own)));
        // A caller who does not read misses news; its answer comes another way.
        drop(flight.events.try_send(message));
    }

    fn to_the_only_listener(&self, line: &Bytes, news: &Notification) {
        if let Some(session) = self.owning_session() {
            if self.may_tell(news, &session.caller()) {
                self.to_session(&session, line.clone());
            }
            return;
        }
        let flights = self.lock();
        let mut listeners = flights.values().filter(|flight| flight.wants_logs);
        if let (Some(only), None) = (listeners.next(), listeners.next())
            && only.caller.as_ref().is_none_or(|caller| self.may_tell(news, caller))
        {
            drop(only.events.try_send(line.clone()));
        }
    }

    fn owning_session(&self) -> Option<Arc<ClientSession>> {
        self.owner.get().and_then(std::sync::Weak::upgrade)
    }

    fn sessions(&self) -> Vec<Arc<ClientSession>> {
        if let Some(owner) = self.owning_session() {
            return vec![owner];
        }
        let audience = self.audience.lock().unwrap_or_else(PoisonError::into_inner);
        audience.iter().filter_map(std::sync::Weak::upgrade).collect()
    }

    /// Whether any session that hears this child watches a resource.
    pub fn is_watched(&self, uri: &str) -> bool {
        self.sessions().iter().any(|session| session.watches(&self.server, uri)) || self.ears.watch(uri)
    }

    /// The child asks something: of the one client it belongs to, where it may; else the answer is no.
    async fn ask(self: &Arc<Self>, question: &Request) {
        if &*question.method == "ping" {
            return self.answer_now(&acknowledge(self.server.clone()), &question.id);
        }
        if self.to_whoever_takes_questions(question) {
            return;
        }
        let owner = self.owning_session().filter(|session| session.may_be_asked(&self.server));
        let (Some(session), Some(upstream)) = (owner, self.upstream.upgrade()) else {
            return self.decline(question);
        };
        let agreed = session.agreed();
        let declared = agreed.and_then(|agreed| agreed.capabilities.as_ref()).map(Part::value);
        let whom = Whom { caller: &session.caller(), declared };
        let params = question.params.as_ref().map(Part::value);
        let Ok(put) = questions::judge(&upstream, whom, &question.method, params).await else {
            return self.decline(question);
        };
        let Some(id) = Id::from_raw(&format!("\"tw-{}\"", session.next_number())) else { return };
        let to = AnswerTo::Server(Link::Stdio(self.clone()), question.id.clone());
        let open = Question { server: self.server.clone(), method: question.method.clone(), to };
        session.ask(id.clone(), open, self.newest_call());
        let message = compose::to_client(Some(&id), &question.method, put.params.as_deref());
        self.to_session(&session, message);
    }

    /// To the one client of a child, which does not say for which of its calls: with the only call there is;
    /// with several where the client hears everything, or else with the newest.
    fn to_session(&self, session: &ClientSession, message: Bytes) {
        let flights = self.lock();
        let is_read = |flight: &InFlight| flight.questions == TakesQuestions::BySession && !flight.events.is_closed();
        let read = flights.iter().filter(|(_, flight)| is_read(flight));
        let newest = read.max_by_key(|(number, _)| **number).map(|(_, flight)| flight);
        match newest.filter(|_| flights.len() == 1 || !session.is_heard()) {
            Some(flight) => drop(flight.events.try_send(message)),
            None => session.tell(message),
        }
    }

    /// That of the call that a question is most likely asked for.
    fn newest_call(&self) -> Option<AskedDuring> {
        let flights = self.lock();
        let calls = flights.iter().filter(|(_, flight)| flight.questions == TakesQuestions::BySession);
        let (_, newest) = calls.max_by_key(|(number, _)| **number)?;
        let course: std::sync::Weak<()> = Arc::downgrade(&newest.course);
        Some(course)
    }

    /// A call that has the child to itself is asked, whatever is asked.
    fn to_whoever_takes_questions(&self, question: &Request) -> bool {
        let flights = self.lock();
        let takes = |flight: &&InFlight| match flight.questions {
            TakesQuestions::Never | TakesQuestions::BySession => false,
            TakesQuestions::WhereAlone => flights.len() == 1,
            TakesQuestions::Always => true,
        };
        let Some(flight) = flights.values().find(takes) else { return false };
        let message = compose::to_client(Some(&question.id), &question.method, question.params.as_ref().map(Part::raw));
        flight.events.try_send(message).is_ok()
    }

    fn decline(self: &Arc<Self>, question: &Request) {
        tracing::info!(server = %self.server, method = %name::shown(&question.method), "a question of the server is declined");
        let error = format!(r#"{{"code":-32601,"message":"{} is not offered to this server"}}"#, "this request");
        let Ok(error) = Document::parse(error, Limits::DEFAULT) else { return };
        if let Ok(outbound) = decline(self.server.clone(), Part::whole(Arc::new(error))) {
            self.answer_now(&outbound, &question.id);
        }
    }
}

/// `raw` params with one member replaced.
fn replaced(params: &Part, place: &[&str], own: &str) -> String {
    let found = place.iter().try_fold(params.value(), |value, key| value.get(key));
    let mut text = String::with_capacity(params.raw().len() + own.len());
    match found {
        Some(value) => push_spliced(&mut text, params.raw(), &[(params.span_of(value), own)]),
        None => text.push_str(params.raw()),
    }
    text
}

/// The result of a listen request names its subscription by the id that had on the wire.
fn own_subscription(result: &Part, client: &Id) -> String {
    replaced(result, &["_meta", META_SUBSCRIPTION], client.raw())
}
