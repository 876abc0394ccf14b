//! Step 4: a held call, and whoever may pay for it.
//!
//! Takes what the judge holds; gives a permit where a person permitted exactly this call, or the classifier did where it
//! may, else says what the caller is to be told or that it waits. Nothing of a held call leaves; an approval is taken right
//! before its call does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use toolwarden_conversations::sessions::identity;
use toolwarden_core::json::{Part, Value};
use toolwarden_core::name::{bounded, shown, shown_json};
use toolwarden_core::{
    AnswerScope, ApprovalState, Caller, Decision, Digest, GrantedCall, HeldAnswer, HeldCall, HeldCaller, Payer,
    Payment, Reason, SESSION_ANCHOR, ShownCall, TOKEN_ANCHOR, VERDICT, Weakness, weak,
};
use toolwarden_mcp::questions::Asks;
use toolwarden_mcp::{Era, Version};
use toolwarden_policy::{Explanation, Pending, Permit, PolicySet, Verdict, briefly, settle};
use toolwarden_refusals::{Denial, Refusal};
use toolwarden_review::{Asking, Desk, Marks, NotTaken, Raised, Taken, Turned, may_be_granted, payment};
use toolwarden_sources::lookup;
use toolwarden_store::state::Approval;

use crate::classify::{Classified, Held, classify};
use crate::decide::{elsewhere, is_large, refuse};
use crate::following;
use crate::gateway::Gateway;
use crate::resolve::Asked;
use crate::settings::Hold;

/// Calls that are longer are answered where there is room to show them.
const LONGEST_SHOWN: usize = 4 * 1024;
/// Where a modern client names itself in every request.
const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// The one member of the form, and what it can be.
const ANSWER: &str = "answer";
const ALLOW: &str = "allow once";
const DENY: &str = "deny";

/// The approval a call is made under.
#[derive(Debug)]
pub struct Under {
    pub id: String,
    /// The call left under it, and may go on.
    is_used: AtomicBool,
    /// It asked its client something, and goes on when that comes back.
    pauses: AtomicBool,
    pub kind: Answered,
}

/// What kind of answer a call is made under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// To this very call.
    Approval,
    /// One that counts for more than one.
    Grant,
    /// A machine's, to this very call.
    Classifier,
}

impl Under {
    /// An approval whose call left, and goes on in another request.
    #[must_use]
    pub fn used(id: &str) -> Self {
        let kind = if id.starts_with(VERDICT) { Answered::Classifier } else { Answered::Approval };
        Self { is_used: AtomicBool::new(true), ..Self::given(id, kind) }
    }

    pub(crate) fn given(id: &str, kind: Answered) -> Self {
        Self { id: id.to_owned(), is_used: AtomicBool::new(false), pauses: AtomicBool::new(false), kind }
    }

    /// An approval that its call is to take, whether it is needed by then or not: so that it is made once.
    #[must_use]
    pub fn to_take(id: &str) -> Self {
        Self::given(id, Answered::Approval)
    }

    /// Whether its call left before, and goes on.
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    pub fn pauses(&self) -> bool {
        self.pauses.load(Ordering::Relaxed)
    }

    pub fn set_pause(&self, pauses: bool) {
        self.pauses.store(pauses, Ordering::Relaxed);
    }
}

/// What became of a held call.
#[derive(Debug)]
pub enum Reviewed {
    /// Somebody paid.
    Paid(Permit),
    /// Its caller waits with it, and is asked where there is something to ask.
    Waits { asking: Asking, question: Option<Elicitation> },
    /// Its person is asked, and comes back with the answer; and what is recorded of it.
    Asks { asking: Asking, question: Elicitation, held: Refusal },
    /// Its caller follows it as a task.
    Follows { asking: Asking, held: Refusal },
}

/// What a client is to put before its person.
#[derive(Debug)]
pub struct Elicitation {
    /// As `elicitation/create` has them.
    pub params: String,
    /// By a page that is opened elsewhere: what the client says of it is no answer.
    pub by_page: bool,
}

