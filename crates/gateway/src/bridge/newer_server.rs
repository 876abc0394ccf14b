//! A legacy client at a modern server: sessions become requests that say everything, and
//! `input_required` becomes questions on the call's own stream, asked until the server is content.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use toolwarden_conversations::Failure;
use toolwarden_conversations::questions;
use toolwarden_conversations::sessions::{AnswerTo, ClientSession, Question};
use toolwarden_conversations::source::Source;
use toolwarden_conversations::upstreams::{Link, TakesQuestions};
use toolwarden_conversations::whole::{self, Reply};
use toolwarden_core::json::{Document, Kind, Limits, Part, Value};
use toolwarden_core::{Outbound, Status};
use toolwarden_mcp::compose::{self, object_with, quoted};
use toolwarden_mcp::eras::{Introduction, asks_of_clients, error_to_legacy, modern_meta, result_to_legacy};
use toolwarden_mcp::fitting_meta::fitting_meta_text;
use toolwarden_mcp::questions::Asks;
use toolwarden_mcp::sse::Event;
use toolwarden_mcp::{Direction, Edit, Era, Form, HopMember, Id, Message, Method, Version};

use super::{listening, set_level};
use toolwarden_refusals::Refusal;
use toolwarden_steps::answer::{self, Answer, Reply as Sent};
use toolwarden_steps::arrival::shape_of;
use toolwarden_steps::audit::Trail;
use toolwarden_steps::decide::{Decided, decide};
use toolwarden_steps::ending::{Lookout, take_away};
use toolwarden_steps::flow;
use toolwarden_steps::forward::link;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::inspect::{
    Check, filtered_list, list_kind, pinned_list, receipt_is_wanted, told_refusal, with_receipt,
};
use toolwarden_steps::resolve::{Asked, What, query};
use toolwarden_steps::review::held;
use toolwarden_steps::{identities, parameters};

/// How often a server may ask in one call.
const MOST_ROUNDS: usize = 8;
/// How long the client may take for one question.
const QUESTION_TIME: Duration = Duration::from_secs(10 * 60);
/// A server that only wants to be asked again is asked so often.
const PAUSE: Duration = Duration::from_millis(250);
const WAITING: usize = 64;

pub(super) async fn carry(
    gateway: &Arc<Gateway>,
    asked: &Arc<Asked>,
    outbound: Outbound,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    let Some(session) = asked.arrival.session.clone() else { return Err(Refusal::SessionMissing) };
    let Some(id) = asked.id.clone() else {
        // Nothing a legacy client tells concerns a server that hears everything with each request.
        if &*asked.method == "notifications/initialized" && asked.arrival.via.is_one_line() {
            listening::listen_for(gateway, &session, &asked.upstream);
        }
        return Ok(Answer::Accepted);
    };
    let done = || Ok(Answer::message(compose::result(&id, "{}")));
    match &*asked.method {
        "ping" => done(),
        "logging/setLevel" => {
            set_level(&asked.arrival, outbound.params())?;
            done()
        }
        "resources/subscribe" | "resources/unsubscribe" => {
            listening::change(gateway, &session, asked).await?;
            done()
        }
        method if list_kind(method).is_some() => {
            let result = whole(gateway, asked, &outbound, &session, &id).await.map_err(Refusal::Upstream)?;
            let link = link(&asked.arrival, &asked.upstream).await?;
            let shown = pinned_list(gateway, asked, &link, &result).await?;
            let shown = Part::composed(result_to_legacy(&asked.method, shown.value()));
            let shown = shown.map_err(|error| Refusal::Upstream(error.into()))?;
            filtered_list(gateway, asked, (&result, &shown), &id).map(Answer::message)
        }
        _ if matches!(asked.what, What::Call) => {
            let errand = Errand::new(gateway, asked, session, id, trail.take());
            Ok(errand.start(outbound).await)
        }
        // Tasks have no form that both eras know.
        _ => Err(Refusal::Method(asked.method.to_string())),
    }
}

/// A result that comes in one piece, in the server's words.
async fn whole(
    gateway: &Gateway,
    asked: &Asked,
    outbound: &Outbound,
    session: &ClientSession,
    id: &Id,
) -> Result<Part, Failure> {
    let mut source = send(gateway, asked, outbound, session, id, None).await?;
    loop {
        let Message::Response(response) = source.next().await? else { continue };
        return match response.outcome {
            Ok(result) => Ok(result),
            Err(error) => Err(Failure::Answered { status: 200, error: error_to_legacy(error.value()) }),
        };
    }
}

/// The answers of one round, and the state they belong to, raw.
#[derive(Debug)]
struct Round {
    responses: Option<String>,
    state: Option<String>,
}

