//! The trail of a message. Opened before anything else; every exit closes it.
//!
//! A call's intent is recorded before it leaves, its outcome after; a refusal is one record. When a
//! record cannot be written the call does not run (GATE-15).

use std::sync::Arc;

use tokio::time::Instant;
use toolwarden_conversations::Failure;
use toolwarden_conversations::flight::Flight;
use toolwarden_conversations::upstreams::Upstream;
use toolwarden_core::json::Part;
use toolwarden_core::name::{LONGEST_NAME, bounded, shown};
use toolwarden_core::{AuditRecord, Caller, Decision, Digest, Purpose, Reason, RecordKind, Status};
use toolwarden_guard::screen::Findings;
use toolwarden_mcp::headers::{Single, single};
use toolwarden_mcp::{Era, Message, Trace, trace};
use toolwarden_policy::Explanation;
use toolwarden_store::journal::{JournalError, Receipt};
use toolwarden_telemetry::trace::{Ending, Span, TraceContext};
use toolwarden_telemetry::{ServerMetrics, TurnedAway};

use crate::arrival::{Arrival, Via};
use crate::flow::Met;
use crate::gateway::Gateway;
use crate::resolve::{Asked, What, text_member};
use crate::review::{Answered, Under};
use toolwarden_refusals::Refusal;

/// Where a modern request says what its client is.
const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing left yet.
    Open,
    /// The intent is recorded: an outcome must follow.
    Left,
    Closed,
}

/// The trail of one message.
#[derive(Debug)]
pub struct Trail {
    gateway: Arc<Gateway>,
    call: u64,
    via: Via,
    started: Instant,
    caller: Arc<Caller>,
    session: Option<String>,
    method: Arc<str>,
    server: Option<Arc<Upstream>>,
    tool: Option<Arc<str>>,
    /// Which resource, prompt or argument; the tool's name says it for tools.
    target: Option<String>,
    size: usize,
    digest: Option<String>,
    /// What a call is made with.
    params: Option<Part>,
    /// What the client says of itself: name and version.
    client: (Option<String>, Option<String>),
    /// The arguments as they may be recorded.
    arguments: Option<serde_json::Value>,
    state: State,
    receipt: Option<Receipt>,
    flight: Arc<Flight>,
    /// What of a trace it is, where tracing is on.
    span: Option<Box<Span>>,
    decided: (Option<Decision>, Option<Reason>),
    /// What was found in the answer: kinds and counts.
    found: Option<String>,
    /// The approval it is made under.
    under: Option<Arc<Under>>,
}

impl Trail {
    pub fn open(gateway: &Arc<Gateway>, arrival: &Arrival, method: Arc<str>) -> Self {
        Self {
            gateway: gateway.clone(),
            call: gateway.journal.next_call(),
            via: arrival.via,
            started: Instant::now(),
            caller: arrival.caller.clone(),
            session: arrival.session.as_ref().map(|session| session.mark.clone()),
            method,
            server: None,
            tool: None,
            target: None,
            size: arrival.size,
            digest: None,
            params: params_of(arrival),
            client: client_of(arrival),
            arguments: None,
            state: State::Open,
            receipt: None,
            flight: arrival.course.flight().clone(),
            span: begin_span(gateway, arrival),
            decided: (None, None),
            found: None,
            under: None,
        }
    }

    /// Whether the call left, and is to have an outcome.
    pub fn has_left(&self) -> bool {
        self.state == State::Left
    }

    /// Its number in the record.
    pub fn number(&self) -> u64 {
        self.call
    }

    /// The call is made under an approval.
    pub fn goes_under(&mut self, asked: &Asked) {
        self.under = asked.under.get().cloned();
        if let Some(under) = &self.under {
            under.set_pause(false);
            if let (true, Answered::Approval, Some(desk)) = (under.is_used(), under.kind, &self.gateway.desk) {
                desk.goes_on(&under.id);
            }
        }
    }

    /// What servers are told of the trace.
    pub fn trace(&self) -> Option<Arc<Trace>> {
        let context = self.span.as_ref()?.context();
        Trace::new(&context.to_string(), context.state()).map(Arc::new)
    }