/// Asks whoever may pay, or finds that they were asked: what persons said before counts first, then a machine's word, then
/// persons are asked. `number` is the call's in the record.
pub async fn review(gateway: &Gateway, asked: &Asked, pending: Box<Pending>, number: u64) -> Result<Reviewed, Refusal> {
    let is_for_persons = [Payer::Person, Payer::SecondPerson].into_iter().any(|payer| pending.may_be_paid_by(payer));
    let desk = gateway.desk.as_ref().filter(|_| is_for_persons && gateway.settings.hold != Hold::Deny);
    let policy = asked.policy(gateway);
    let mut call = held_call(&policy, asked, &pending);
    let definition = definition(&policy, asked);
    let grant = match desk {
        Some(desk) => granted(desk, asked, &policy, &pending, &definition).await,
        None => None,
    };
    if let Some(grant) = grant {
        let payment = toolwarden_review::goes_on(&grant, &pending);
        let permit = paid(gateway, asked, *pending, payment).await?;
        asked.under.get_or_init(|| Arc::new(Under::given(&grant, Answered::Grant)));
        return Ok(Reviewed::Paid(permit));
    }
    let digest = asked.query.call.params.as_ref().map(Digest::of_part);
    let marks = Marks {
        caller: &identity(&asked.arrival.caller),
        definition: &definition,
        digest: digest.as_ref().map(|digest| digest.as_bytes().as_slice()).unwrap_or_default(),
    };
    let before_machine = Held { pending: &pending, policy: &policy, call: &call, marks, number };
    call.opinion = match classify(gateway, asked, before_machine).await? {
        Classified::Paid(permit) => return Ok(Reviewed::Paid(permit)),
        Classified::Held(opinion) => opinion,
    };
    let Some(desk) = desk else {
        if let Some(protection) = &gateway.protection {
            protection.was_not_permitted(&asked.arrival.caller.token, gateway.clock.now()).await;
        }
        return Err(held(gateway.settings.hold, &pending, None));
    };
    if let Some(refusal) = used_elsewhere(gateway, desk, asked).await {
        return Err(refusal);
    }
    match desk.raise(marks, &call).await {
        // Another one than the task waits for, which would stay: the task waits for this one from now on.
        Ok(Raised::Approved(approval)) if asked.under.get().is_some_and(|under| under.id != approval.id) => {
            Err(held(gateway.settings.hold, &pending, Some(&approval.id)))
        }
        Ok(Raised::Approved(approval)) => {
            // By the rules of now another person is needed, or a reason: whoever may is asked anew.
            let Some(payment) = payment(&approval, &pending) else {
                desk.cancel(&approval.id).await;
                return match desk.raise(marks, &call).await {
                    Ok(Raised::Waits(asking)) => Err(held(gateway.settings.hold, &pending, Some(&asking.id))),
                    _ => Err(held(gateway.settings.hold, &pending, None)),
                };
            };
            let permit = paid(gateway, asked, *pending, payment).await?;
            asked.under.get_or_init(|| Arc::new(Under::given(&approval.id, Answered::Approval)));
            Ok(Reviewed::Paid(permit))
        }
        Ok(Raised::Waits(asking)) => {
            let held = held(gateway.settings.hold, &pending, Some(&asking.id));
            if asked.is_for_task {
                return Err(held);
            }
            let (can_follow, era) = (following::can_follow(asked), asked.arrival.version.era());
            // Who asked for a task in the legacy era waits for one, and nothing else can be said before.
            if can_follow && era == Era::Legacy {
                return Ok(Reviewed::Follows { asking, held });
            }
            let form = form(asked, &call).map(|params| Elicitation { params, by_page: false });
            let page = || page(gateway, asked, &call, &asking.id).map(|params| Elicitation { params, by_page: true });
            let question = form.or_else(page);
            match (question, era) {
                (Some(question), Era::Modern) => Ok(Reviewed::Asks { asking, question, held }),
                (question @ Some(_), Era::Legacy) => Ok(Reviewed::Waits { asking, question }),
                (None, _) if can_follow => Ok(Reviewed::Follows { asking, held }),
                (None, _) if gateway.settings.hold == Hold::Wait => Ok(Reviewed::Waits { asking, question: None }),
                (None, _) => Err(held),
            }
        }
        Ok(Raised::Turned(turned)) => Err(turned_away(gateway, &policy, turned)),
        Err(error) => {
            tracing::error!("a held call cannot be kept, so nobody can answer it: {error}");
            Err(held(gateway.settings.hold, &pending, None))
        }
    }
}

