//! The judge's word. Calls are judged whole; other messages as far as they reach a server.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::time::sleep;
use toolwarden_conversations::Failure;
use toolwarden_conversations::sessions::identity;
use toolwarden_core::json::Part;
use toolwarden_core::{Call, CallKind, Caller, Operation, Outbound, Reason};
use toolwarden_mcp::compose::quoted;
use toolwarden_pins::Kind;
use toolwarden_policy::{
    Definition, Explanation, Message, Pending, Permit, PolicySet, Query, Verdict, admit, briefly, decide as judge,
    housekeeping, is_visible,
};
use toolwarden_sources::lookup;

use crate::arrival::Arrival;
use crate::flow::{self, Seen};
use crate::gateway::Gateway;
use crate::resolve::{Asked, What, query, text_member};
use crate::{places, review};
use toolwarden_refusals::{Denial, Refusal};

const UNSUBSCRIBE: &str = "resources/unsubscribe";
/// Arguments of more bytes are judged away from the threads that serve: they may name many paths, which are looked up.
const LARGE: usize = 8 * 1024;

/// What may leave, and why.
#[derive(Debug)]
pub enum Judged {
    Call(Permit),
    Message(Outbound),
}

impl Judged {
    pub fn into_outbound(self) -> Outbound {
        match self {
            Self::Call(permit) => permit.into_call(),
            Self::Message(outbound) => outbound,
        }
    }
}

/// The judge's word on a message that is not refused.
#[derive(Debug)]
pub enum Decided {
    May(Judged),
    /// A call that waits for whoever may pay.
    Held(Box<Pending>),
}

pub async fn decide(gateway: &Gateway, asked: &Asked) -> Result<Decided, Refusal> {
    let policy = asked.judged_by.get_or_init(|| gateway.live.snapshot());
    if let What::Task(Some(tool)) = &asked.what
        && &*asked.method != "tasks/cancel"
    {
        judge_task(policy, gateway, asked, tool)?;
    }
    let asked_now = as_of_now(gateway, asked);
    if !matches!(asked.what, What::Call) {
        let admitted = admit(policy, &asked_now, asked.admitted());
        let admitted = admitted.or_else(|why| let_go(asked).ok_or_else(|| refuse_message(&asked.upstream.name, *why)));
        return admitted.map(|outbound| Decided::May(Judged::Message(outbound)));
    }
    let (seen, is_unknown) = match flow::seen(gateway, policy, &asked_now, asked).await {
        Seen::Known(seen) => (seen, false),
        Seen::Unknown(every) => (every, true),
    };
    let definition = standing(gateway, asked);
    let query = if definition == Definition::Accepted && seen.is_empty() {
        asked_now
    } else {
        Cow::Owned(asked_now.into_owned().with_definition(definition).with_seen(seen))
    };
    match verdict_on(gateway, policy, &query).await? {
        Verdict::Deny(why) => Err(refuse(policy, &query, *why)),
        // What is denied whatever was met is denied; everything else waits until somebody knows.
        Verdict::Allow(_) | Verdict::Hold(_) if is_unknown => Err(flow::unknown(policy)),
        Verdict::Allow(permit) => Ok(Decided::May(Judged::Call(permit))),
        Verdict::Hold(pending) => match asked.under.get().filter(|under| under.is_used()) {
            Some(under) => {
                let permit = review::goes_on(gateway, asked, *pending, under).await;
                permit.map(|permit| Decided::May(Judged::Call(permit)))
            }
            None => Ok(Decided::Held(pending)),
        },
    }
}

/// The policy's answer. A large call is decided away from the threads that serve, and so is a small one that its tool's
/// schema makes much of: it can take a while, and others must not wait for that (WORK-1).
async fn verdict_on(gateway: &Gateway, policy: &Arc<PolicySet>, query: &Query) -> Result<Verdict, Refusal> {
    if !is_large(query)
        && let Some(verdict) = briefly(|| with_links_followed(policy, query))
    {
        return Ok(verdict);
    }
    let caller = query.caller.clone();
    let (policy, query) = (policy.clone(), query.clone());
    elsewhere(gateway, &caller, move || with_links_followed(&policy, &query)).await
}