/// Sends a request in the modern envelope.
async fn send(
    gateway: &Gateway,
    asked: &Asked,
    outbound: &Outbound,
    session: &ClientSession,
    id: &Id,
    round: Option<&Round>,
) -> Result<Source, Failure> {
    let upstream = &asked.upstream;
    let agreed = session.agreed();
    let declared = asks_of_clients(agreed.and_then(|agreed| agreed.capabilities.as_ref()).map(Part::value));
    let cut = Document::parse(declared, Limits::DEFAULT)
        .map_or("{}".to_owned(), |declared| upstream.may_ask.cut(&session.caller(), declared.root()));
    let level = session.level();
    let introduction = Introduction {
        capabilities: &cut,
        client: agreed.and_then(|agreed| agreed.client.as_ref()).map(Part::raw),
        log_level: level.as_deref(),
    };
    let meta = modern_meta(outbound.params().map(Part::value), introduction);
    let meta = fitting_meta_text(meta, asked.answered());
    let mut edits = vec![
        Edit::Hop(HopMember::Meta, Some(&meta)),
        Edit::Hop(HopMember::InputResponses, round.and_then(|round| round.responses.as_deref())),
        Edit::Hop(HopMember::RequestState, round.and_then(|round| round.state.as_deref())),
    ];
    let trace = asked.trace();
    edits.extend(trace.as_deref().map(Edit::Trace));
    let link = link(&asked.arrival, upstream).await.map_err(|_| Failure::Died)?;
    let sent = match &link {
        Link::Http(http) => {
            let mirrors = parameters::mirrors(gateway, asked);
            http.request(outbound, id, &edits, Some(&mirrors), asked.bounds.silence).await.map(Reply::Http)
        }
        Link::Stdio(child) => child
            .request_for(Some(&session.caller()), outbound, id, &edits, TakesQuestions::Never)
            .await
            .map(Reply::Stdio),
    };
    let reply = sent.inspect_err(|failure| upstream.fails(failure))?;
    upstream.works();
    Source::of(&asked.upstream, &asked.bounds, &link, reply, id.clone()).await.map_err(in_legacy_words)
}

/// Statuses of the modern era mean other things to a legacy client: 404 would end its session.
fn in_legacy_words(failure: Failure) -> Failure {
    match failure {
        Failure::Answered { error, .. } => {
            let error = Document::parse(error.as_str(), Limits::DEFAULT)
                .map_or(error.clone(), |document| error_to_legacy(document.root()));
            Failure::Answered { status: 200, error }
        }
        other => other,
    }
}

/// A call on its way, apart from the connection it came by: a legacy client that goes away has not
/// given it up.
struct Errand {
    gateway: Arc<Gateway>,
    asked: Arc<Asked>,
    session: Arc<ClientSession>,
    id: Id,
    trail: Option<Trail>,
}

/// What goes to the client.
enum Told {
    Event(Bytes),
    Last(Sent),
    /// The client gave the call up, and wants no answer.
    Nothing,
}

impl Errand {
    fn new(
        gateway: &Arc<Gateway>,
        asked: &Arc<Asked>,
        session: Arc<ClientSession>,
        id: Id,
        trail: Option<Trail>,
    ) -> Self {
        Self { gateway: gateway.clone(), asked: asked.clone(), session, id, trail }
    }

    async fn start(self, outbound: Outbound) -> Answer {
        let (told, mut heard) = mpsc::channel(WAITING);
        tokio::spawn(self.run(outbound, told));
        match heard.recv().await {
            Some(Told::Last(reply)) => Answer::Message(reply),
            Some(Told::Event(first)) => {
                let rest = stream::unfold((Some(first), heard), |(first, mut heard)| async move {
                    let message = match first {
                        Some(first) => first,
                        None => match heard.recv().await? {
                            Told::Event(event) => event,
                            Told::Last(reply) => reply.body,
                            Told::Nothing => return None,
                        },
                    };
                    Some((Event::of(message), (None, heard)))
                });
                Answer::Events { events: Box::pin(rest), resumable: false }
            }
            Some(Told::Nothing) | None => Answer::Events { events: Box::pin(stream::empty()), resumable: false },
        }
    }

    async fn run(mut self, outbound: Outbound, told: mpsc::Sender<Told>) {
        let (gateway, asked) = (self.gateway.clone(), self.asked.clone());
        let mut lookout = Lookout::of(&gateway, &asked);
        let ended = tokio::select! {
            biased;
            // Whoever was told so has answered the client.
            () = asked.arrival.course.flight().stopped() => None,
            refusal = lookout.revoked(&gateway, &asked) => {
                take_away(&asked, &refusal);
                Some(Err(refusal))
            }
            ended = self.rounds(outbound, &told) => Some(ended),
        };
        asked.arrival.course.release();
        let last = match ended {
            // What is dropped half-way says so in the journal, and its server is told.
            None => Told::Nothing,
            Some(Ok(body)) => Told::Last(Sent { status: http::StatusCode::OK, body, session: None }),
            Some(Err(refusal)) => {
                let refusal = told_refusal(&self.gateway, &self.asked, refusal, self.trail.as_mut());
                if let Some(trail) = self.trail.take() {
                    trail.refused(&refusal).await;
                }
                match answer::refuse(&shape_of(&self.asked.arrival), &refusal) {
                    Answer::Message(reply) => Told::Last(reply),
                    _ => Told::Nothing,
                }
            }
        };
        // Nobody reads any more: the trail says how it ended.
        drop(told.send(last).await);
    }

