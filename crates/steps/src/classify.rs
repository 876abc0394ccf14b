//! A held call before a machine (REVIEW-2): asked only where every hold lists it, after what persons said, before they are
//! asked.
//!
//! Takes what the judge holds; gives a permit where the machine allows it and the judge agrees at that moment, else what it
//! said, for the person who answers. Whatever goes wrong holds.

use std::sync::Arc;

use toolwarden_classifier::{Classifier, Judged, Question};
use toolwarden_core::name::{bounded, shown};
use toolwarden_core::{
    AuditRecord, CallerKind, HeldCall, MachineVerdict, Opinion, Payer, RecordKind, ShownCall, VerdictRecord,
};
use toolwarden_policy::{Pending, Permit, PolicySet};
use toolwarden_refusals::Refusal;
use toolwarden_review::{Marks, Standing};
use toolwarden_telemetry::Source;

use crate::gateway::Gateway;
use crate::resolve::Asked;
use crate::review::{Answered, Under, paid};

/// What became of a call before the machine.
#[derive(Debug)]
pub(crate) enum Classified {
    Paid(Permit),
    /// With what it said, where it was asked.
    Held(Option<Opinion>),
}

/// A held call, and what tells it from others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held<'a> {
    pub(crate) pending: &'a Pending,
    pub(crate) policy: &'a PolicySet,
    pub(crate) call: &'a HeldCall,
    pub(crate) marks: Marks<'a>,
    /// The call's number in the record.
    pub(crate) number: u64,
}

/// Asks the machine, where there is one that may pay, and nobody said anything of this call yet.
pub(crate) async fn classify(gateway: &Gateway, asked: &Asked, held: Held<'_>) -> Result<Classified, Refusal> {
    let may_pay = held.pending.may_be_paid_by(Payer::Classifier);
    let Some(classifier) = gateway.classifier.as_ref().filter(|_| may_pay) else {
        return Ok(Classified::Held(None));
    };
    let question = question(held);
    match standing(gateway, held).await {
        Some(Standing::Nothing) => {}
        // It said the same before, and a person has yet to: asking again and again would be fishing for another answer.
        Some(Standing::Waits { opinion: Some(opinion), .. }) if is_answer(&opinion, classifier, &question) => {
            return Ok(Classified::Held(None));
        }
        Some(Standing::Waits { .. }) => {}
        Some(Standing::Settled) | None => return Ok(Classified::Held(None)),
    }
    let judged = classifier.judge(&question).await;
    let source = if judged.is_cached { Source::Cached } else { Source::Asked };
    let failure = judged.failure.map(toolwarden_classifier::Failure::code);
    gateway.telemetry.metrics.classifier.said(judged.opinion.verdict, source, failure);
    let is_recorded = record(gateway, asked, held, &judged).await;
    let payment = toolwarden_classifier::payment(&judged.opinion).filter(|_| is_recorded);
    let Some(payment) = payment else { return Ok(Classified::Held(Some(judged.opinion))) };
    // Persons may have spoken while it thought.
    let after = standing(gateway, held).await;
    if matches!(after, Some(Standing::Settled) | None) {
        return Ok(Classified::Held(Some(judged.opinion)));
    }
    let permit = paid(gateway, asked, held.pending.clone(), payment).await?;
    if let Some(Standing::Waits { id, .. }) = after
        && !is_withdrawn(gateway, &id).await
    {
        return Ok(Classified::Held(Some(judged.opinion)));
    }
    asked.under.get_or_init(|| Arc::new(Under::given(&judged.opinion.id, Answered::Classifier)));
    Ok(Classified::Paid(permit))
}

/// What the call meets at the desk; none where that cannot be said, which is no reason to ask a machine.
async fn standing(gateway: &Gateway, held: Held<'_>) -> Option<Standing> {
    let Some(desk) = &gateway.desk else { return Some(Standing::Nothing) };
    let found = desk.standing(held.marks, held.call).await;
    found.inspect_err(|error| tracing::warn!("what persons said of a call cannot be looked up: {error}")).ok()
}

async fn is_withdrawn(gateway: &Gateway, id: &str) -> bool {
    let Some(desk) = &gateway.desk else { return false };
    let done = desk.paid_otherwise(id).await;
    done.inspect_err(|error| tracing::warn!("a call that waits cannot be taken away: {error}")).unwrap_or(false)
}

/// Whether an opinion is a verdict on this very question that pays nothing.
fn is_answer(opinion: &Opinion, classifier: &Classifier, question: &Question) -> bool {
    let pays_nothing = opinion.verdict == Some(MachineVerdict::Hold) || opinion.is_shadow;
    opinion.verdict.is_some() && pays_nothing && opinion.question == classifier.mark(question)
}

fn question(held: Held<'_>) -> Question {
    let Held { pending, policy, call, marks, .. } = held;
    let caller = &pending.query().caller;
    let ShownCall { arguments, besides, .. } = ShownCall::of(&call.method, &call.params);
    let instructions = policy.instructions(pending.query()).cloned().unwrap_or_default();
    Question {
        server: call.server.clone(),
        tool: call.tool.clone(),
        method: call.method.clone(),
        claims: call.claims.clone(),
        arguments,
        besides,
        caller: match caller.kind {
            CallerKind::Agent => "agent",
            CallerKind::LocalPerson | CallerKind::Person => "person",
        },
        role: caller.role.clone(),
        mode: caller.mode.clone(),
        reason: call.reason.clone(),
        message: call.message.clone(),
        allow: instructions.allow,
        block: instructions.block,
        identity: marks.caller.to_owned(),
        definition: marks.definition.to_owned(),
        digest: marks.digest.to_vec(),
        policy_version: policy.version(),
    }
}

/// Puts the verdict on record; what cannot be recorded pays nothing (GATE-15).
async fn record(gateway: &Gateway, asked: &Asked, held: Held<'_>, judged: &Judged) -> bool {
    let Judged { opinion, failure, is_cached, took } = judged;
    let mut record = AuditRecord::new(RecordKind::Event, gateway.clock.now(), held.number);
    let caller = asked.arrival.speaker();
    record.describe(&caller);
    record.method = Some("classifier_verdict");
    (record.server, record.tool) = (Some(held.call.server.as_str()), Some(bounded(&held.call.tool)));
    record.session = asked.arrival.session.as_ref().map(|session| session.mark.as_str());
    record.reason = Some(held.pending.explanation().reason.code());
    record.policy_version = Some(held.policy.version());
    record.approval_id = Some(&opinion.id);
    record.duration_us = u64::try_from(took.as_micros()).ok();
    let verdict = VerdictRecord {
        verdict: opinion.verdict.map_or("none", MachineVerdict::as_str),
        model: &opinion.model,
        prompt_version: opinion.prompt_version,
        cached: *is_cached,
        shadow: opinion.is_shadow,
        failure: failure.map(toolwarden_classifier::Failure::code),
    };
    record.classifier = Some(verdict);
    // Not in its own words: they may quote arguments, which the record keeps to itself.
    let detail = format!(
        "{} by {} (prompt {}, {}{}){}",
        verdict.verdict,
        shown(verdict.model),
        verdict.prompt_version,
        if verdict.cached { "asked before" } else { "asked" },
        if verdict.shadow { ", shadow" } else { "" },
        verdict.failure.map(|failure| format!(": {failure}")).unwrap_or_default(),
    );
    record.detail = Some(&detail);
    let written = gateway.journal.record(&record).await;
    written.inspect_err(|error| tracing::error!("a verdict could not be recorded, so it pays nothing: {error}")).is_ok()
}