/// Why the call of a task is not made, where somebody used the approval it waits for, or that is over: then nobody is asked
/// anew about what may have run.
async fn used_elsewhere(gateway: &Gateway, desk: &Desk, asked: &Asked) -> Option<Refusal> {
    let under = asked.under.get().filter(|under| asked.is_for_task && !under.is_used())?;
    match desk.approval(&under.id).await {
        Ok(Some(approval)) if approval.state == ApprovalState::Approved => {
            let is_late = approval.expires_at <= gateway.clock.now();
            is_late.then(|| over(gateway, &under.id, ApprovalState::Expired))
        }
        Ok(found) => Some(over(gateway, &under.id, found.map_or(ApprovalState::Expired, |found| found.state))),
        Err(error) => {
            tracing::error!("an approval cannot be looked up, so its call is not made: {error}");
            Some(Refusal::Unverified)
        }
    }
}

/// The id of a grant that is for this call. One that cannot be looked up is none: then a person is asked.
async fn granted(
    desk: &Desk,
    asked: &Asked,
    policy: &PolicySet,
    pending: &Pending,
    definition: &str,
) -> Option<String> {
    if !is_standing(policy, pending) {
        return None;
    }
    let call = &asked.query.call;
    let session = asked.arrival.session.as_ref().map(|session| session.mark.as_str());
    let caller = &asked.arrival.caller;
    let call = GrantedCall { caller, session, server: &call.server, tool: &call.tool, definition };
    let found = desk.granted(pending, &call).await.inspect_err(|error| {
        tracing::warn!("grants cannot be looked up: {error}");
    });
    found.ok().flatten().map(|grant| grant.id)
}

/// Whether an answer that counts for more than one call may pay: not where an administrator says what runs unasked
/// (ALLOW-10).
fn is_standing(policy: &PolicySet, pending: &Pending) -> bool {
    policy.contents().admin().is_none() && may_be_granted(pending)
}

/// What "this session" would mean (REVIEW-7): the token, else a conversation that is bound to its principal.
fn anchor(asked: &Asked) -> Option<String> {
    let token = asked.arrival.caller.token.id.as_ref().map(|id| format!("{TOKEN_ANCHOR}{id}"));
    token.or_else(|| asked.arrival.session.as_ref().map(|session| format!("{SESSION_ANCHOR}{}", session.mark)))
}

/// What a person is asked in the client, where answers given there count (REVIEW-6): only from a client of theirs that was
/// trusted with it, and only if they can see everything they permit.
fn form(asked: &Asked, call: &HeldCall) -> Option<String> {
    let caller = &asked.arrival.caller;
    let user = caller.user.as_deref().filter(|_| may_answer(caller))?;
    let is_fit = !asked.was_asked && asked.state.is_none() && call.params.len() <= LONGEST_SHOWN;
    if !is_fit || !Asks::Form.is_offered(asked.declared()) {
        return None;
    }
    let would = in_client(caller, user, asked.query.time, ALLOW);
    call.needs.lacks(&call.caller, &would).is_none().then(|| question(call, asked.arrival.version))
}

/// The page of the held call, where a client can open one: whoever answers there logs in, so that it does not matter whose
/// client it is.
fn page(gateway: &Gateway, asked: &Asked, call: &HeldCall, id: &str) -> Option<String> {
    let is_fit = !asked.was_asked && asked.state.is_none();
    let base = gateway.page.get().filter(|_| is_fit)?;
    if !Asks::Url(String::new()).is_offered(asked.declared()) {
        return None;
    }
    let message = format!(
        "Toolwarden holds a call of {} on {} for a person, because {} ({}). Open the page to look at it and answer.",
        shown(&call.tool),
        shown(&call.server),
        shown(&call.message),
        call.reason
    );
    let mut question =
        serde_json::json!({ "mode": "url", "message": message, "url": format!("{base}{id}"), "elicitationId": id });
    if let (Era::Modern, Some(question)) = (asked.arrival.version.era(), question.as_object_mut()) {
        question.remove("elicitationId");
    }
    Some(question.to_string())
}

