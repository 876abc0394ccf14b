//! One request of a modern client at a legacy server: what it hears until its own answer, which is the
//! server's, or a question.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use tokio::time::{Instant, sleep_until};
use toolwarden_conversations::Failure;
use toolwarden_conversations::questions::{self, Declined, wants_addresses};
use toolwarden_conversations::request_state::{Asks, Carried, questions_of};
use toolwarden_conversations::sessions::principal;
use toolwarden_conversations::upstreams::{Link, Turn};
use toolwarden_conversations::whole;
use toolwarden_core::json::{Document, Limits, Part, Value};
use toolwarden_core::{Call, Operation, Outbound, Status};
use toolwarden_mcp::compose::{self, object_with, quoted};
use toolwarden_mcp::eras::{error_to_modern, result_to_modern};
use toolwarden_mcp::ladder::META_LOG_LEVEL;
use toolwarden_mcp::sse::Event;
use toolwarden_mcp::{Era, Id, Message, Notification, Request};
use toolwarden_policy::{Message as Admitted, acknowledge, admit, decline};

use super::older_server::uri_of;
use super::severity;
use toolwarden_refusals::Refusal;
use toolwarden_steps::answer::{self, Answer, Reply as Sent};
use toolwarden_steps::arrival::shape_of;
use toolwarden_steps::audit::Trail;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::inspect::{Check, receipt_is_wanted, told_refusal, with_receipt};
use toolwarden_steps::parks::Parks;
use toolwarden_steps::resolve::{Asked, query};
use toolwarden_steps::roots;
use toolwarden_steps::way::{Open, Waiting, Way};

/// Questions that come this soon after one another are put together.
const GATHERING: Duration = Duration::from_millis(30);
const MOST_QUESTIONS: usize = 16;

pub(super) struct Leg {
    gateway: Arc<Gateway>,
    asked: Arc<Asked>,
    id: Id,
    way: Option<Way>,
    /// The token this request wants to hear of progress by, raw.
    token: Option<String>,
    /// The least severe log it wants to hear.
    level: Option<usize>,
    /// How often the exchange asked before.
    round: u8,
    open: Vec<Open>,
    /// When the questions that came so far are put.
    gathered: Option<Instant>,
    trail: Option<Trail>,
}

/// What goes to the client.
enum Told {
    Event(Bytes),
    Last(Sent),
    Nothing,
}

impl Leg {
    pub(super) fn new(gateway: &Arc<Gateway>, asked: &Arc<Asked>, id: Id, way: Way, trail: Option<Trail>) -> Self {
        let meta = asked.query.call.params.as_ref().and_then(|params| params.value().get("_meta"));
        let member = |key: &str| meta.and_then(|meta| meta.get(key));
        Self {
            gateway: gateway.clone(),
            asked: asked.clone(),
            token: member("progressToken").map(|token| token.raw().to_owned()),
            level: member(META_LOG_LEVEL).and_then(Value::as_str).and_then(|level| severity(&level)),
            round: asked.state.as_ref().map_or(0, |state| state.round),
            id,
            way: Some(way),
            open: Vec::new(),
            gathered: None,
            trail,
        }
    }

    /// To the next answer for the client. Closing the connection on the way gives the call up.
    pub(super) async fn walk(mut self) -> Result<Answer, Refusal> {
        match self.next().await {
            Told::Last(reply) => Ok(Answer::Message(reply)),
            Told::Nothing => Ok(Answer::Events { events: Box::pin(stream::empty()), resumable: true }),
            Told::Event(first) => {
                let rest = stream::unfold((Some(first), Some(self)), |(first, leg)| async move {
                    if let Some(first) = first {
                        return Some((Event::of(first), (None, leg)));
                    }
                    let mut leg = leg?;
                    match leg.next().await {
                        Told::Event(event) => Some((Event::of(event), (None, Some(leg)))),
                        Told::Last(reply) => Some((Event::of(reply.body), (None, None))),
                        Told::Nothing => None,
                    }
                });
                Ok(Answer::Events { events: Box::pin(rest), resumable: true })
            }
        }
    }

    async fn next(&mut self) -> Told {
        let told = self.hear_or_fail().await;
        if matches!(told, Told::Last(_)) {
            self.asked.arrival.course.release();
        }
        told
    }

