//! Held calls that their callers follow as tasks (REVIEW-8): the call is answered at once with a task, made as soon as
//! somebody permits it, and what it gave is there for its caller to ask for.
//!
//! Takes a call that waits, and messages about such tasks; gives what clients of either era are told. A task lies in the
//! store beside the approval it waits for: it survives a restart, and every gateway knows it. It is its caller's alone,
//! and whoever may not use the tool any more gets nothing of it.

mod passed;
mod run;
mod words;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::{self, StreamExt};
use tokio::sync::mpsc;
use toolwarden_conversations::Scope;
use toolwarden_conversations::request_state::answers_only;
use toolwarden_conversations::sessions::identity;
use toolwarden_conversations::upstreams::Upstream;
use toolwarden_core::json::{Part, Value, unescape};
use toolwarden_core::{ApprovalState, TaskQuestions, TaskStage};
use toolwarden_mcp::ladder::META_CAPABILITIES;
use toolwarden_mcp::message::Request;
use toolwarden_mcp::sse::Event;
use toolwarden_mcp::{Direction, Era, Form, Id, Message, Method, compose};
use toolwarden_refusals::Refusal;
use toolwarden_review::{Approval, Asking, Desk, HeldTask, StateError};
use toolwarden_steps::answer::Answer;
use toolwarden_steps::arrival::{Arrival, Course};
use toolwarden_steps::audit::Trail;
use toolwarden_steps::decide::may_follow;
use toolwarden_steps::following::{declares_tasks, is_of_gateway};
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::resolve::{Asked, text_member};
use toolwarden_steps::review::{over, rejected};
use toolwarden_steps::{catalog, places};

use self::words::Standing;

/// How long another gateway may take to keep what a call gave that has ended.
const KEEPING: Duration = Duration::from_secs(10);
/// How often whoever waits for a result looks where nothing rings.
const LOOK: Duration = Duration::from_secs(1);
const WAITING: usize = 16;
/// How often somebody may be faster.
const TRIES: usize = 8;
const NOT_ASKED: &str = "`inputResponses` must be answers to open questions of the task alone";
/// Tasks that a list shows at most.
const MOST_LISTED: u32 = 100;

/// Answers a held call with a task; it is made once somebody permits it.
pub(crate) async fn make(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    asking: &Asking,
    held: Refusal,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    let Some(desk) = gateway.desk() else { return Err(held) };
    let task = match desk.make_task(&identity(&asked.arrival.caller), asking).await {
        Ok(Some(task)) => task,
        // As many as may be: the call lies there all the same, and its caller is told how to come back.
        Ok(None) => return Err(held),
        Err(error) => {
            tracing::error!("a held call cannot be followed as a task: {error}");
            return Err(held);
        }
    };
    if let Some(trail) = trail.take() {
        trail.refused(&held).await;
    }
    run::when_answered(gateway, &asked.arrival, desk, &task);
    let made = words::made(&task, asked.arrival.version.era());
    Ok(Answer::message(compose::result(&asked.answer_id(), &made)))
}

/// The answer to a message about a task that the gateway made; none where it is about no such task.
pub(crate) async fn of_gateway(
    gateway: &Arc<Gateway>,
    arrival: &Arrival,
    trail: &mut Option<Trail>,
) -> Result<Option<Answer>, Refusal> {
    match &arrival.message {
        // Apart: room for it in each message would cost all of them.
        Message::Request(request) if request.method.starts_with("tasks/") => {
            Box::pin(answered(gateway, arrival, request, trail)).await
        }
        _ => Ok(None),
    }
}