fn question(call: &HeldCall, version: Version) -> String {
    let ShownCall { laid_out, besides, .. } = ShownCall::of(&call.method, &call.params);
    let besides = besides.map(|besides| format!("\n\nSent besides:\n{besides}")).unwrap_or_default();
    let arguments = shown_json(&format!("{laid_out}{besides}")).into_owned();
    let message = format!(
        "Toolwarden asks: may {} on {} be called?\n\nArguments:\n{arguments}\n\nHeld because {} ({}). \
         Your answer is for this one call.",
        shown(&call.tool),
        shown(&call.server),
        shown(&call.message),
        call.reason
    );
    // What permits nothing comes first: some clients fill in whatever is first.
    let mut form = serde_json::json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": { ANSWER: { "type": "string", "title": "Your answer", "enum": [DENY, ALLOW] } },
            "required": [ANSWER],
        },
    });
    // Older clients know no other mode, and some refuse what they do not know.
    if let (true, Some(form)) = (version < Version::V2025_11_25, form.as_object_mut()) {
        form.remove("mode");
    }
    form.to_string()
}

/// What a person said in the client; none where they said nothing.
pub fn answer_of(result: Value<'_>) -> Option<&'static str> {
    let action = result.get("action").and_then(Value::as_str)?;
    let answer = result.get("content").and_then(|content| content.get(ANSWER)).and_then(Value::as_str);
    match (&*action, answer.as_deref()) {
        ("accept", Some(ALLOW)) => Some(ALLOW),
        ("accept", Some(DENY)) | ("decline", _) => Some(DENY),
        _ => None,
    }
}

/// Whether what a person said is no.
#[must_use]
pub fn is_denial(answer: &str) -> bool {
    answer == DENY
}

fn in_client(caller: &Caller, user: &str, at: Timestamp, answer: &str) -> HeldAnswer {
    HeldAnswer {
        is_approval: answer == ALLOW,
        by: user.to_owned(),
        groups: caller.groups.clone(),
        door: "client".to_owned(),
        at,
        scope: AnswerScope::Once,
        note: None,
        token: None,
    }
}

/// Keeps what a person said in the client. Whose token may not answer any more has said nothing.
pub async fn said_in_client(gateway: &Gateway, asked: &Asked, approval: &str, answer: &'static str) {
    let caller =
        asked.arrival.session.as_ref().map_or_else(|| asked.arrival.caller.clone(), |session| session.caller());
    let is_lost = gateway.identities.is_lost(&caller, gateway.clock.now());
    let (Some(desk), Some(user), false) = (&gateway.desk, caller.user.as_deref(), is_lost) else { return };
    if !may_answer(&caller) {
        return;
    }
    if let Err(error) = desk.answer(approval, &in_client(&caller, user, gateway.clock.now(), answer)).await {
        tracing::error!("an answer given in the client does not count: {error}");
    }
}

/// A call that left under an approval goes on: what is denied by now is denied, and nobody is asked again.
pub(crate) async fn goes_on(
    gateway: &Gateway,
    asked: &Asked,
    pending: Pending,
    under: &Under,
) -> Result<Permit, Refusal> {
    let payment = match under.kind {
        // Where a hold has come up that is for persons, this pays nothing.
        Answered::Classifier => toolwarden_classifier::goes_on(&under.id),
        Answered::Approval | Answered::Grant => toolwarden_review::goes_on(&under.id, &pending),
    };
    paid(gateway, asked, pending, payment).await
}

pub(crate) async fn paid(
    gateway: &Gateway,
    asked: &Asked,
    pending: Pending,
    payment: Payment,
) -> Result<Permit, Refusal> {
    // As of now: the store was waited for since the judge was asked.
    let (policy, now) = (gateway.live.snapshot(), gateway.clock.now());
    let query = pending.query().clone();
    let settled = {
        let policy = policy.clone();
        move || {
            let files = lookup::files(&policy, pending.query());
            settle(&policy, pending.clone().with_files(files), &payment, now)
        }
    };
    let verdict = match (!is_large(&query)).then(|| briefly(&settled)).flatten() {
        Some(verdict) => verdict,
        None => elsewhere(gateway, &query.caller, settled).await?,
    };
    match verdict {
        Verdict::Allow(permit) => {
            // Every later step checks by the policy that let it through.
            asked.settled_by.get_or_init(|| policy.clone());
            Ok(permit)
        }
        Verdict::Hold(still) => Err(held(gateway.settings.hold, &still, None)),
        Verdict::Deny(why) => Err(refuse(&policy, &query, *why)),
    }
}

/// Takes the approval a call is made under. Dropped before the call left, it is given back.
pub async fn take(gateway: &Gateway, asked: &Asked) -> Result<Option<Taken>, Refusal> {
    let (Some(desk), Some(under)) = (&gateway.desk, asked.under.get().filter(|under| !under.is_used())) else {
        return Ok(None);
    };
    if under.kind == Answered::Classifier {
        return Ok(None);
    }
    if under.kind == Answered::Grant {
        return match desk.use_grant(&under.id).await {
            Ok(true) => Ok(None),
            // Somebody was faster, or took it back: whoever makes the call again is judged again.
            Ok(false) => Err(over(gateway, &under.id, ApprovalState::Expired)),
            Err(error) => Err(not_taken(gateway, &under.id, &NotTaken::Store(error))),
        };
    }
    if weak::is(Weakness::Approvals) {
        return Ok(None);
    }
    desk.take(&under.id).await.map(Some).map_err(|why| not_taken(gateway, &under.id, &why))
}

/// The call is recorded, and leaves.
pub async fn leaves(asked: &Asked, taken: Option<Taken>) {
    if let Some(under) = asked.under.get() {
        under.is_used.store(true, Ordering::Relaxed);
    }
    if let Some(mut taken) = taken {
        taken.leaves().await;
    }
}

/// A held call that ended while its caller waited.
pub fn over(gateway: &Gateway, id: &str, state: ApprovalState) -> Refusal {
    not_taken(gateway, id, &NotTaken::State(state))
}

/// A call, or a result, that a person rejected, with their words.
pub fn rejected(gateway: &Gateway, approval: Approval) -> Refusal {
    let words = approval.answer.and_then(|answer| answer.note);
    let until = Some(approval.expires_at);
    let turned = Turned { reason: Reason::Rejected, approval: Some(approval.id), words, until };
    turned_away(gateway, &gateway.live.policy(), turned)
}

fn not_taken(gateway: &Gateway, id: &str, why: &NotTaken) -> Refusal {
    let reason = match why {
        NotTaken::State(ApprovalState::Rejected) => Reason::Rejected,
        NotTaken::State(ApprovalState::Unknown) => Reason::OutcomeUnknown,
        NotTaken::State(ApprovalState::Consumed | ApprovalState::Dispatched) => Reason::AlreadyRunning,
        // Used up, or over: whoever makes the call again asks again.
        NotTaken::State(_) => Reason::ApprovalUsed,
        NotTaken::Record => return Refusal::NoRecord,
        NotTaken::Store(error) => {
            tracing::error!("an approval cannot be used, so its call is not made: {error}");
            return Refusal::Unverified;
        }
    };
    let turned = Turned { reason, approval: Some(id.to_owned()), words: None, until: None };
    turned_away(gateway, &gateway.live.policy(), turned)
}

/// A held call, as its caller is told.
pub fn held(habit: Hold, pending: &Pending, approval: Option<&str>) -> Refusal {
    let message = pending.explanation().message(pending.query());
    let mut explanation = pending.explanation().clone();
    let approval = approval.map(str::to_owned);
    if habit != Hold::Deny {
        return Refusal::Held(Box::new(Denial { approval, ..Denial::new(explanation, message) }));
    }
    // Nobody is asked, so there is nothing to choose from.
    explanation.decision = Decision::Deny;
    (explanation.candidates, explanation.payers) = (Vec::new(), Vec::new());
    Refusal::Denied(Box::new(Denial::new(explanation, message)))
}

pub(crate) fn turned_away(gateway: &Gateway, policy: &PolicySet, turned: Turned) -> Refusal {
    let Turned { reason, approval, words, until } = turned;
    let explanation = Explanation {
        decision: reason.decision(),
        stage: toolwarden_core::Stage::Review,
        reason,
        rule: None,
        detail: None,
        candidates: Vec::new(),
        payers: Vec::new(),
        trace: Vec::new(),
        policy_version: policy.version(),
        valid_until: until,
    };
    let mut message = reason.sentence().to_owned();
    if let Some(words) = words {
        message.push_str(&format!(": {}", shown(&words)));
    }
    let waits = until.map(|until| until.duration_since(gateway.clock.now()).as_secs()).filter(|seconds| *seconds > 0);
    let retry_after = waits.filter(|_| reason == Reason::RejectedOften).and_then(|seconds| u64::try_from(seconds).ok());
    Refusal::Denied(Box::new(Denial { retry_after, approval, ..Denial::new(explanation, message) }))
}

/// The call as a person is shown it.
fn held_call(policy: &PolicySet, asked: &Asked, pending: &Pending) -> HeldCall {
    let (call, why) = (&asked.query.call, pending.explanation());
    let claims = definition_of(policy, asked).and_then(|tool| tool.description.clone());
    HeldCall {
        server: call.server.to_string(),
        tool: call.tool.to_string(),
        method: asked.method.to_string(),
        params: call.params.as_ref().map(Part::raw).unwrap_or("{}").to_owned(),
        claims,
        caller: held_caller(asked),
        reason: why.reason.code().to_owned(),
        message: why.message(pending.query()),
        rule: why.rule.as_ref().map(|rule| format!("{} ({})", rule.text, rule.origin)),
        candidates: why.candidates.clone(),
        payers: why.payers.clone(),
        policy_version: why.policy_version,
        anchor: anchor(asked).filter(|_| is_standing(policy, pending)),
        definition: Some(definition(policy, asked)).filter(|mark| !mark.is_empty()),
        needs: pending.needs().clone(),
        result: None,
        opinion: None,
    }
}

/// The caller as a person is shown them, with the client program where it named itself: in this call, or when the
/// session began.
pub(crate) fn held_caller(asked: &Asked) -> HeldCaller {
    let params = asked.query.call.params.as_ref().map(Part::value);
    let in_call = params.and_then(|params| params.get("_meta")).and_then(|meta| meta.get(META_CLIENT));
    let agreed = asked.arrival.session.as_ref().and_then(|session| session.agreed());
    let in_session = agreed.and_then(|agreed| agreed.client.as_ref()).map(Part::value);
    let client = in_call.or(in_session).and_then(|info| {
        let text = |member: &str| info.get(member).and_then(|text| text.as_str());
        let (name, version) = (text("name")?, text("version").unwrap_or_default());
        Some(format!("{} {}", bounded(&name), bounded(&version)).trim().to_owned())
    });
    HeldCaller { client: client.filter(|client| !client.is_empty()), ..(&*asked.arrival.caller).into() }
}

fn definition_of<'a>(policy: &'a PolicySet, asked: &Asked) -> Option<&'a toolwarden_policy::input::ToolDefinition> {
    let call = &asked.query.call;
    policy.servers().get(&call.server)?.tool(&call.tool)?.definition.as_ref()
}

