//! The call of a task, made in the background: through the same corridor, under the approval it waited for, once.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use toolwarden_conversations::sessions::identity;
use toolwarden_core::json::{Part, Value, unescape};
use toolwarden_core::{ApprovalState, Reason, TaskQuestions, TaskStage, token};
use toolwarden_mcp::compose::{object_with, quoted};
use toolwarden_mcp::ladder::{META_CAPABILITIES, META_LOG_LEVEL, META_VERSION};
use toolwarden_mcp::message::{Request, read_one};
use toolwarden_mcp::sse::Event;
use toolwarden_mcp::{Era, Id, Message};
use toolwarden_refusals::Refusal;
use toolwarden_review::{Approval, Asking, Desk, HeldTask, StateError};
use toolwarden_steps::answer::{Answer, gathered};
use toolwarden_steps::arrival::{Arrival, Course};
use toolwarden_steps::audit::Trail;
use toolwarden_steps::decide::{decide, reach};
use toolwarden_steps::ending::unless_given_up;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::resolve::{Asked, Resolved, resolve};
use toolwarden_steps::review::Under;
use toolwarden_steps::runs::Running;
use toolwarden_steps::{catalog, forward, parameters, results};

use super::words;
use crate::{aggregate, pipeline};

/// More than this is not kept of what a call gave.
const LARGEST: usize = 8 * 1024 * 1024;
const CALL: &str = "tools/call";
const KEY_BYTES: usize = 5;
/// How long a call that could not be made rests.
const REST: Duration = Duration::from_secs(2);
/// The same for one whose server is away.
const AWAY: Duration = Duration::from_secs(10);
const LONGEST_REST: Duration = Duration::from_secs(60);
/// What of `_meta` belongs to the request that carries it, and not to the call.
const ENVELOPE: [&str; 4] = [META_VERSION, "io.modelcontextprotocol/clientInfo", META_CAPABILITIES, META_LOG_LEVEL];

/// Makes the call of a task as soon as somebody permits it. Where too many wait, its caller's next question does; and so it
/// does where the conversation is over in which it was made.
pub(super) fn when_answered(gateway: &Arc<Gateway>, arrival: &Arrival, desk: &Arc<Desk>, task: &HeldTask) {
    let Some(awaited) = gateway.runs.wait_for(&task.id, &identity(&arrival.caller)) else { return };
    let (gateway, desk, task) = (gateway.clone(), desk.clone(), task.clone());
    // The request itself is answered: neither its place nor its id is taken any longer.
    let arrival = Arrival { course: Course::default(), ..arrival.clone() };
    tokio::spawn(async move {
        let over = async {
            match &arrival.session {
                Some(session) => session.over().await,
                None => std::future::pending().await,
            }
        };
        let answered = tokio::select! {
            answered = desk.answered(&task.approval) => answered,
            () = gateway.closing.begun() => return,
            () = over => return,
        };
        drop(awaited);
        if matches!(answered, Ok(Some(approval)) if approval.state == ApprovalState::Approved) {
            start(&gateway, &arrival, &desk, &task);
        }
    });
}

/// Begins to make the call of a task, or to go on with it, unless that is being done here.
pub(super) fn start(gateway: &Arc<Gateway>, arrival: &Arrival, desk: &Arc<Desk>, task: &HeldTask) {
    if gateway.closing.has_begun() {
        return;
    }
    let session = arrival.session.as_ref().map(|session| session.mark.as_str());
    let Some(running) = gateway.runs.begin(&task.id, session) else { return };
    let (gateway, desk, task) = (gateway.clone(), desk.clone(), task.id.clone());
    let arrival = Arrival { course: Course::of(running.run.flight.clone()), ..arrival.clone() };
    let (caller, going) = (identity(&arrival.caller), Going { gateway, arrival, desk, running });
    tokio::spawn(async move {
        // As of now: somebody may have been faster.
        let found = async {
            let Some(task) = going.desk.task(&caller, &task).await? else { return Ok(None) };
            let approval = going.desk.approval(&task.approval).await?;
            Ok::<_, StateError>(approval.map(|approval| (task, approval)))
        };
        match found.await {
            Ok(Some((task, approval))) => going.run(&task, &approval).await,
            Ok(None) => {}
            Err(error) => tracing::error!("the call of a task is not made: {error}"),
        }
    });
}

/// One call on its way.
struct Going {
    gateway: Arc<Gateway>,
    arrival: Arrival,
    desk: Arc<Desk>,
    running: Running,
}

/// What became of a call.
struct Made {
    stage: TaskStage,
    /// What it waits for next.
    next: Option<Asking>,
}