pub(crate) fn is_large(query: &Query) -> bool {
    query.call.arguments.as_ref().is_some_and(|arguments| arguments.raw().len() > LARGE)
}

/// Decides away from the threads that serve, a few at a time: what is looked at takes far more memory than its bytes.
pub(crate) async fn elsewhere<T: Send + 'static>(
    gateway: &Gateway,
    caller: &Caller,
    decide: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let turn = gateway.large.turn(|| identity(caller), sleep(gateway.settings.turn_time)).await;
    let turn = turn.map_err(|over| places::refuse(gateway, &over))?;
    let decided = tokio::task::spawn_blocking(move || {
        let verdict = decide();
        // Also where nobody waits for the verdict any more, the next one begins only now.
        drop(turn);
        verdict
    });
    // It ended without a word: the gateway is being stopped.
    decided.await.map_err(|_| Refusal::Upstream(Failure::Withdrawn))
}

/// Decides with what the file system says of the paths a call names at this moment (SELF-1), as `explain` does.
fn with_links_followed(policy: &PolicySet, query: &Query) -> Verdict {
    let files = lookup::files(policy, query);
    // Other facts than links matter to command lines alone.
    let leads = files.links().next().is_some() || files.unresolved().next().is_some() || files.are_too_many();
    let matters = leads || matches!(query.call.kind, CallKind::Shell { .. });
    if matters { judge(policy, &query.clone().with_files(files)) } else { judge(policy, query) }
}

/// The question as it stands now: learning what a server lists takes a while, in which a credential can end.
fn as_of_now<'a>(gateway: &Gateway, asked: &'a Asked) -> Cow<'a, Query> {
    let caller = gateway.identities.as_of_now(&who(asked));
    if Arc::ptr_eq(&caller, &asked.query.caller) && caller.token.expires_at.is_none() {
        return Cow::Borrowed(&asked.query);
    }
    Cow::Owned(asked.query.clone().asked_by(caller).at(gateway.clock.now()))
}

/// Who asks, in the mode their session is in by now: what waits is not decided in a mode that was left (MODE-8).
fn who(asked: &Asked) -> Arc<Caller> {
    let session = asked.arrival.session.as_ref().map(|session| session.caller());
    session.filter(|caller| caller.mode != asked.query.caller.mode).unwrap_or_else(|| asked.query.caller.clone())
}

/// How the definition of what is called stands (GATE-12).
fn standing(gateway: &Gateway, asked: &Asked) -> Definition {
    let call = &asked.query.call;
    let prompt = match call.requested_operation() {
        Operation::GetPrompt => text_member(call.params.as_ref(), "name"),
        _ => None,
    };
    let called = match (call.requested_operation(), &prompt) {
        (Operation::CallTool, _) => Some((Kind::Tool, &*call.tool)),
        (_, Some(prompt)) => Some((Kind::Prompt, prompt.as_str())),
        _ => None,
    };
    gateway.pins.standing(&asked.upstream.name, called, &asked.arrival.caller)
}

/// Whoever may not watch a resource any more may still let go of it. Nothing else is said to the server.
fn let_go(asked: &Asked) -> Option<Outbound> {
    let server = &asked.upstream.name;
    let uri = text_member(asked.query.call.params.as_ref(), "uri").filter(|_| &*asked.method == UNSUBSCRIBE)?;
    let is_watched = asked.arrival.session.as_ref()?.watched(server).contains(&uri);
    let params = Part::composed(format!("{{\"uri\":{}}}", quoted(&uri))).ok().filter(|_| is_watched)?;
    housekeeping(server.clone(), UNSUBSCRIBE, Some(params)).ok()
}

