//! Step 4: a held call, and whoever may pay for it.
//!
//! Takes what the judge holds; gives a permit where a person permitted exactly this call, else says what the caller is
//! to be told or that it waits. Nothing of a held call leaves; an approval is taken right before its call does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toolwarden_conversations::sessions::identity;
use toolwarden_core::json::Part;
use toolwarden_core::{ApprovalState, Decision, Digest, HeldCall, Payer, Payment, Reason};
use toolwarden_policy::{Explanation, Pending, Permit, PolicySet, Verdict, settle};
use toolwarden_refusals::{Denial, Refusal};
use toolwarden_review::{Asking, Desk, Marks, NotTaken, Raised, Taken, Turned, payment};

use crate::decide::refuse;
use crate::flow;
use crate::gateway::Gateway;
use crate::resolve::Asked;
use crate::settings::Hold;

/// The approval a call is made under.
#[derive(Debug)]
pub struct Under {
    pub id: String,
    /// The call left under it, and may go on.
    is_used: AtomicBool,
    /// It asked its client something, and goes on when that comes back.
    pauses: AtomicBool,
}

impl Under {
    /// An approval whose call left, and goes on in another request.
    #[must_use]
    pub fn used(id: &str) -> Self {
        Self { is_used: AtomicBool::new(true), ..Self::given(id) }
    }

    fn given(id: &str) -> Self {
        Self { id: id.to_owned(), is_used: AtomicBool::new(false), pauses: AtomicBool::new(false) }
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
    /// Its caller waits with it.
    Waits(Asking),
}

/// Asks whoever may pay, or finds that they were asked.
pub async fn review(gateway: &Gateway, asked: &Asked, pending: Box<Pending>) -> Result<Reviewed, Refusal> {
    let is_for_persons = [Payer::Person, Payer::SecondPerson].into_iter().any(|payer| pending.may_be_paid_by(payer));
    let Some(desk) = gateway.desk.as_ref().filter(|_| is_for_persons && gateway.settings.hold != Hold::Deny) else {
        return Err(held(gateway.settings.hold, &pending, None));
    };
    let policy = asked.policy(gateway);
    let call = held_call(&policy, asked, &pending);
    let definition = definition(&policy, asked);
    let digest = asked.query.call.params.as_ref().map(Digest::of_part);
    let marks = Marks {
        caller: &identity(&asked.arrival.caller),
        definition: &definition,
        digest: digest.as_ref().map(|digest| digest.as_bytes().as_slice()).unwrap_or_default(),
    };
    match desk.raise(marks, &call).await {
        Ok(Raised::Approved(approval)) => {
            // Another person is needed than the one who answered.
            let Some(payment) = payment(&approval, &pending) else {
                return Err(held(gateway.settings.hold, &pending, Some(&approval.id)));
            };
            let permit = paid(gateway, asked, *pending, &payment)?;
            asked.under.get_or_init(|| Arc::new(Under::given(&approval.id)));
            Ok(Reviewed::Paid(permit))
        }
        Ok(Raised::Waits(asking)) if gateway.settings.hold == Hold::Wait => Ok(Reviewed::Waits(asking)),
        Ok(Raised::Waits(asking)) => Err(held(gateway.settings.hold, &pending, Some(&asking.id))),
        Ok(Raised::Turned(turned)) => Err(turned_away(gateway, &policy, turned)),
        Err(error) => {
            tracing::error!("a held call cannot be kept, so nobody can answer it: {error}");
            Err(held(gateway.settings.hold, &pending, None))
        }
    }
}

/// A call that left under an approval goes on: what is denied by now is denied, and nobody is asked again.
pub(crate) fn goes_on(gateway: &Gateway, asked: &Asked, pending: Pending, approval: &str) -> Result<Permit, Refusal> {
    let payment = toolwarden_review::goes_on(approval, &pending);
    paid(gateway, asked, pending, &payment)
}

fn paid(gateway: &Gateway, asked: &Asked, pending: Pending, payment: &Payment) -> Result<Permit, Refusal> {
    let policy = asked.policy(gateway);
    let query = pending.query().clone();
    match settle(&policy, pending, payment, gateway.clock.now()) {
        Verdict::Allow(permit) => {
            flow::meets(gateway, &policy, asked);
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
    desk.take(&under.id).await.map(Some).map_err(|why| not_taken(gateway, &under.id, &why))
}

/// The call is recorded, and leaves.
pub async fn leaves(asked: &Asked, taken: Option<Taken>) {
    if let (Some(mut taken), Some(under)) = (taken, asked.under.get()) {
        under.is_used.store(true, Ordering::Relaxed);
        taken.leaves().await;
    }
}

/// A held call that ended while its caller waited.
pub fn over(gateway: &Gateway, id: &str, state: ApprovalState) -> Refusal {
    not_taken(gateway, id, &NotTaken::State(state))
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

fn turned_away(gateway: &Gateway, policy: &PolicySet, turned: Turned) -> Refusal {
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
        message.push_str(&format!(": {}", toolwarden_core::name::shown(&words)));
    }
    let waits = until.map(|until| until.duration_since(gateway.clock.now()).as_secs()).filter(|seconds| *seconds > 0);
    let retry_after = waits.filter(|_| reason == Reason::RejectedOften).and_then(|seconds| u64::try_from(seconds).ok());
    Refusal::Denied(Box::new(Denial { retry_after, approval, ..Denial::new(explanation, message) }))
}

/// The call as a person is shown it.
fn held_call(policy: &PolicySet, asked: &Asked, pending: &Pending) -> HeldCall {
    let (call, why) = (&asked.query.call, pending.explanation());
    let caller = &asked.arrival.caller;
    let claims = definition_of(policy, asked).and_then(|tool| tool.description.clone());
    HeldCall {
        server: call.server.to_string(),
        tool: call.tool.to_string(),
        method: asked.method.to_string(),
        params: call.params.as_ref().map(Part::raw).unwrap_or("{}").to_owned(),
        claims,
        caller: (&**caller).into(),
        reason: why.reason.code().to_owned(),
        message: why.message(pending.query()),
        rule: why.rule.as_ref().map(|rule| format!("{} ({})", rule.text, rule.origin)),
        candidates: why.candidates.clone(),
        payers: why.payers.clone(),
        policy_version: why.policy_version,
        anchor: None,
        needs: pending.needs().clone(),
    }
}

fn definition_of<'a>(policy: &'a PolicySet, asked: &Asked) -> Option<&'a toolwarden_policy::input::ToolDefinition> {
    let call = &asked.query.call;
    policy.servers().get(&call.server)?.tool(&call.tool)?.definition.as_ref()
}

/// A mark of the tool as it is defined now: an approval of another one does not count.
fn definition(policy: &PolicySet, asked: &Asked) -> String {
    let Some(tool) = definition_of(policy, asked) else { return String::new() };
    let schema = |schema: &Option<serde_json::Value>| schema.as_ref().map(ToString::to_string).unwrap_or_default();
    let description = tool.description.as_deref().unwrap_or_default();
    let (input, output) = (schema(&tool.input_schema), schema(&tool.output_schema));
    let text = format!("{}:{description}{}:{input}{}:{output}", description.len(), input.len(), output.len());
    Digest::of_bytes(text.as_bytes()).to_string()
}

impl Gateway {
    /// Where held calls lie.
    #[must_use]
    pub fn desk(&self) -> Option<&Arc<Desk>> {
        self.desk.as_ref()
    }
}