impl From<TaskStage> for Made {
    fn from(stage: TaskStage) -> Self {
        Self { stage, next: None }
    }
}

impl Going {
    async fn run(&self, task: &HeldTask, approval: &Approval) {
        let is_approved = approval.state == ApprovalState::Approved;
        let made = match &task.stage {
            TaskStage::Asks(questions) if words::unanswered(questions).is_none() => {
                self.make(approval, Some(questions)).await
            }
            TaskStage::Call if is_approved => self.make(approval, None).await,
            TaskStage::Review if is_approved => self.take_result(approval).await,
            _ => return,
        };
        if self.running.run.flight.is_stopped() {
            // Its caller gave it up; where it never left, nobody else is to make it.
            self.desk.cancel_returned(&approval.id).await;
        }
        let Some(Made { stage, next }) = made else { return };
        match self.desk.move_task(task, stage, next.as_ref()).await {
            Ok(true) => {}
            Ok(false) => self.keep_less(task).await,
            Err(error) => tracing::error!("what the call of a task gave cannot be kept: {error}"),
        }
        if next.is_some()
            && let Ok(Some(task)) = self.desk.task(&identity(&self.arrival.caller), &task.id).await
        {
            when_answered(&self.gateway, &self.arrival, &self.desk, &task);
        }
    }

    /// Where there is no room for what a call gave, that is said of it.
    async fn keep_less(&self, task: &HeldTask) {
        let words = "the call was made, and there is no room to keep what it gave: too much of earlier tasks is kept";
        if let Err(error) = self.desk.move_task(task, TaskStage::Error(words::error(words)), None).await {
            tracing::error!("what the call of a task gave cannot be kept: {error}");
        }
    }

    /// Makes the call, or goes on with it. None where others made it, or it can still be made.
    async fn make(&self, approval: &Approval, questions: Option<&TaskQuestions>) -> Option<Made> {
        let mut trail = None;
        let asked = match self.asked(approval, questions, &mut trail).await {
            Ok(asked) => asked,
            Err(refusal) => return self.refused(approval, &refusal, trail, None).await,
        };
        if let Err(refusal) = self.can_be_sent(&asked).await {
            return self.refused(approval, &refusal, trail, None).await;
        }
        let course = asked.arrival.course.clone();
        let passed = unless_given_up(course, pin!(pipeline::pass(&self.gateway, &asked, &mut trail))).await;
        let said = match passed {
            Ok(answer) => self.last_of(answer, &asked.answer_id()).await,
            Err(refusal) => return self.refused(approval, &refusal, trail, Some(&asked)).await,
        };
        Some(self.made(&asked, said))
    }

    /// Whether its server can be reached and its conversation goes on: found out before anything is taken. Nothing is started
    /// for whoever may not reach it, and no server that nobody accepted: the judge says so then.
    async fn can_be_sent(&self, asked: &Asked) -> Result<(), Refusal> {
        let (server, caller) = (&asked.upstream.name, &asked.arrival.caller);
        if !self.gateway.pins.may_start(server) {
            return Ok(());
        }
        reach(&self.gateway, caller, server, &asked.query.call.tool)?;
        forward::link(&asked.arrival, &asked.upstream).await.map(drop)
    }

    /// Hands a result over to the task that a person permitted to be seen.
    async fn take_result(&self, approval: &Approval) -> Option<Made> {
        let mut trail = None;
        let asked = match self.asked(approval, None, &mut trail).await {
            Ok(asked) => asked,
            Err(refusal) => return self.refused(approval, &refusal, trail, None).await,
        };
        // What is denied by now is not seen, whoever permitted it.
        let given = match decide(&self.gateway, &asked).await {
            Ok(_) => results::permitted(&self.gateway, &asked, approval, &mut trail).await,
            Err(refusal) => Err(refusal),
        };
        match given {
            Ok(answer) => {
                let said = self.last_of(answer, &asked.answer_id()).await;
                Some(self.made(&asked, said))
            }
            Err(refusal) => self.refused(approval, &refusal, trail, None).await,
        }
    }