    async fn hear_or_fail(&mut self) -> Told {
        match self.hear().await {
            Ok(told) => told,
            Err(refusal) => {
                let refusal = told_refusal(&self.gateway, &self.asked, refusal, self.trail.as_mut());
                if let Some(trail) = self.trail.take() {
                    trail.refused(&refusal).await;
                }
                match answer::refuse(&shape_of(&self.asked.arrival), &refusal) {
                    Answer::Message(reply) => Told::Last(reply),
                    _ => Told::Nothing,
                }
            }
        }
    }

    async fn hear(&mut self) -> Result<Told, Refusal> {
        loop {
            // Kept across the news that come in between.
            let gathered = self.gathered;
            let Some(way) = &mut self.way else { return Ok(Told::Nothing) };
            let message = tokio::select! {
                message = way.source.next() => message.map_err(Refusal::Upstream)?,
                () = until(gathered) => return self.park(),
            };
            match message {
                Message::Notification(news) => {
                    if let Some(event) = self.news(&news) {
                        return Ok(Told::Event(event));
                    }
                }
                Message::Request(question) => {
                    if self.question(&question).await? {
                        self.gathered = Some(Instant::now() + GATHERING);
                    }
                }
                Message::Response(response) => return self.last(response.outcome).await,
            }
        }
    }

    fn news(&self, news: &Notification) -> Option<Bytes> {
        let news = &*self.asked.upstream.screened(news)?;
        let params = news.params.as_ref().map(Part::value);
        match &*news.method {
            "notifications/progress" => {
                let params = params.filter(|params| self.is_own_token(params.get("progressToken")))?;
                let params = object_with(Some(params), &[("progressToken", Some(self.token.as_deref()?))]);
                Some(compose::to_client(None, &news.method, Some(&params)))
            }
            "notifications/message" => {
                let params = params?;
                let level = params.get("level").and_then(Value::as_str).and_then(|level| severity(&level));
                (level? >= self.level?).then(|| compose::to_client(None, &news.method, Some(params.raw())))
            }
            // Lists that change say nothing more, so there may be no params.
            _ => {
                if let Some(Way { turn, upstream, .. }) = &self.way {
                    match &turn.link {
                        Link::Http(http) => http.ears.tell(upstream, news),
                        Link::Stdio(child) => child.ears.tell(upstream, news),
                    }
                }
                None
            }
        }
    }

    /// Whether progress is this call's: over HTTP by the token it was sent with; a pipe has seen to it.
    fn is_own_token(&self, token: Option<Value<'_>>) -> bool {
        match &self.way {
            Some(Way { turn: Turn { link: Link::Http(_), .. }, wire, .. }) => {
                token.is_some_and(|token| token.raw() == wire.raw())
            }
            Some(_) => true,
            None => false,
        }
    }

    /// A question of the server; says whether the client will be asked it.
    async fn question(&mut self, question: &Request) -> Result<bool, Refusal> {
        let upstream = self.asked.upstream.clone();
        if &*question.method == "ping" {
            self.reply(&acknowledge(upstream.name.clone()), &question.id).await;
            return Ok(false);
        }
        let params = question.params.as_ref().map(Part::value);
        let judged = questions::judge(&upstream, self.asked.whom(), &question.method, params).await;
        let put = match judged {
            Ok(put) if self.open.len() < MOST_QUESTIONS => put,
            // The client may come again with what it lacks.
            Err(Declined::NotOffered(asks)) => return Err(Refusal::Capability(asks.capability().0)),
            Ok(_) | Err(Declined::Forbidden(_)) => {
                self.decline(&question.id).await;
                return Ok(false);
            }
        };
        let params = put.params.and_then(|params| modern_question(&params));
        let mut members = vec![format!("\"method\":{}", quoted(&question.method))];
        members.extend(params.map(|params| format!("\"params\":{params}")));
        if let Some(way) = &mut self.way {
            way.has_asked = true;
        }
        self.open.push(Open {
            key: format!("q{}-{}", self.round + 1, self.open.len() + 1),
            method: question.method.clone(),
            shown: format!("{{{}}}", members.join(",")),
            upstream: question.id.clone(),
        });
        Ok(true)
    }