/// A mark of the tool as it is defined now: an approval of another one does not count.
pub(crate) fn definition(policy: &PolicySet, asked: &Asked) -> String {
    let Some(tool) = definition_of(policy, asked) else { return String::new() };
    let schema = |schema: &Option<serde_json::Value>| schema.as_ref().map(ToString::to_string).unwrap_or_default();
    let description = tool.description.as_deref().unwrap_or_default();
    let (input, output) = (schema(&tool.input_schema), schema(&tool.output_schema));
    let text = format!("{}:{description}{}:{input}{}:{output}", description.len(), input.len(), output.len());
    Digest::of_bytes(text.as_bytes()).to_string()
}

/// Whether what is said in this caller's client counts as a person's answer.
#[must_use]
pub fn may_answer(caller: &Caller) -> bool {
    caller.token.may_answer && !caller.is_agent() || weak::is(Weakness::Approvals)
}

impl Gateway {
    /// Says where persons find the pages of held calls; the first word counts.
    pub fn set_page(&self, base: &str) {
        let _ = self.page.set(base.to_owned());
    }

    /// Whether calls can be held for a person, and nobody would hear of it.
    #[must_use]
    pub fn is_unmanned(&self) -> bool {
        let is_heard = self.desk.as_ref().is_none_or(|desk| desk.is_attended());
        self.settings.hold != Hold::Deny && !is_heard && self.live.policy().may_hold()
    }

    /// Where held calls lie.
    #[must_use]
    pub fn desk(&self) -> Option<&Arc<Desk>> {
        self.desk.as_ref()
    }
}