    /// What is being asked for, once that is known.
    pub fn asks(&mut self, asked: &Asked) {
        self.server = Some(asked.upstream.clone());
        // Messages that are no calls are judged by their server alone.
        self.tool = match &asked.what {
            What::Call => Some(asked.query.call.tool.clone()),
            What::Task(tool) => tool.clone(),
            _ => None,
        };
        self.target = target(asked);
        if matches!(asked.what, What::Call) {
            self.params = asked.query.call.params.clone();
        }
        self.arguments = self.recorded(asked.query.call.params.as_ref());
    }

    /// What the record may show of the arguments, where it is to show them.
    fn recorded(&self, params: Option<&Part>) -> Option<serde_json::Value> {
        let redactor = self.gateway.settings.recorded_arguments.as_ref()?;
        let arguments = params?.member("arguments")?;
        Some(redactor.redacted(arguments.value()))
    }

    /// Who the judge sees: meanwhile the session may have been put in another mode.
    pub fn spoken_by(&mut self, speaker: Arc<Caller>) {
        self.caller = speaker;
    }

    /// What a call at the common door names, before it is known whether it can be asked for; or what a task is of.
    pub fn names(&mut self, server: &Arc<Upstream>, own: &str, method: &str) {
        self.server = Some(server.clone());
        self.tool = (method == "tools/call").then(|| bounded(own).into());
    }

    /// Records that the call is about to leave; its flow labels were kept before.
    pub async fn intent(&mut self, why: &Explanation, params: Option<&Part>, _: &Met) -> Result<(), Refusal> {
        self.digest = params.map(|params| self.keyed_digest(params));
        self.decided = (Some(why.decision), Some(why.reason));
        let receipt = {
            let mut record = self.record(RecordKind::Intent);
            explain(&mut record, why);
            let source = why.rule.as_ref().map(|rule| rule.origin.to_string());
            record.rule_source = source.as_deref();
            record.detail = self.target.as_deref();
            self.gateway.journal.record(&record).await
        };
        self.left(receipt)
    }

    /// The same for a message about a task, which was judged by the tool that made it.
    pub async fn intent_of_task(&mut self) -> Result<(), Refusal> {
        let receipt = {
            let mut record = self.record(RecordKind::Intent);
            record.decision = Some(Decision::Allow.as_str());
            self.gateway.journal.record(&record).await
        };
        self.left(receipt)
    }

    fn left(&mut self, receipt: Result<Receipt, JournalError>) -> Result<(), Refusal> {
        match receipt {
            Ok(receipt) => {
                self.receipt = Some(receipt);
                self.state = State::Left;
                self.metrics().left(self.started.elapsed(), self.size);
                Ok(())
            }
            Err(error) => {
                tracing::error!("a call is refused because its record cannot be written: {error}");
                self.state = State::Closed;
                Err(Refusal::NoRecord)
            }
        }
    }

    pub fn began(&self) -> Instant {
        self.started
    }

    pub fn receipt(&self) -> Option<&Receipt> {
        self.receipt.as_ref()
    }

    /// What was found in the answer, for the record of how the call ended.
    pub fn found(&mut self, findings: &Findings) {
        self.found = Some(format!("found in the answer: {findings}"));
    }

    /// Records how a call ended that left.
    pub fn outcome(&mut self, status: Status, response_bytes: u64) {
        self.end(status, None, response_bytes);
    }

    /// The same for a call that its server let down, or that went over a limit.
    pub fn failed(&mut self, failure: &Failure, response_bytes: u64) {
        self.end(failure.status(), failure.over(), response_bytes);
    }