async fn answered(
    gateway: &Arc<Gateway>,
    arrival: &Arrival,
    request: &Request,
    trail: &mut Option<Trail>,
) -> Result<Option<Answer>, Refusal> {
    let (method, params) = (&*request.method, request.params.as_ref());
    let is_known = Method::find(method, Direction::ToServer, Form::Request, arrival.version).is_some();
    let declared = params.and_then(|params| params.value().get("_meta")?.get(META_CAPABILITIES));
    // The extension requires this of every message about tasks, whoever owns the task.
    if is_known && arrival.version.era() == Era::Modern && !declares_tasks(declared) {
        return Err(Refusal::Tasks);
    }
    // A list is about no task, whatever it names.
    let is_about_one = is_known && method != "tasks/list";
    let task = text_member(params, "taskId").filter(|task| is_about_one && is_of_gateway(task));
    let (Some(task), Some(desk)) = (task, gateway.desk()) else { return Ok(None) };
    // A place for the look alone: whoever waits for a result keeps none from the call that gives it.
    places::enter(gateway, &Arrival { course: Course::default(), ..arrival.clone() }, None).await?;
    let task = desk.task(&identity(&arrival.caller), &task).await.map_err(|error| unreadable(&error))?;
    // Whoever it belongs to then, it may be a server's that names its tasks alike.
    let Some(task) = task else { return Ok(None) };
    let approval =
        desk.approval(&task.approval).await.map_err(|error| unreadable(&error))?.ok_or(Refusal::ForeignTask)?;
    let followed = Followed::new(gateway, arrival, desk, task, approval)?;
    if let Some(trail) = trail.as_mut() {
        trail.names(&followed.upstream, &followed.approval.call.tool, &followed.approval.call.method);
    }
    if method != "tasks/cancel" {
        let tool: Arc<str> = followed.approval.call.tool.as_str().into();
        // What went wrong is in the log; of an unknown tool nothing is told.
        let _ = catalog::know_tool(gateway, arrival, &followed.upstream, &tool).await;
        may_follow(gateway, arrival, &followed.upstream.name, &tool)?;
    }
    if let TaskStage::Passed(theirs) = &followed.task.stage {
        return passed::carry(&followed, theirs, trail).await.map(Some);
    }
    let answer = match method {
        "tasks/get" => followed.got(&request.id, trail).await,
        "tasks/result" => followed.result(&request.id, trail.take()),
        "tasks/update" => followed.updated(&request.id, params).await,
        "tasks/cancel" => followed.cancelled(&request.id).await,
        other => Err(Refusal::Method(other.to_owned())),
    };
    answer.map(Some)
}

/// What a list of tasks of a legacy server shows, with those that wait here.
pub(crate) async fn listed(gateway: &Arc<Gateway>, arrival: &Arrival, answer: Answer) -> Answer {
    let (Message::Request(request), Some(desk)) = (&arrival.message, gateway.desk()) else { return answer };
    let Answer::Message(mut reply) = answer else { return answer };
    let is_first = request.params.as_ref().is_none_or(|params| params.value().get("cursor").is_none());
    let found = desk.tasks_of(&identity(&arrival.caller), MOST_LISTED).await;
    let mut shown = Vec::new();
    for task in found.unwrap_or_default().into_iter().filter(|_| is_first) {
        let Ok(Some(approval)) = desk.approval(&task.approval).await else { continue };
        let Ok(followed) = Followed::new(gateway, arrival, desk, task, approval) else { continue };
        let tool = followed.approval.call.tool.as_str().into();
        if may_follow(gateway, arrival, &followed.upstream.name, &tool).is_ok() {
            shown.push(words::shown(&followed.task, &followed.standing(&mut None).await, Era::Legacy));
        }
    }
    if let Some(body) = words::with_tasks(&reply.body, &request.id, &shown) {
        reply.body = body;
    }
    Answer::Message(reply)
}

fn unreadable(error: &StateError) -> Refusal {
    tracing::error!("a task cannot be looked up: {error}");
    Refusal::Unverified
}

/// A task of the gateway's own, and who asks for it.
pub(crate) struct Followed {
    gateway: Arc<Gateway>,
    arrival: Arrival,
    desk: Arc<Desk>,
    task: HeldTask,
    approval: Approval,
    upstream: Arc<Upstream>,
}

impl Followed {
    /// Refuses a task whose server this door does not lead to.
    fn new(
        gateway: &Arc<Gateway>,
        arrival: &Arrival,
        desk: &Arc<Desk>,
        task: HeldTask,
        approval: Approval,
    ) -> Result<Self, Refusal> {
        let server: Arc<str> = approval.call.server.as_str().into();
        let leads_there = arrival.scope == Scope::All || arrival.scope == Scope::One(server.clone());
        let upstream = gateway.upstreams.get(&server).filter(|upstream| upstream.is_for(&arrival.caller));
        let upstream = upstream.filter(|_| leads_there).ok_or(Refusal::ForeignTask)?;
        let (gateway, arrival, desk) = (gateway.clone(), arrival.clone(), desk.clone());
        Ok(Self { gateway, arrival, desk, task, approval, upstream })
    }