/// Whether a message that was admitted would be admitted now. What would only be held goes on.
pub fn still_permitted(gateway: &Gateway, asked: &Asked) -> Result<(), Refusal> {
    let policy = gateway.live.policy();
    let now = query(gateway, &who(asked), asked.query.call.clone());
    match &asked.what {
        What::Cancel(_) | What::Answer(..) => Ok(()),
        What::Task(_) if &*asked.method == "tasks/cancel" => Ok(()),
        // It was permitted for a server that is another one by now.
        _ if asked.upstream.is_over() => Err(Refusal::Upstream(Failure::Withdrawn)),
        What::Task(Some(tool)) => judge_task(&policy, gateway, asked, tool),
        What::Call => match judge(&policy, &now) {
            Verdict::Allow(_) | Verdict::Hold(_) => Ok(()),
            Verdict::Deny(why) => Err(refuse(&policy, &now, *why)),
        },
        _ => match admit(&policy, &now, asked.admitted()) {
            Ok(_) => Ok(()),
            Err(why) => Err(refuse_message(&asked.upstream.name, *why)),
        },
    }
}

/// What a task gives away is what its tool gave away: whoever may not use the tool any more gets nothing
/// of it. Stopping a task is always permitted.
fn judge_task(policy: &PolicySet, gateway: &Gateway, asked: &Asked, tool: &Arc<str>) -> Result<(), Refusal> {
    judge_use(policy, gateway, &who(asked), (&asked.upstream.name, tool))
}

/// The same for the task of a held call.
pub fn may_follow(gateway: &Gateway, arrival: &Arrival, server: &Arc<str>, tool: &Arc<str>) -> Result<(), Refusal> {
    judge_use(&gateway.live.policy(), gateway, &arrival.speaker(), (server, tool))
}

fn judge_use(
    policy: &PolicySet,
    gateway: &Gateway,
    caller: &Arc<Caller>,
    (server, tool): (&Arc<str>, &Arc<str>),
) -> Result<(), Refusal> {
    let query = query(gateway, caller, Call::mcp(server.clone(), tool.clone(), None));
    if is_visible(policy, &query) {
        return Ok(());
    }
    Err(match judge(policy, &query) {
        Verdict::Deny(why) => refuse(policy, &query, *why),
        Verdict::Hold(pending) => review::held(gateway.settings.hold, &pending, None),
        Verdict::Allow(_) => Refusal::ForeignTask,
    })
}

/// Whether a caller may reach a server at all. Nothing is asked of a server, and none is started, for
/// somebody who may not.
pub fn may_reach(gateway: &Gateway, caller: &Arc<Caller>, server: &Arc<str>) -> bool {
    greeting(gateway, caller, server).is_ok()
}

/// The same before a call, with the refusal that fits it.
pub fn reach(gateway: &Gateway, caller: &Arc<Caller>, server: &Arc<str>, tool: &str) -> Result<(), Refusal> {
    greeting(gateway, caller, server).map_err(|why| {
        if may_know(&gateway.live.policy(), caller) {
            refuse_message(server, *why)
        } else {
            Refusal::Hidden(tool.to_owned(), why)
        }
    })
}

fn greeting(gateway: &Gateway, caller: &Arc<Caller>, server: &Arc<str>) -> Result<(), Box<Explanation>> {
    let query = query(gateway, caller, Call::asked(server.clone(), Operation::ReadResource, None));
    let hello = Message::Listed { method: "ping".to_owned() };
    admit(&gateway.live.policy(), &query, hello).map(drop)
}

/// Hidden and unknown answer alike, except to those who may know why (MODE-5).
pub(crate) fn refuse(policy: &PolicySet, query: &Query, explanation: Explanation) -> Refusal {
    if explanation.reason == Reason::UnknownTool {
        return Refusal::UnknownTool(query.call.tool.to_string());
    }
    if !may_know(policy, &query.caller) && !is_visible(policy, query) {
        return Refusal::Hidden(query.call.tool.to_string(), Box::new(explanation));
    }
    let message = explanation.message(query);
    Refusal::Denied(Box::new(Denial::new(explanation, message)))
}

/// What is no call is refused with its server, so that is what the words speak of.
fn refuse_message(server: &str, explanation: Explanation) -> Refusal {
    let server = toolwarden_core::name::shown(server);
    let message = format!("Server \"{server}\" is not available here: {}", explanation.reason.sentence());
    Refusal::Denied(Box::new(Denial::new(explanation, message)))
}

fn may_know(policy: &PolicySet, caller: &Caller) -> bool {
    let role = caller.role.as_deref().and_then(|role| policy.base().roles.get(role));
    !caller.is_agent() || role.is_some_and(|role| role.explain)
}