    fn end(&mut self, status: Status, over: Option<Reason>, response_bytes: u64) {
        if self.state != State::Left {
            return;
        }
        self.state = State::Closed;
        let took = self.started.elapsed();
        self.metrics().ended(self.via.door(), status, took, response_bytes);
        self.end_span(status, response_bytes);
        let mut record = AuditRecord::new(RecordKind::Outcome, self.gateway.clock.now(), self.call);
        record.status = Some(status);
        record.reason = over.map(Reason::code);
        record.duration_us = u64::try_from(took.as_micros()).ok();
        record.response_bytes = Some(response_bytes);
        record.detail = self.found.as_deref().map(bounded);
        record.approval_id = self.under.as_ref().map(|under| under.id.as_str());
        if let Err(error) = self.gateway.journal.note(&record) {
            tracing::error!("the outcome of a call could not be recorded: {error}");
        }
        let approval = self.under.as_ref().filter(|under| under.kind == Answered::Approval);
        if let (Some(under), Some(desk)) = (approval, &self.gateway.desk) {
            match status {
                Status::Ok if under.pauses() => desk.pauses(&under.id),
                status => desk.ended(&under.id, status),
            }
        }
    }

    /// Records that the result of an earlier call is handed over, before it is: nothing leaves for it.
    pub async fn hands_over(&mut self, approval: &str, why: &str, response_bytes: u64) -> Result<(), Refusal> {
        let mut record = self.record(RecordKind::Event);
        (record.decision, record.reason) = (Some(Decision::Allow.as_str()), Some(Reason::Paid.code()));
        (record.status, record.response_bytes) = (Some(Status::Ok), Some(response_bytes));
        (record.approval_id, record.detail) = (Some(approval), Some(why));
        self.gateway.journal.record(&record).await.map_err(|error| {
            tracing::error!("a result is not handed over because that cannot be recorded: {error}");
            Refusal::NoRecord
        })?;
        self.state = State::Closed;
        self.decided = (Some(Decision::Allow), Some(Reason::Paid));
        self.end_span(Status::Ok, response_bytes);
        Ok(())
    }

    /// Records a message that ends here.
    pub async fn refused(mut self, refusal: &Refusal) {
        if self.state == State::Left {
            return match refusal {
                Refusal::Upstream(failure) => self.failed(failure, 0),
                other => self.outcome(status_of(other), 0),
            };
        }
        let mut approval = None;
        let explanation = match refusal {
            Refusal::Denied(denial) | Refusal::Held(denial) => {
                approval = denial.approval.as_deref();
                &denial.explanation
            }
            Refusal::Hidden(tool, explanation) => {
                self.tool.get_or_insert_with(|| bounded(tool).into());
                explanation
            }
            Refusal::Upstream(failure) if self.is_call() => return self.unreached(failure).await,
            _ => return self.undecided(refusal).await,
        };
        self.count_refusal((Some(explanation.decision), Some(explanation.reason)), status_of(refusal));
        let source = explanation.rule.as_ref().map(|rule| rule.origin.to_string());
        let mut record = self.refusal();
        explain(&mut record, explanation);
        record.rule_source = source.as_deref();
        record.detail = self.target.as_deref();
        record.approval_id = approval;
        record.status = Some(status_of(refusal));
        self.keep(&record).await;
    }

    /// Records a message that ended before the judge was asked. A stranger's noise is not recorded.
    async fn undecided(&mut self, refusal: &Refusal) {
        let (reason, detail) = match refusal {
            Refusal::UnknownTool(tool) => {
                // Behind the common door no server was found for it.
                self.tool.get_or_insert_with(|| bounded(tool).into());
                (Some(Reason::UnknownTool), None)
            }
            Refusal::Method(_) => (Some(Reason::MethodNotListed), None),
            Refusal::ForeignTask => (Some(Reason::ForeignId), None),
            Refusal::State(why) => (Some(Reason::ForeignId), Some(*why)),
            // The caller is known, so it is told.
            Refusal::Rung(_) => (None, Some("a header does not say what the body says")),
            Refusal::NoRecord => return self.gateway.telemetry.metrics.turned_away(TurnedAway::Record),
            _ => return self.gateway.telemetry.metrics.turned_away(TurnedAway::Unusable),
        };
        self.keep_denial(reason, detail).await;
    }

    /// Records a call whose server could not be reached before the judge was asked.
    async fn unreached(&mut self, failure: &Failure) {
        let said = failure.to_string();
        self.count_refusal((None, None), failure.status());
        let mut record = self.refusal();
        record.status = Some(failure.status());
        record.detail = Some(bounded(&said));
        self.keep(&record).await;
    }