    fn era(&self) -> Era {
        self.arrival.version.era()
    }

    /// How far it is by what is kept of it.
    fn look(&self) -> Look {
        let working = |words: &str| Look::Stands(Standing::Working(words.to_owned()));
        let running = self.gateway.runs.of(&self.task.id);
        match &self.task.stage {
            TaskStage::Result(result) => return Look::Stands(Standing::Result(result.clone())),
            TaskStage::Error(error) => return Look::Stands(Standing::Error(error.clone())),
            TaskStage::Refused(result) => return Look::Stands(Standing::Refused(result.clone())),
            TaskStage::Cancelled => return Look::Stands(Standing::Cancelled),
            TaskStage::Passed(_) => return working("its server works on it"),
            TaskStage::Asks(_) if running.is_some() => return working("the call goes on"),
            TaskStage::Asks(questions) => {
                return words::unanswered(questions).map_or(Look::Due, |open| Look::Stands(Standing::Asks(open)));
            }
            TaskStage::Call | TaskStage::Review => {}
        }
        if let Some(run) = running {
            return if run.asks() { Look::Stands(Standing::AsksElsewhere) } else { working("the call is on its way") };
        }
        match self.approval.state {
            ApprovalState::Held => {
                let what = if self.task.stage == TaskStage::Review { "its result waits" } else { "held" };
                working(&format!("{what} for a person: {}", words::ask_to_approve(&self.approval.id)))
            }
            ApprovalState::Approved => Look::Due,
            ApprovalState::Consumed | ApprovalState::Dispatched => working("the call is on its way"),
            ApprovalState::Succeeded | ApprovalState::Failed if self.is_being_kept() => {
                working("the call has ended, and what it gave is being kept")
            }
            ApprovalState::Succeeded | ApprovalState::Failed => Look::Lost,
            ApprovalState::Cancelled => Look::Stands(Standing::Cancelled),
            ApprovalState::Rejected => Look::Over(rejected(&self.gateway, self.approval.clone())),
            state @ (ApprovalState::Expired | ApprovalState::Unknown) => {
                Look::Over(over(&self.gateway, &self.approval.id, state))
            }
        }
    }

    fn is_being_kept(&self) -> bool {
        let ended = self.gateway.clock.now().duration_since(self.approval.changed_at);
        u64::try_from(ended.as_secs()).is_ok_and(|ended| ended < KEEPING.as_secs())
    }

    /// How far it is, for whoever asks: a call that may be made is made, whoever was to do so before, and what has ended
    /// stays so, whatever becomes of the approval.
    async fn standing(&self, trail: &mut Option<Trail>) -> Standing {
        let (stage, standing) = match self.look() {
            Look::Stands(standing) => return standing,
            Look::Due => {
                run::start(&self.gateway, &self.arrival, &self.desk, &self.task);
                return Standing::Working("approved, and on its way".to_owned());
            }
            Look::Lost => {
                let error = words::lost();
                (TaskStage::Error(error.clone()), Standing::Error(error))
            }
            Look::Over(refusal) => {
                let stage = words::refused(&refusal, self.era());
                if let Some(trail) = trail.take() {
                    trail.refused(&refusal).await;
                }
                let standing = Standing::ended(&stage);
                (stage, standing)
            }
        };
        if let Err(error) = self.desk.move_task(&self.task, stage, None).await {
            tracing::warn!("that a task has ended is not kept: {error}");
        }
        standing
    }

    async fn got(&self, id: &Id, trail: &mut Option<Trail>) -> Result<Answer, Refusal> {
        let standing = self.standing(trail).await;
        let body = compose::result(id, &words::shown(&self.task, &standing, self.era()));
        if self.era() == Era::Modern && standing.gives() {
            self.hand_over(trail, body.len()).await?;
        }
        Ok(Answer::message(body))
    }

    /// Nothing is given that is not recorded.
    async fn hand_over(&self, trail: &mut Option<Trail>, bytes: usize) -> Result<(), Refusal> {
        let recorded = trail.as_mut().ok_or(Refusal::NoRecord)?;
        recorded.hands_over(&self.approval.id, "what its task gave", bytes as u64).await?;
        *trail = None;
        Ok(())
    }