    async fn decline(&self, id: &Id) {
        let error = r#"{"code":-32601,"message":"this request is not offered to this server"}"#;
        let error = Document::parse(error, Limits::DEFAULT).map(|error| Part::whole(Arc::new(error)));
        if let Ok(outbound) = error.map(|error| decline(self.asked.upstream.name.clone(), error))
            && let Ok(outbound) = outbound
        {
            self.reply(&outbound, id).await;
        }
    }

    async fn reply(&self, outbound: &Outbound, id: &Id) {
        let Some(way) = &self.way else { return };
        let sent = match &way.turn.link {
            Link::Http(http) => http.answer(outbound, id).await.map(drop),
            Link::Stdio(child) => child.answer(outbound, id).await,
        };
        if let Err(failure) = sent {
            tracing::debug!(server = %way.upstream.name, "an answer could not be given: {failure}");
        }
    }

    /// Hands the server what the client answered.
    pub(super) async fn answer(&self, open: &Open, answer: &Part) -> Result<(), Refusal> {
        let caller = &self.asked.arrival.caller;
        let answer = roots::judged(&self.gateway, caller, &open.method, answer);
        let answer = answer.ok_or(Refusal::State("its answers cannot be read"))?;
        if !questions::answered(&self.asked.upstream, caller, &open.method, Ok(&answer)).await {
            return Err(Refusal::NoRecord);
        }
        let about = Call::asked(self.asked.upstream.name.clone(), Operation::ReadResource, None);
        let about = query(&self.gateway, caller, about);
        let outbound = admit(&self.gateway.live.policy(), &about, Admitted::Result(answer));
        let outbound = outbound.map_err(|_| Refusal::State("its server is not available to you any more"))?;
        self.reply(&outbound, &open.upstream).await;
        Ok(())
    }

    fn park(&mut self) -> Result<Told, Refusal> {
        let open = std::mem::take(&mut self.open);
        self.questions(open).map(Told::Last).map_err(Refusal::Upstream)
    }

    /// Puts questions that were put before once more. Where that fails the trail goes back, to be closed.
    pub(super) fn ask(mut self, open: Vec<Open>, trail: &mut Option<Trail>) -> Result<Answer, Failure> {
        self.questions(open).map(Answer::Message).inspect_err(|_| *trail = self.trail.take())
    }

    /// Gives the call up; its trail is closed by whoever knows why.
    pub(super) fn into_trail(mut self) -> Option<Trail> {
        self.trail.take()
    }

    fn questions(&mut self, open: Vec<Open>) -> Result<Sent, Failure> {
        let Some(way) = self.way.take() else { return Err(Failure::Lost) };
        let entries: Vec<String> = open.iter().map(|open| format!("{}:{}", quoted(&open.key), open.shown)).collect();
        let name = Parks::name(&*self.gateway.keyring)?;
        // Sealed first: a call that nobody could come back to must not wait.
        let asking = self.input_required(&entries, Carried::Parked(name.clone()))?;
        let owner = principal(&self.asked.arrival.caller);
        self.gateway.parks.keep(
            name,
            owner,
            Box::new(Waiting::new(way, self.asked.clone(), open, self.trail.take())),
        )?;
        Ok(asking)
    }