    fn is_call(&self) -> bool {
        matches!(&*self.method, "tools/call" | "resources/read" | "prompts/get" | "completion/complete")
    }

    /// Records a message that is dropped because it speaks of what is not its caller's own.
    pub async fn dropped(mut self, what: &str) {
        self.state = State::Closed;
        self.keep_denial(Some(Reason::ForeignId), Some(what)).await;
    }

    async fn keep_denial(&mut self, reason: Option<Reason>, detail: Option<&str>) {
        self.count_refusal((Some(Decision::Deny), reason), Status::Denied);
        let mut record = self.refusal();
        (record.decision, record.reason) = (Some(Decision::Deny.as_str()), reason.map(Reason::code));
        record.detail = detail;
        record.status = Some(Status::Denied);
        self.keep(&record).await;
    }

    fn metrics(&self) -> Arc<ServerMetrics> {
        self.gateway.telemetry.metrics.server(self.server.as_ref().map(|server| &*server.name))
    }

    fn count_refusal(&mut self, decided: (Option<Decision>, Option<Reason>), status: Status) {
        let (decision, reason) = decided;
        self.decided = decided;
        if self.digest.is_none() && self.is_call() {
            self.digest = self.params.as_ref().map(|params| self.keyed_digest(params));
        }
        // Of a tool nobody knows and of a server that was not reached nothing was resolved.
        if self.arguments.is_none() && self.is_call() {
            self.arguments = self.recorded(self.params.as_ref());
        }
        self.metrics().refused(self.via.door(), decision, reason, status);
        self.end_span(status, 0);
    }

    fn end_span(&mut self, status: Status, response_bytes: u64) {
        let (Some(tracer), Some(span)) = (&self.gateway.telemetry.tracer, self.span.take()) else { return };
        let ending = Ending {
            // Spans wait in a queue, however long a client makes its words.
            method: short(&self.method),
            server: self.server.as_ref().map(|server| server.name.clone()),
            tool: self.tool.as_ref().map(short),
            session: self.session.clone(),
            door: self.via.door(),
            call: self.call,
            decision: self.decided.0,
            reason: self.decided.1,
            status,
            took: self.started.elapsed(),
            request_bytes: self.size,
            response_bytes,
        };
        tracer.end(*span, ending);
    }

    async fn keep(&self, record: &AuditRecord<'_>) {
        if let Err(error) = self.gateway.journal.record(record).await {
            tracing::error!("a refusal could not be recorded: {error}");
        }
    }

    /// Of a message that ends here: with how long that took.
    fn refusal(&self) -> AuditRecord<'_> {
        let mut record = self.record(RecordKind::Refusal);
        record.duration_us = u64::try_from(self.started.elapsed().as_micros()).ok();
        record
    }

    fn record(&self, kind: RecordKind) -> AuditRecord<'_> {
        let mut record = AuditRecord::new(kind, self.gateway.clock.now(), self.call);
        record.describe(&self.caller);
        record.door = Some(self.via.door().as_str());
        record.method = Some(bounded(&self.method));
        record.server = self.server.as_ref().map(|server| &*server.name);
        record.tool = self.tool.as_deref().map(bounded);
        record.session = self.session.as_deref();
        (record.client, record.client_version) = (self.client.0.as_deref(), self.client.1.as_deref());
        record.request_bytes = u64::try_from(self.size).ok();
        record.arguments_digest = self.digest.as_deref();
        record.arguments = self.arguments.as_ref();
        record.approval_id = self.under.as_ref().map(|under| under.id.as_str());
        record
    }

    /// Keyed, so that nobody who reads the journal can try guesses against it.
    fn keyed_digest(&self, params: &Part) -> String {
        let digest = Digest::of_part(params);
        let mark = self.gateway.keyring.mark(Purpose::ArgumentDigest, digest.as_bytes());
        Digest::from_bytes(mark).to_string()
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        // The client went away, or the answer was dropped half-way.
        match &self.flight {
            flight if flight.is_revoked() => self.outcome(Status::Unknown, 0),
            flight if flight.is_late() => self.failed(&Failure::Timeout, 0),
            _ => self.outcome(Status::Cancelled, 0),
        }
    }
}