    /// What a refusal means for the task: nothing where others make the call, or where it can be made later; and where a
    /// person is asked anew, that is what it waits for.
    async fn refused(
        &self,
        approval: &Approval,
        refusal: &Refusal,
        trail: Option<Trail>,
        asked: Option<&Asked>,
    ) -> Option<Made> {
        // A trail that somebody took along went with the answer.
        let has_left = trail.as_ref().map_or(asked.is_some(), Trail::has_left);
        if let Some(trail) = trail {
            trail.refused(refusal).await;
        }
        let ended = || Some(words::refused(refusal, self.era()).into());
        if has_left {
            return ended();
        }
        let rest = match refusal {
            Refusal::Denied(denial) => match (denial.retry_after, denial.explanation.reason) {
                (Some(seconds), _) => Duration::from_secs(seconds),
                (None, Reason::AlreadyRunning | Reason::ApprovalUsed) => REST,
                // Whoever comes back with a credential that counts is the same caller.
                (
                    None,
                    Reason::CredentialUnverified
                    | Reason::CredentialRevoked
                    | Reason::CredentialExpired
                    | Reason::CredentialExhausted,
                ) => LONGEST_REST,
                _ => return ended(),
            },
            Refusal::Held(denial) => match denial.approval.as_deref() {
                // Nobody could be asked just now.
                None => LONGEST_REST,
                // By the rules of now this answer does not suffice, and nobody else can give another.
                Some(id) if id == approval.id => LONGEST_REST,
                Some(id) => match self.desk.approval(id).await {
                    Ok(Some(Approval { id, expires_at, .. })) => {
                        return Some(Made { stage: TaskStage::Call, next: Some(Asking { id, expires_at }) });
                    }
                    Ok(None) | Err(_) => REST,
                },
            },
            // The exchange belongs to the life of a gateway: another one may go on with it, this one never.
            Refusal::State(_) if self.desk.is_own(approval) => return ended(),
            // Its server may come back, its client open another conversation, the record be writable again.
            Refusal::Upstream(_) => AWAY,
            Refusal::State(_)
            | Refusal::SessionGone
            | Refusal::SessionMissing
            | Refusal::Unverified
            | Refusal::NoRecord => REST,
            _ => return ended(),
        };
        self.running.rest(rest.min(LONGEST_REST));
        None
    }

    fn era(&self) -> Era {
        self.arrival.version.era()
    }

    /// The call as it was held, made by whoever asks for it now.
    async fn asked(
        &self,
        approval: &Approval,
        questions: Option<&TaskQuestions>,
        trail: &mut Option<Trail>,
    ) -> Result<Arc<Asked>, Refusal> {
        let unfit = |error: toolwarden_core::json::JsonError| Refusal::Upstream(error.into());
        let held = Part::composed(approval.call.params.clone()).map_err(unfit)?;
        let Message::Request(request) = &self.arrival.message else { return Err(Refusal::ForeignTask) };
        // Of its own: on a conversation that is one with its server's, several calls may begin by one question.
        let id = Id::from_raw(&quoted(&self.running.task)).ok_or(Refusal::ForeignTask)?;
        let mut params = match self.enveloped(&held, request.params.as_ref()) {
            Some(params) => Part::composed(params).map_err(unfit)?,
            None => held,
        };
        if let Some(questions) = questions {
            params = Part::composed(with_answers(&params, questions)).map_err(unfit)?;
        }
        let mut arrival = self.arrival.clone();
        arrival.size = params.raw().len();
        let call = Request { id, method: CALL.into(), params: Some(params) };
        arrival.message = Message::Request(call);
        arrival.headers = Arc::default();
        let opened = trail.insert(Trail::open(&self.gateway, &arrival, CALL.into()));
        arrival.course.trace = opened.trace();
        let server = approval.call.server.as_str().into();
        let Resolved::Asked(mut asked) = resolve(&self.gateway, arrival, &server)? else {
            return Err(Refusal::ForeignTask);
        };
        catalog::know(&self.gateway, &asked).await?;
        let mirrors = (self.era() == Era::Modern).then(|| parameters::mirrors(&self.gateway, &asked));
        if let Some(asked) = Arc::get_mut(&mut asked) {
            asked.arrival.headers = Arc::new(mirrors.unwrap_or_default());
            asked.is_for_task = true;
            if questions.is_none() {
                // Also where nobody needs to be asked by now: whoever takes it makes the call, and nobody else.
                asked.under.get_or_init(|| Arc::new(Under::to_take(&approval.id)));
            }
        }
        Ok(asked)
    }

    /// The call in the envelope of the era it is made in, where it was held in the other: that is no part of the call.
    fn enveloped(&self, held: &Part, request: Option<&Part>) -> Option<String> {
        let own = held.value().get("_meta");
        let is_modern = own.is_some_and(|meta| meta.get(META_VERSION).is_some());
        if is_modern == (self.era() == Era::Modern) {
            return None;
        }
        let theirs = request.and_then(|params| params.value().get("_meta"));
        let changed = ENVELOPE.map(|key| {
            let value = theirs.and_then(|meta| meta.get(key)).filter(|_| !is_modern);
            (key, value.map(Value::raw))
        });
        let meta = object_with(own, &changed);
        Some(object_with(Some(held.value()), &[("_meta", Some(&meta))]))
    }