    fn input_required(&self, entries: &[String], carried: Carried) -> Result<Sent, Failure> {
        let keyring = &*self.gateway.keyring;
        if let Some(under) = self.asked.under.get() {
            under.set_pause(true);
        }
        let asking = format!(r#"{{"resultType":"input_required","inputRequests":{{{}}}}}"#, entries.join(","));
        let asking = Part::composed(asking)?;
        let asks = Asks { carried, questions: questions_of(asking.value()) };
        let state = self.gateway.states.seal(keyring, self.asked.bound(), self.round + 1, asks)?;
        let result = object_with(Some(asking.value()), &[("requestState", Some(&quoted(&state)))]);
        Ok(Sent { status: StatusCode::OK, body: compose::result(&self.id, &result), session: None })
    }

    /// The server's own answer.
    async fn last(&mut self, outcome: Result<Part, Part>) -> Result<Told, Refusal> {
        let about = self.way.take().and_then(|mut way| way.about.take());
        let said = outcome.as_ref().map(Part::value).map_err(Part::value);
        whole::check_words(said).map_err(Refusal::Upstream)?;
        let body = match &outcome {
            Ok(result) => {
                let check = Check::of(&self.gateway, &self.asked).map(|check| check.in_words_of(Era::Legacy));
                let shown = match check {
                    Some(check) => check.show((&self.gateway, &self.asked), &outcome, self.trail.as_mut()).await,
                    None => Ok(None),
                };
                let shown = shown.map_err(Refusal::Upstream)?.and_then(Result::ok);
                let result = shown.as_ref().unwrap_or(result);
                let text = result_to_modern(&self.asked.method, result.value(), about.as_deref());
                compose::result(&self.id, &text)
            }
            Err(error) if wants_addresses(error.value()) => {
                return self.addresses(error.value()).await;
            }
            Err(error) => {
                let error = self.error(error)?;
                compose::raw_error(Some(&self.id), &error)
            }
        };
        let mut trail = self.trail.take();
        if let Some(trail) = &mut trail {
            trail.outcome(whole::status_of(&outcome), body.len() as u64);
        }
        let receipt = trail.as_ref().and_then(Trail::receipt).filter(|_| receipt_is_wanted(&self.asked.query));
        let body = receipt.map_or(body.clone(), |receipt| with_receipt(body, receipt));
        Ok(Told::Last(Sent { status: StatusCode::OK, body, session: None }))
    }

    /// An error of the server in modern words, as it may be shown.
    fn error(&mut self, error: &Part) -> Result<String, Refusal> {
        let error = error_to_modern(error.value(), uri_of(&self.asked).as_deref());
        let refusal = Refusal::Upstream(Failure::Answered { status: 200, error });
        match told_refusal(&self.gateway, &self.asked, refusal, self.trail.as_mut()) {
            Refusal::Upstream(Failure::Answered { error, .. }) => Ok(error),
            refusal => Err(refusal),
        }
    }

    /// The server wants addresses opened first: each is a question, and the call is made again after.
    async fn addresses(&mut self, error: Value<'_>) -> Result<Told, Refusal> {
        let wanted = error.get("data").and_then(|data| data.get("elicitations"));
        let mut entries = Vec::new();
        for (place, address) in wanted.into_iter().flat_map(Value::items).take(MOST_QUESTIONS).enumerate() {
            let params = object_with(Some(address), &[("mode", Some("\"url\"")), ("elicitationId", None)]);
            let limits = Limits { bytes: params.len(), depth: 64 };
            let Ok(params) = Document::parse(params, limits) else { continue };
            let judged =
                questions::judge(&self.asked.upstream, self.asked.whom(), "elicitation/create", Some(params.root()));
            let put = judged.await.map_err(|declined| match declined {
                Declined::NotOffered(asks) => Refusal::Capability(asks.capability().0),
                Declined::Forbidden(_) => refused("it asked for an address to be opened that it may not ask for"),
            })?;
            let params = put.params.unwrap_or_default();
            entries.push(format!(
                "\"q{}-{}\":{{\"method\":\"elicitation/create\",\"params\":{params}}}",
                self.round + 1,
                place + 1
            ));
        }
        if entries.is_empty() {
            return Err(refused("it asked for addresses to be opened and gave none"));
        }
        // Before its end is told: it goes on.
        if let Some(under) = self.asked.under.get() {
            under.set_pause(true);
        }
        if let Some(mut trail) = self.trail.take() {
            trail.outcome(Status::Ok, 0);
        }
        self.input_required(&entries, Carried::Again).map(Told::Last).map_err(Refusal::Upstream)
    }
}

/// A question in modern words: it has neither an id of its own nor progress.
fn modern_question(params: &str) -> Option<String> {
    let params = Document::parse(params, Limits::again(params.len())).ok()?;
    let meta = params.root().get("_meta").map(|meta| object_with(Some(meta), &[("progressToken", None)]));
    let meta = meta.filter(|meta| meta != "{}");
    Some(object_with(Some(params.root()), &[("elicitationId", None), ("_meta", meta.as_deref())]))
}

fn refused(what: &str) -> Refusal {
    Refusal::Upstream(Failure::Protocol(what.to_owned()))
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