/// A span for a request, below the one its client names: in `_meta`, else in headers.
fn begin_span(gateway: &Gateway, arrival: &Arrival) -> Option<Box<Span>> {
    let tracer = gateway.telemetry.tracer.as_ref()?;
    let Message::Request(request) = &arrival.message else { return None };
    let meta = request.params.as_ref().and_then(|params| params.member("_meta"));
    let parent = text_member(meta.as_ref(), "traceparent");
    let client = match &parent {
        Some(parent) => TraceContext::parse(parent, text_member(meta.as_ref(), "tracestate").as_deref()),
        None => match single(&arrival.headers, &trace::PARENT) {
            Single::One(parent) => match single(&arrival.headers, &trace::STATE) {
                Single::One(state) => TraceContext::parse(parent, Some(state)),
                _ => TraceContext::parse(parent, None),
            },
            _ => None,
        },
    };
    Some(Box::new(tracer.begin(client, gateway.clock.now())))
}

/// What a message brings, as it came in.
fn params_of(arrival: &Arrival) -> Option<Part> {
    match &arrival.message {
        Message::Request(request) => request.params.clone(),
        Message::Notification(_) | Message::Response(_) => None,
    }
}

/// What the client says of itself, with this request or when it opened its session. Nobody checked it: it is bounded, and
/// shown as what it is.
fn client_of(arrival: &Arrival) -> (Option<String>, Option<String>) {
    let with_request = || params_of(arrival)?.member("_meta")?.member(META_CLIENT);
    let at_opening = || arrival.session.as_ref()?.agreed()?.client.clone();
    let said = match arrival.version.era() {
        Era::Modern => with_request(),
        Era::Legacy => at_opening(),
    };
    let text = |key: &str| text_member(said.as_ref(), key).map(|text| shown(bounded(&text)).into_owned());
    (text("name"), text("version"))
}

/// What a call that names no tool is about. Of an address only the place: what follows may be a secret.
fn target(asked: &Asked) -> Option<String> {
    let params = asked.query.call.params.as_ref();
    let named = match &*asked.method {
        "resources/read" | "resources/subscribe" => text_member(params, "uri"),
        "prompts/get" => text_member(params, "name"),
        "completion/complete" => {
            let reference = params.and_then(|params| params.member("ref"));
            text_member(reference.as_ref(), "uri").or_else(|| text_member(reference.as_ref(), "name"))
        }
        _ => None,
    }?;
    Some(bounded(&place_in(&named)).to_owned())
}

fn place_in(address: &str) -> String {
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

fn short(text: &Arc<str>) -> Arc<str> {
    if text.len() <= LONGEST_NAME { text.clone() } else { bounded(text).into() }
}

#[cfg(test)]
#[test]
fn addresses_are_recorded_without_what_may_be_secret() {
    for (address, place) in [
        ("note://a", "note://a"),
        ("https://u:p@h/x/@y?key=1#f", "https://h/x/@y"),
        ("file:///a@b", "file:///a@b"),
        ("plain?token=1", "plain"),
        ("https://u:p@h", "https://h"),
    ] {
        assert_eq!(place_in(address), place);
    }
}

fn explain<'a>(record: &mut AuditRecord<'a>, why: &'a Explanation) {
    record.decision = Some(why.decision.as_str());
    record.stage = Some(why.stage.as_str());
    record.reason = Some(why.reason.code());
    record.rule = why.rule.as_ref().map(|rule| &*rule.text);
    record.policy_version = Some(why.policy_version);
}

fn status_of(refusal: &Refusal) -> Status {
    match refusal {
        Refusal::Held(_) => Status::Held,
        Refusal::Upstream(failure) => failure.status(),
        // It ran as far as to ask: what it did before is not known.
        Refusal::Capability(_) | Refusal::TakenAway(_) => Status::Unknown,
        _ => Status::Denied,
    }
}