    /// What a call gave, for its task.
    fn made(&self, asked: &Asked, said: Option<Bytes>) -> Made {
        if let Some(next) = asked.withheld.get() {
            return Made { stage: TaskStage::Review, next: Some(next.clone()) };
        }
        let Some(said) = said else {
            return match self.running.run.flight.is_stopped() {
                true => TaskStage::Cancelled.into(),
                false => TaskStage::Error(words::error("the answer of the call broke off")).into(),
            };
        };
        if said.len() > LARGEST {
            let words =
                format!("the call was made; what it gave has {} bytes, and {LARGEST} are kept at most", said.len());
            return TaskStage::Error(words::error(&words)).into();
        }
        let said = aggregate::shown_to(&asked.arrival, &asked.upstream, said);
        match words::outcome(&said) {
            Some(Ok(result)) => self.stage_of(&result).into(),
            Some(Err(error)) => TaskStage::Error(error.raw().to_owned()).into(),
            None => TaskStage::Error(words::error("the answer of the call cannot be read")).into(),
        }
    }

    fn stage_of(&self, result: &Part) -> TaskStage {
        let value = result.value();
        let task = |holder: Option<Value<'_>>| Some(holder?.get("taskId")?.as_str()?.into_owned());
        let kind = value.get("resultType").and_then(Value::as_str);
        match (self.era(), kind.as_deref()) {
            (Era::Modern, Some("input_required")) => match self.questions(value) {
                Some(questions) => TaskStage::Asks(questions),
                None => TaskStage::Error(words::error("the call asks something that cannot be passed on")),
            },
            (Era::Modern, Some("task")) => task(Some(value)).map_or_else(lost, TaskStage::Passed),
            (Era::Legacy, _) if value.get("task").is_some() => {
                task(value.get("task")).map_or_else(lost, TaskStage::Passed)
            }
            _ => TaskStage::Result(result.raw().to_owned()),
        }
    }

    /// The response that an answer ends with; what comes before is kept for whoever listens.
    async fn last_of(&self, answer: Answer, id: &Id) -> Option<Bytes> {
        match answer {
            Answer::Accepted => None,
            Answer::Message(reply) => Some(reply.body),
            Answer::Body(body) => gathered(body).await,
            Answer::Events { mut events, .. } => {
                let mut last = None;
                while let Some(event) = events.next().await {
                    match message_of(&event) {
                        Some(Message::Response(response)) if response.id.as_ref() == Some(id) => last = event.data,
                        Some(message) => {
                            let related = event.data.as_ref().and_then(|data| words::related(data, &self.running.task));
                            let event = related.map_or(event, Event::of);
                            self.running.run.say(event, matches!(message, Message::Request(_)));
                        }
                        None => {}
                    }
                }
                last
            }
        }
    }

    /// What a server asks, under keys that no other question of the task has.
    fn questions(&self, result: Value<'_>) -> Option<TaskQuestions> {
        let mut random = [0; KEY_BYTES];
        self.gateway.keyring.random(&mut random).ok()?;
        let round = token::letters(&random);
        let entries = result.get("inputRequests").into_iter().flat_map(Value::entries);
        let requests: Vec<String> = entries
            .map(|(key, asks)| format!("{}:{}", quoted(&format!("{round}.{}", unescape(key))), asks.raw()))
            .collect();
        let state = result.get("requestState").and_then(Value::as_str).map(std::borrow::Cow::into_owned);
        // One that asks for nothing but to be made again is.
        (!requests.is_empty() || state.is_some()).then(|| TaskQuestions {
            requests: format!("{{{}}}", requests.join(",")),
            answers: Vec::new(),
            state,
        })
    }
}

fn lost() -> TaskStage {
    TaskStage::Error(words::error("its server made a task without an id"))
}

/// The call as it goes on: with the answers, under the keys its server gave.
fn with_answers(params: &Part, questions: &TaskQuestions) -> String {
    let own = |key: &str| quoted(key.split_once('.').map_or(key, |(_, own)| own));
    let answers: Vec<String> = questions.answers.iter().map(|(key, answer)| format!("{}:{answer}", own(key))).collect();
    let answers = format!("{{{}}}", answers.join(","));
    let state = questions.state.as_deref().map(quoted);
    object_with(Some(params.value()), &[("inputResponses", Some(&answers)), ("requestState", state.as_deref())])
}

fn message_of(event: &Event) -> Option<Message> {
    let data = event.data.as_ref()?;
    read_one(data, toolwarden_core::json::Limits { bytes: data.len(), depth: 1024 }).ok()
}
