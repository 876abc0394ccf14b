//! What a message asks for: its row in the method table, its server, the call it makes.
//!
//! Takes an arrival; gives the question for the judge. Refuses methods no table lists, params that
//! lack what the method needs, and servers this door does not lead to.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use toolwarden_conversations::bounds::CallBounds;
use toolwarden_conversations::flight::Flight;
use toolwarden_conversations::questions::Whom;
use toolwarden_conversations::request_state::{Bound, Opened, is_foreign_to_era};
use toolwarden_conversations::sessions::{AnswerTo, ClientSession, Question};
use toolwarden_conversations::tasks::Maker;
use toolwarden_conversations::upstreams::{Link, Upstream};
use toolwarden_conversations::whole::DEEPEST;
use toolwarden_core::json::{Kind, Part, Value};
use toolwarden_core::{Call, Caller, Operation, Weakness, weak};
use toolwarden_mcp::fitting_meta::Answered;
use toolwarden_mcp::ladder::META_CAPABILITIES;
use toolwarden_mcp::{Direction, Era, Form, Id, Message, Method, Notification, Trace, Treatment};
use toolwarden_policy::{Message as Admitted, PolicySet, Query};
use toolwarden_review::Asking;

use crate::arrival::Arrival;
use crate::following::is_of_gateway;
use crate::gateway::Gateway;
use crate::review::Under;
use crate::roots;
use toolwarden_refusals::Refusal;

pub const FOREIGN_CANCEL: &str = "a cancellation of no request of its own";
pub const FOREIGN_ANSWER: &str = "an answer to nothing that was asked of it";

const UNKNOWN_MEMBERS: &str = "`inputResponses` and `requestState` do not exist in this protocol version; make the call \
                              without them";

/// A message with everything known that the judge needs.
#[derive(Debug)]
pub struct Asked {
    pub arrival: Arrival,
    pub id: Option<Id>,
    pub method: Arc<str>,
    pub what: What,
    pub upstream: Arc<Upstream>,
    pub query: Query,
    /// The exchange it goes on with, where it brings back a state.
    pub state: Option<Opened>,
    /// What its answer is held to.
    pub bounds: CallBounds,
    /// The policy it was judged by: every later step of the call uses the same.
    pub judged_by: OnceLock<Arc<PolicySet>>,
    /// The policy it was judged by once more when somebody answered a hold: from then on that one is used.
    pub settled_by: OnceLock<Arc<PolicySet>>,
    /// How many changes of the server were heard of before it left (GATE-12).
    pub after: OnceLock<u64>,
    /// The approval it is made under, where it was held.
    pub under: OnceLock<Arc<Under>>,
    /// Its person was asked in the client whether it may be made, and did not say: they are not asked there again.
    pub was_asked: bool,
    /// It is made for a task: nobody waits with it, and what comes up is said by the task.
    pub is_for_task: bool,
    /// What its result waits for, where a person has to look at that.
    pub withheld: OnceLock<Asking>,
}

/// What kind of message it is.
#[derive(Debug)]
pub enum What {
    /// Judged whole, recorded before it leaves.
    Call,
    Opening,
    List,
    Watch,
    /// Of a task, and the tool whose call made it; none for a list of tasks.
    Task(Option<Arc<str>>),
    /// Passes with its server.
    Plain,
    /// A method the config added.
    Configured,
    /// The cancellation of the client's own request.
    Cancel(Arc<Flight>),
    /// An answer to a question its server asked.
    Answer(Question, Result<Part, Part>),
}