    async fn rounds(&mut self, mut outbound: Outbound, told: &mpsc::Sender<Told>) -> Result<Bytes, Refusal> {
        let mut round: Option<Round> = None;
        for number in 0..=MOST_ROUNDS {
            let result = self.one(&outbound, round.as_ref(), told).await?;
            let kind = result.value().get("resultType").and_then(Value::as_str);
            match kind.as_deref() {
                None | Some("complete") => return Ok(self.complete(&result)),
                Some("input_required") => {}
                Some(_) => return Err(broke("its result is of a kind that was not asked for")),
            }
            if let Some(under) = self.asked.under.get() {
                under.set_pause(true);
            }
            self.close(Status::Ok, result.raw().len());
            if number == MOST_ROUNDS {
                break;
            }
            // Every round is a call of its own: judged as of now, and recorded before it leaves.
            let mut trail = Trail::open(&self.gateway, &self.asked.arrival, self.asked.method.clone());
            trail.asks(&self.asked);
            self.trail = Some(trail);
            round = Some(self.answers(&result, told).await?);
            let mut again = self.asked.again();
            again.query = query(&self.gateway, &self.session.caller(), again.query.call.clone());
            // From here on everything goes by this decision: what is sent, and how its result is checked.
            self.asked = Arc::new(again);
            let judged = match decide(&self.gateway, &self.asked).await? {
                Decided::May(judged) => judged,
                Decided::Held(pending) => return Err(held(self.gateway.settings.hold, &pending, None)),
            };
            identities::count(&self.gateway, &self.asked).await?;
            self.asked.after.get_or_init(|| self.gateway.pins.changes_heard(&self.asked.upstream.name));
            if let (toolwarden_steps::decide::Judged::Call(permit), Some(trail)) = (&judged, self.trail.as_mut()) {
                trail.goes_under(&self.asked);
                let met = flow::meets(&self.gateway, &self.asked).await?;
                trail.intent(permit.explanation(), permit.call().params.as_ref(), &met).await?;
            }
            outbound = judged.into_outbound();
        }
        Err(broke("it asked again and again"))
    }

    /// One request and everything before its result.
    async fn one(
        &mut self,
        outbound: &Outbound,
        round: Option<&Round>,
        told: &mpsc::Sender<Told>,
    ) -> Result<Part, Refusal> {
        let sending = send(&self.gateway, &self.asked, outbound, &self.session, &self.id, round);
        let mut source = sending.await.map_err(Refusal::Upstream)?;
        loop {
            match source.next().await.map_err(Refusal::Upstream)? {
                Message::Notification(news) => {
                    let row =
                        Method::find(&news.method, Direction::ToClient, Form::Notification, self.session.version());
                    let may_tell = self.asked.upstream.may_tell(&news, &self.session.caller());
                    let shown = self.asked.upstream.screened(&news);
                    if let Some(news) =
                        shown.filter(|_| row.is_some() && may_tell && self.asked.may_hear_progress(&news))
                    {
                        let params = news.params.as_ref().map(Part::raw);
                        drop(told.send(Told::Event(compose::to_client(None, &news.method, params))).await);
                    }
                }
                // The modern era has no requests of servers.
                Message::Request(_) => {}
                Message::Response(response) => {
                    let said = response.outcome.as_ref().map(Part::value).map_err(Part::value);
                    whole::check_words(said).map_err(Refusal::Upstream)?;
                    let shown = match Check::of(&self.gateway, &self.asked).map(|check| check.in_words_of(Era::Modern))
                    {
                        // Errors are looked at where they are told.
                        Some(check) if response.outcome.is_ok() => {
                            let whose = (&*self.gateway, &*self.asked);
                            let shown = check.show(whose, &response.outcome, self.trail.as_mut()).await;
                            shown.map_err(Refusal::Upstream)?
                        }
                        _ => None,
                    };
                    return shown.unwrap_or(response.outcome).map_err(|error| {
                        let error = error_to_legacy(error.value());
                        Refusal::Upstream(Failure::Answered { status: 200, error })
                    });
                }
            }
        }
    }