    /// A stream that ends with what the call gave; on it goes what the call says before. Whoever leaves asks again: it is
    /// not kept for them.
    fn result(self, id: &Id, trail: Option<Trail>) -> Result<Answer, Refusal> {
        let head = self.gateway.streams.open(identity(&self.arrival.caller)).ok_or(Refusal::TooManyStreams)?;
        let (told, heard) = mpsc::channel(WAITING);
        let closing = self.gateway.closing.begun();
        let waiting = self.wait(id.clone(), trail, told);
        let waits = async move {
            let _head = head;
            tokio::select! {
                () = waiting => {}
                () = closing => {}
            }
        };
        let waits = stream::once(waits).filter_map(|()| ready(None));
        let hears = stream::unfold(heard, |mut heard| async move { heard.recv().await.map(|event| (event, heard)) });
        Ok(Answer::Events { events: Box::pin(stream::select(waits, hears)), resumable: true })
    }

    async fn wait(mut self, id: Id, mut trail: Option<Trail>, told: mpsc::Sender<Event>) {
        let session = self.arrival.session.as_ref().map(|session| session.mark.clone());
        let body = loop {
            if let TaskStage::Passed(theirs) = self.task.stage.clone() {
                return self.pass_on(&id, &theirs, trail, &told).await;
            }
            let standing = self.standing(&mut trail).await;
            match &standing {
                Standing::Working(_) | Standing::Asks(_) | Standing::AsksElsewhere => {}
                Standing::Cancelled => break words::cancelled(&id),
                Standing::Refused(_) => break words::given(&id, &self.task, &standing),
                Standing::Result(_) | Standing::Error(_) => {
                    let body = words::given(&id, &self.task, &standing);
                    break match self.hand_over(&mut trail, body.len()).await {
                        Ok(()) => body,
                        Err(_) => words::unrecorded(&id),
                    };
                }
            }
            match self.gateway.runs.of(&self.task.id) {
                Some(run) => {
                    for event in run.heard(session.as_deref()) {
                        drop(told.send(event).await);
                    }
                    run.news(LOOK).await;
                }
                None => tokio::time::sleep(LOOK).await,
            }
            if let Err(refusal) = self.look_again().await {
                if let Some(trail) = trail.take() {
                    trail.refused(&refusal).await;
                }
                break words::refusal(&id, &refusal, self.era());
            }
        };
        drop(told.send(Event::of(body)).await);
    }

    /// Its server made a task of it meanwhile: what that gives is what is waited for.
    async fn pass_on(&self, id: &Id, theirs: &str, mut trail: Option<Trail>, told: &mpsc::Sender<Event>) {
        match passed::carry(self, theirs, &mut trail).await {
            Ok(Answer::Events { mut events, .. }) => {
                while let Some(event) = events.next().await {
                    drop(told.send(event).await);
                }
            }
            Ok(Answer::Message(reply)) => drop(told.send(Event::of(reply.body)).await),
            Ok(Answer::Body(_) | Answer::Accepted) => {}
            Err(refusal) => {
                if let Some(trail) = trail.take() {
                    trail.refused(&refusal).await;
                }
                drop(told.send(Event::of(words::refusal(id, &refusal, self.era()))).await);
            }
        }
    }

    /// How far it is by now, for somebody who may still know.
    async fn look_again(&mut self) -> Result<(), Refusal> {
        let (caller, tool) = (identity(&self.arrival.caller), self.approval.call.tool.as_str().into());
        if self.gateway.identities.is_lost(&self.arrival.caller, self.gateway.clock.now()) {
            return Err(Refusal::Unauthorized("the credential counts no more"));
        }
        may_follow(&self.gateway, &self.arrival, &self.upstream.name, &tool)?;
        let task = self.desk.task(&caller, &self.task.id).await.map_err(|error| unreadable(&error))?;
        self.task = task.ok_or(Refusal::ForeignTask)?;
        let approval = self.desk.approval(&self.task.approval).await.map_err(|error| unreadable(&error))?;
        self.approval = approval.ok_or(Refusal::ForeignTask)?;
        Ok(())
    }