/// What became of an arrival.
#[derive(Debug)]
pub enum Resolved {
    Asked(Arc<Asked>),
    /// Nothing to do, and nothing to say: a notification nobody lists.
    Dropped(&'static str),
    /// The same, and somebody should know: it speaks of an id that is not its caller's own.
    Foreign(&'static str),
}

/// Longest address of a resource that is watched, and most that one message asks for (WORK-1).
const LONGEST_URI: usize = 8 * 1024;
const MOST_WATCHED: usize = 1_000;

/// Refuses a message that asks to watch too much: each address is judged, kept and told to the server.
pub fn refuse_oversized(message: &Message) -> Result<(), Refusal> {
    let Message::Request(request) = message else { return Ok(()) };
    let Some(params) = &request.params else { return Ok(()) };
    let is_long = |uri: Value<'_>| uri.raw().len() > LONGEST_URI;
    let too_long = || Refusal::Params(format!("an address that is watched has at most {LONGEST_URI} bytes"));
    match &*request.method {
        "resources/subscribe" if params.value().get("uri").is_some_and(is_long) => Err(too_long()),
        "subscriptions/listen" => {
            let filter = params.value().get("notifications");
            for key in ["resourceSubscriptions", "taskIds"] {
                let Some(wanted) = filter.and_then(|filter| filter.get(key)) else { continue };
                if wanted.items().nth(MOST_WATCHED).is_some() {
                    return Err(Refusal::Params(format!("`{key}` has at most {MOST_WATCHED} entries")));
                }
                if wanted.items().any(is_long) {
                    return Err(too_long());
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

pub fn resolve(gateway: &Gateway, arrival: Arrival, server: &Arc<str>) -> Result<Resolved, Refusal> {
    let Some(upstream) = gateway.upstreams.get(server).filter(|upstream| upstream.is_for(&arrival.caller)) else {
        return Err(Refusal::UnknownServer(server.to_string()));
    };
    let (id, method, params) = match &arrival.message {
        Message::Request(request) => (Some(request.id.clone()), request.method.clone(), request.params.clone()),
        Message::Notification(notification) => (None, notification.method.clone(), notification.params.clone()),
        Message::Response(_) => return answer(gateway, arrival, upstream),
    };
    let form = if id.is_some() { Form::Request } else { Form::Notification };
    let row = Method::find(&method, Direction::ToServer, form, arrival.version);
    let what = match row.map(|row| row.treatment) {
        None if gateway.settings.methods.iter().any(|listed| **listed == *method) => What::Configured,
        None if weak::is(Weakness::Methods) => What::Configured,
        None if id.is_none() => return Ok(Resolved::Dropped("a notification of an unlisted kind")),
        None => return Err(Refusal::Method(method.to_string())),
        Some(Treatment::Opening) => What::Opening,
        Some(Treatment::Call) => What::Call,
        Some(Treatment::List) => What::List,
        Some(Treatment::Watch) => What::Watch,
        Some(Treatment::Task) if &*method == "tasks/list" => What::Task(None),
        Some(Treatment::Task) => What::Task(Some(own_task(&upstream, &arrival.caller, &method, params.as_ref())?)),
        Some(Treatment::Plain) => What::Plain,
        // Over modern HTTP a request is given up by closing its stream; a pipe is a session.
        Some(Treatment::Cancel) if arrival.session.is_none() => {
            return Ok(Resolved::Dropped("a cancellation outside of any session"));
        }
        Some(Treatment::Cancel) => match own_flight(&arrival, params.as_ref(), &upstream) {
            Some(flight) => What::Cancel(flight),
            None if has_ended(&arrival, params.as_ref()) => {
                return Ok(Resolved::Dropped("a cancellation of what has ended"));
            }
            None => return Ok(Resolved::Foreign(FOREIGN_CANCEL)),
        },
        // These come from servers.
        Some(Treatment::Question | Treatment::News) => return Err(Refusal::Method(method.to_string())),
    };
    if &*method == "subscriptions/listen" && listens_to_foreign_tasks(&upstream, &arrival.caller, params.as_ref()) {
        return Err(Refusal::ForeignTask);
    }
    let state = match what {
        What::Call if arrival.version.era() == Era::Modern => {
            let (caller, definition) = (&arrival.caller, upstream.number);
            let bound = Bound { caller, server, definition, method: &method, params: params.as_ref(), approval: None };
            gateway.states.open(&*gateway.keyring, bound)?
        }
        What::Call if is_foreign_to_era(params.as_ref()) => return Err(Refusal::Params(UNKNOWN_MEMBERS.to_owned())),
        _ => None,
    };
    let call = call(server, &method, params)?;
    let bounds = match what {
        What::Call => upstream.bounds().narrowed(&gateway.limiter.of_tool(server, &call.tool).unwrap_or_default()),
        // What a server lists nests as it must: the limit is on calls.
        _ => CallBounds { depth: DEEPEST, ..upstream.bounds() },
    };
    let query = query(gateway, &arrival.caller, call);
    let (judged_by, after, under) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
    if let Some(approval) = state.as_ref().and_then(|state| state.approval.as_deref()) {
        under.get_or_init(|| Arc::new(Under::used(approval)));
    }
    let asked = Asked {
        arrival,
        id,
        method,
        what,
        upstream,
        query,
        state,
        bounds,
        judged_by,
        settled_by: OnceLock::new(),
        after,
        under,
        was_asked: false,
        is_for_task: false,
        withheld: OnceLock::new(),
    };
    Ok(Resolved::Asked(Arc::new(asked)))
}

/// GATE-19: only one's own tasks can be spoken of. Gives the tool whose call made it.
fn own_task(upstream: &Upstream, caller: &Caller, method: &str, params: Option<&Part>) -> Result<Arc<str>, Refusal> {
    let task = text_member(params, "taskId");
    let task = task.ok_or_else(|| Refusal::Params(format!("`{method}` needs `taskId`, a string")))?;
    upstream.tasks.tool_of(&task, caller).ok_or(Refusal::ForeignTask)
}

fn listens_to_foreign_tasks(upstream: &Upstream, caller: &Caller, params: Option<&Part>) -> bool {
    let wanted = params.and_then(|params| params.value().get("notifications")?.get("taskIds"));
    // Those of the gateway itself tell nothing of themselves, so it does not matter whose they are.
    let is_own =
        |task: Value<'_>| task.as_str().is_some_and(|task| is_of_gateway(&task) || upstream.tasks.is_of(&task, caller));
    wanted.is_some_and(|tasks| tasks.kind() != Kind::Array || !tasks.items().all(is_own))
}

/// The call a message makes. Messages that are no calls are judged by their server, as reading is.
fn call(server: &Arc<str>, method: &str, params: Option<Part>) -> Result<Call, Refusal> {
    let missing = |what: &str| Refusal::Params(format!("`{method}` needs {what}"));
    match method {
        "tools/call" => {
            let params = params.ok_or_else(|| missing("`name`"))?;
            let arguments = params.value().get("arguments");
            if arguments.is_some_and(|arguments| arguments.kind() != Kind::Object) {
                return Err(missing("`arguments` to be an object"));
            }
            Call::received(server.clone(), params).ok_or_else(|| missing("`name`, a string"))
        }
        "resources/read" => {
            text_member(params.as_ref(), "uri").ok_or_else(|| missing("`uri`, a string"))?;
            Ok(Call::asked(server.clone(), Operation::ReadResource, params))
        }
        "prompts/get" => {
            text_member(params.as_ref(), "name").ok_or_else(|| missing("`name`, a string"))?;
            Ok(Call::asked(server.clone(), Operation::GetPrompt, params))
        }
        "completion/complete" => Ok(Call::asked(server.clone(), Operation::Complete, params)),
        _ => Ok(Call::asked(server.clone(), Operation::ReadResource, params)),
    }
}

/// Two texts may be written differently and be the same.
fn is_same(one: Value<'_>, other: Value<'_>) -> bool {
    one.raw() == other.raw() || one.as_str().zip(other.as_str()).is_some_and(|(one, other)| one == other)
}

pub fn text_member(params: Option<&Part>, key: &str) -> Option<String> {
    params?.value().get(key)?.as_str().map(Cow::into_owned)
}

pub fn query(gateway: &Gateway, caller: &Arc<Caller>, call: Call) -> Query {
    gateway.transport.query(gateway.identities.as_of_now(caller), call, gateway.clock.now())
}

/// The request a cancellation speaks of.
pub fn cancelled_id(params: Option<&Part>) -> Option<Id> {
    Id::from_raw(params?.value().get("requestId")?.raw())
}

/// A cancellation that crossed the answer is nothing to record.
pub fn has_ended(arrival: &Arrival, params: Option<&Part>) -> bool {
    arrival.session.as_ref().zip(cancelled_id(params)).is_some_and(|(session, id)| session.has_ended(&id))
}

/// GATE-19: only what this session itself has on its way can be cancelled.
fn own_flight(arrival: &Arrival, params: Option<&Part>, upstream: &Upstream) -> Option<Arc<Flight>> {
    let id = cancelled_id(params)?;
    let session = arrival.session.as_ref()?;
    let anybodys = |link| {
        let flight = Arc::<Flight>::default();
        flight.waits_at(&upstream.name, &link, id.clone());
        flight
    };
    session.flight(&id).or_else(|| unchecked(session, upstream).map(anybodys))
}

/// Where a weak gateway passes ids on that it never gave out.
fn unchecked(session: &ClientSession, upstream: &Upstream) -> Option<Link> {
    weak::is(Weakness::Owners).then(|| session.link(upstream)).flatten()
}

/// GATE-19: an answer counts only from the session that was asked, and once.
fn answer(gateway: &Gateway, arrival: Arrival, upstream: Arc<Upstream>) -> Result<Resolved, Refusal> {
    let Message::Response(response) = &arrival.message else { return Ok(Resolved::Dropped("no response")) };
    let asked = |session: &ClientSession| {
        let id = response.id.as_ref()?;
        let made_up = |link| Question {
            server: upstream.name.clone(),
            method: "elicitation/create".into(),
            to: AnswerTo::Server(link, id.clone()),
        };
        session.answered(id).or_else(|| unchecked(session, &upstream).map(made_up))
    };
    let Some(question) = arrival.session.as_deref().and_then(asked) else {
        return Ok(Resolved::Foreign(FOREIGN_ANSWER));
    };
    let outcome = match &response.outcome {
        Ok(result) => match roots::judged(gateway, &arrival.caller, &question.method, result) {
            Some(result) => Ok(result),
            None => return Ok(Resolved::Dropped("an answer that cannot be read")),
        },
        Err(error) => Err(error.clone()),
    };
    let call = Call::asked(question.server.clone(), Operation::ReadResource, None);
    let query = query(gateway, &arrival.caller, call);
    let upstream = gateway.upstreams.get(&question.server).unwrap_or(upstream);
    let (what, bounds) = (What::Answer(question, outcome), upstream.bounds());
    let method = "".into();
    let judged_by = OnceLock::new();
    Ok(Resolved::Asked(Arc::new(Asked {
        arrival,
        id: None,
        method,
        what,
        upstream,
        query,
        state: None,
        bounds,
        judged_by,
        settled_by: OnceLock::new(),
        after: OnceLock::new(),
        under: OnceLock::new(),
        was_asked: false,
        is_for_task: false,
        withheld: OnceLock::new(),
    })))
}

impl Asked {
    /// Whether somebody answered for the call: then nothing travels with it that they were not shown.
    pub fn answered(&self) -> Answered {
        if self.under.get().is_some() { Answered::Yes } else { Answered::No }
    }

    /// Its place in a trace, as the server is told it.
    pub fn trace(&self) -> Option<Cow<'_, Trace>> {
        let trace = self.arrival.course.trace.as_deref()?;
        Some(match self.answered() {
            Answered::No => Cow::Borrowed(trace),
            Answered::Yes => Cow::Owned(trace.without_state()),
        })
    }

    /// The id its answer carries; where it has none, nobody reads the answer.
    pub fn answer_id(&self) -> Id {
        self.id.clone().unwrap_or_else(|| Id::number(0))
    }

    /// Who will own the task, if the answer to this message may make one. A legacy server makes one when
    /// asked to; a modern one when it likes.
    pub fn task_maker(&self) -> Option<Maker> {
        let is_modern = self.arrival.version.era() == Era::Modern;
        let asks = || self.query.call.params.as_ref().is_some_and(|params| params.value().get("task").is_some());
        (matches!(self.what, What::Call) && (is_modern || asks()))
            .then(|| Maker::new(&self.arrival.caller, self.query.call.tool.clone()))
    }

    /// What a state of this exchange is bound to.
    pub fn bound(&self) -> Bound<'_> {
        Bound {
            caller: &self.arrival.caller,
            server: &self.upstream.name,
            definition: self.upstream.number,
            method: &self.method,
            params: self.query.call.params.as_ref(),
            approval: self.under.get().map(|under| under.id.as_str()),
        }
    }

    /// The same call once more.
    pub fn again(&self) -> Self {
        Self {
            arrival: self.arrival.clone(),
            id: self.id.clone(),
            method: self.method.clone(),
            what: What::Call,
            upstream: self.upstream.clone(),
            query: self.query.clone(),
            state: self.state.clone(),
            bounds: self.bounds,
            judged_by: OnceLock::new(),
            settled_by: OnceLock::new(),
            after: OnceLock::new(),
            under: self.under.get().map_or_else(OnceLock::new, |under| OnceLock::from(under.clone())),
            was_asked: self.was_asked,
            is_for_task: self.is_for_task,
            withheld: OnceLock::new(),
        }
    }

    /// The policy it was judged by; before that, the one in force.
    pub fn policy(&self, gateway: &Gateway) -> Arc<PolicySet> {
        self.settled_by.get().or(self.judged_by.get()).cloned().unwrap_or_else(|| gateway.live.snapshot())
    }

    /// What the client said it can be asked: on this request, or when it opened its session.
    pub fn declared(&self) -> Option<Value<'_>> {
        match self.arrival.version.era() {
            Era::Modern => self.query.call.params.as_ref()?.value().get("_meta")?.get(META_CAPABILITIES),
            Era::Legacy => {
                let agreed = self.arrival.session.as_ref()?.agreed()?;
                agreed.capabilities.as_ref().map(Part::value)
            }
        }
    }

    /// Whether news on this request's own stream may be its: progress must be by its own token.
    pub fn may_hear_progress(&self, news: &Notification) -> bool {
        if &*news.method != "notifications/progress" || weak::is(Weakness::Routes) {
            return true;
        }
        let own = self.query.call.params.as_ref().and_then(|params| params.value().get("_meta")?.get("progressToken"));
        let told = news.params.as_ref().and_then(|params| params.value().get("progressToken"));
        own.zip(told).is_some_and(|(own, told)| is_same(own, told))
    }

    pub fn whom(&self) -> Whom<'_> {
        Whom { caller: &self.arrival.caller, declared: self.declared() }
    }

    /// The form in which the judge sees what is no call.
    pub fn admitted(&self) -> Admitted {
        let method = self.method.to_string();
        match &self.what {
            What::Answer(_, Ok(result)) => Admitted::Result(result.clone()),
            What::Answer(_, Err(error)) => Admitted::Error(error.clone()),
            What::Configured => Admitted::Configured { method },
            _ => Admitted::Listed { method },
        }
    }
}