    fn complete(&mut self, result: &Part) -> Bytes {
        let body = compose::result(&self.id, &result_to_legacy(&self.asked.method, result.value()));
        let failed = result.value().get("isError").is_some_and(|is| is.kind() == Kind::True);
        let receipt = self.trail.as_ref().and_then(Trail::receipt).cloned();
        self.close(if failed { Status::ToolError } else { Status::Ok }, body.len());
        match receipt.filter(|_| receipt_is_wanted(&self.asked.query)) {
            Some(receipt) => with_receipt(body, &receipt),
            None => body,
        }
    }

    fn close(&mut self, status: Status, size: usize) {
        if let Some(mut trail) = self.trail.take() {
            trail.outcome(status, size as u64);
        }
    }

    /// Asks the client everything a result asks for, at the same time.
    async fn answers(&self, result: &Part, told: &mpsc::Sender<Told>) -> Result<Round, Refusal> {
        let state = result.value().get("requestState").filter(|state| state.kind() == Kind::String);
        let state = state.map(|state| state.raw().to_owned());
        let questions = result.value().get("inputRequests");
        if questions.is_none_or(|all| all.entries().next().is_none()) {
            if state.is_none() {
                return Err(broke("it asked for nothing"));
            }
            tokio::time::sleep(PAUSE).await;
            return Ok(Round { responses: None, state });
        }
        let shown = questions::judge_all(&self.asked.upstream, self.asked.whom(), result.value()).await;
        let shown = Part::composed(shown.map_err(Refusal::Upstream)?.unwrap_or_default());
        let shown = shown.map_err(|error| Refusal::Upstream(error.into()))?;
        let mut waiting = Vec::new();
        for (key, question) in shown.value().entries() {
            let answer = self.ask(question, told).await?;
            waiting.push(async move { answer.await.map(|answer| format!("{key}:{answer}")) });
        }
        let answers: Result<Vec<String>, Refusal> = join_all(waiting).await.into_iter().collect();
        Ok(Round { responses: Some(format!("{{{}}}", answers?.join(","))), state })
    }

    /// Puts one question to the client; gives the answer, raw, when it comes.
    async fn ask(
        &self,
        question: Value<'_>,
        told: &mpsc::Sender<Told>,
    ) -> Result<impl Future<Output = Result<String, Refusal>> + use<>, Refusal> {
        let method = question.get("method").and_then(Value::as_str).unwrap_or_default();
        let version = self.session.version();
        if Method::find(&method, Direction::ToClient, Form::Request, version).is_none() {
            return Err(broke("it asked for something this client's revision does not know"));
        }
        if !self.session.may_be_asked(&self.asked.upstream.name) {
            return Err(broke("too many of its questions wait for an answer"));
        }
        let params = question.get("params");
        let asks = toolwarden_mcp::questions::read(&method, params, &[]).ok();
        let params = params.map(|params| legacy_question(params, asks.as_ref(), version));
        let number = self.session.next_number();
        let id = Id::from_raw(&format!("\"tw-{number}\"")).unwrap_or_else(|| Id::number(number));
        let (waiter, answer) = oneshot::channel();
        let to = AnswerTo::Waiter(Mutex::new(Some(waiter)));
        let method: Arc<str> = method.into();
        let open = Question { server: self.asked.upstream.name.clone(), method: method.clone(), to };
        self.session.ask(id.clone(), open, None);
        // It is forgotten with whoever waits for the answer.
        let unanswered = Unanswered { session: self.session.clone(), id: id.clone() };
        drop(told.send(Told::Event(compose::to_client(Some(&id), &method, params.as_deref()))).await);
        Ok(async move {
            let given = timeout(QUESTION_TIME, answer).await;
            drop(unanswered);
            match given {
                Ok(Ok(Ok(result))) => Ok(result.raw().to_owned()),
                Ok(Ok(Err(_))) => Err(broke("the client answered its question with an error")),
                Ok(Err(_)) => Err(broke("the client went away")),
                Err(_) => Err(broke("the client did not answer its question in time")),
            }
        })
    }
}

/// A question that is forgotten when nobody waits for its answer any more.
struct Unanswered {
    session: Arc<ClientSession>,
    id: Id,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        drop(self.session.answered(&self.id));
    }
}

/// A question in the words of the client's revision.
fn legacy_question(params: Value<'_>, asks: Option<&Asks>, version: Version) -> String {
    match asks {
        Some(Asks::Url(_)) if params.get("elicitationId").is_none() => {
            let id = quoted(&toolwarden_core::Digest::of_bytes(params.raw().as_bytes()).to_string());
            object_with(Some(params), &[("elicitationId", Some(&id))])
        }
        Some(Asks::Form) if version < Version::V2025_11_25 => object_with(Some(params), &[("mode", None)]),
        _ => params.raw().to_owned(),
    }
}

fn broke(what: &str) -> Refusal {
    Refusal::Upstream(Failure::Protocol(what.to_owned()))
}