    /// Keeps what the client said to questions of the server; with the last answer the call goes on.
    async fn updated(mut self, id: &Id, params: Option<&Part>) -> Result<Answer, Refusal> {
        let given = params.and_then(|params| params.value().get("inputResponses"));
        for _ in 0..TRIES {
            let acknowledged = Answer::message(compose::result(id, words::ACKNOWLEDGED));
            let (asked, given) = match (&self.task.stage, given) {
                (_, None) => return Ok(acknowledged),
                (TaskStage::Asks(asked), Some(given)) if is_asked(asked, given) => (asked, given),
                (_, Some(_)) => return Err(Refusal::Params(NOT_ASKED.to_owned())),
            };
            let Some(questions) = with_answers(asked, Some(given)) else { return Ok(acknowledged) };
            let is_whole = words::unanswered(&questions).is_none();
            if self
                .desk
                .move_task(&self.task, TaskStage::Asks(questions), None)
                .await
                .map_err(|error| unreadable(&error))?
            {
                if is_whole {
                    run::start(&self.gateway, &self.arrival, &self.desk, &self.task);
                }
                return Ok(acknowledged);
            }
            // Somebody answered something else meanwhile.
            self.look_again().await?;
        }
        Err(Refusal::Params("the answers cannot be kept: too much of earlier tasks is".to_owned()))
    }

    /// Stops it, as far as that can be: what is on its way is told, what waits is taken away. It stays stopped, whatever a
    /// call that left gives.
    async fn cancelled(mut self, id: &Id) -> Result<Answer, Refusal> {
        for _ in 0..TRIES {
            if self.has_ended() {
                return match self.era() {
                    Era::Modern => Ok(Answer::message(compose::result(id, words::ACKNOWLEDGED))),
                    Era::Legacy => Err(Refusal::Params("the task has ended".to_owned())),
                };
            }
            if self.desk.move_task(&self.task, TaskStage::Cancelled, None).await.map_err(|error| unreadable(&error))? {
                if let Some(run) = self.gateway.runs.of(&self.task.id) {
                    run.flight.stop();
                }
                self.desk.cancel(&self.approval.id).await;
                let said = words::shown(&self.task, &Standing::Cancelled, Era::Legacy);
                let said = if self.era() == Era::Modern { words::ACKNOWLEDGED } else { &said };
                return Ok(Answer::message(compose::result(id, said)));
            }
            self.look_again().await?;
        }
        Err(Refusal::Params("the task moves on and on; try again".to_owned()))
    }

    fn has_ended(&self) -> bool {
        match self.look() {
            Look::Lost | Look::Over(_) => true,
            Look::Due => false,
            Look::Stands(standing) => {
                standing.gives() || matches!(standing, Standing::Refused(_) | Standing::Cancelled)
            }
        }
    }
}

/// Whether all of the answers are to what was asked. One that was given before counts for nothing, so that whoever is not
/// sure that it arrived can say it again.
fn is_asked(asked: &TaskQuestions, given: Value<'_>) -> bool {
    let requests = Part::composed(asked.requests.clone());
    requests.is_ok_and(|requests| {
        let questions: Vec<_> = requests.value().entries().map(|(key, _)| unescape(key).into_owned()).collect();
        answers_only(given, &questions)
    })
}

/// What of the answers is to questions that are open; none where nothing is.
fn with_answers(asked: &TaskQuestions, given: Option<Value<'_>>) -> Option<TaskQuestions> {
    let requests = Part::composed(asked.requests.clone()).ok()?;
    let mut answers = asked.answers.clone();
    for (key, answer) in given.into_iter().flat_map(Value::entries) {
        let key = unescape(key).into_owned();
        if requests.value().get(&key).is_some() && answers.iter().all(|(answered, _)| *answered != key) {
            answers.push((key, answer.raw().to_owned()));
        }
    }
    (answers.len() > asked.answers.len()).then(|| TaskQuestions { answers, ..asked.clone() })
}

/// How far a task is.
enum Look {
    Stands(Standing),
    /// Its call is to be made, or to go on.
    Due,
    /// Nobody kept what its call gave.
    Lost,
    /// Its call is not made, or nobody knows how it ended.
    Over(Refusal),
}
