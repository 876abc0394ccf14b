//! The judge's one story: authorize, then mandatory holds, then auto-run; the strictest counts.
//!
//! Takes a policy and a question; gives a verdict. Pure: the same question to the same policy always
//! has the same answer, and nothing is read, written or awaited.

use toolwarden_core::{ApprovalNeeds, CallKind, Decision, Payer, Reason, Stage, weak};

use crate::authorize::{Authorization, authorize, facts};
use crate::autorun::{AutoRun, auto_run};
use crate::holds::{cannot_be_held, is_never_held, mandatory_holds};
use crate::permit::Permit;
use crate::query::{Launcher, Query, Tracing};
use crate::set::PolicySet;
use crate::settle::Pending;
use crate::subject::Subject;
use crate::verdict::{Explanation, Step, Verdict};

/// Judges a call.
pub fn decide(policy: &PolicySet, query: &Query) -> Verdict {
    let verdict = decided(policy, query);
    weak::worked(toolwarden_shell::work_taken());
    verdict
}

fn decided(policy: &PolicySet, query: &Query) -> Verdict {
    let subject = Subject::new(policy, query);
    let authorization = authorize(&subject);
    if authorization.denied.is_some() {
        return Verdict::Deny(Box::new(denied(&subject, authorization)));
    }
    let mut holds = mandatory_holds(&subject, authorization.hold.clone());
    if let Some(hold) = holds.first().filter(|_| is_never_held(&subject)) {
        return Verdict::Deny(Box::new(denied_unasked(&subject, hold, authorization.trace)));
    }
    let auto_run = auto_run(&subject);
    let mut trace = authorization.trace;
    if query.tracing == Tracing::Full {
        trace.push((Stage::MandatoryHold, holds.first().cloned().unwrap_or(Step::PASS)));
        trace.push((Stage::AutoRun, auto_run.step.clone()));
    }
    let mandatory = holds.len();
    if decision_of(&auto_run.step) != Decision::Allow {
        holds.push(auto_run.step.clone());
    }
    let Some(strictest) = holds.first() else {
        let explanation = explain(&subject, Stage::AutoRun, auto_run.step, trace);
        return Verdict::Allow(Permit::new(query.call.clone(), explanation));
    };
    let stage = if mandatory > 0 { Stage::MandatoryHold } else { Stage::AutoRun };
    let mut explanation = explain(&subject, stage, strictest.clone(), trace);
    explanation.candidates = candidates(mandatory, auto_run);
    let reasons: Vec<Reason> = holds.iter().filter_map(Step::reason).collect();
    let needs = policy.base().approvers.needs(subject.names.server_name, subject.names.tool_name);
    let (shown, settling) = payers(&subject, &reasons, &needs);
    explanation.payers = shown;
    Verdict::Hold(Box::new(Pending::new(query.clone(), explanation, settling, needs)))
}

/// Whether a caller may see a tool in a list: could some arguments pass authorization? (MODE-5)
#[must_use]
pub fn is_visible(policy: &PolicySet, query: &Query) -> bool {
    authorize(&Subject::without_arguments(policy, query)).denied.is_none()
}

/// Whether a rule at hand looks at the flow labels met before (`Query::seen`): only then need they be known.
#[must_use]
pub fn needs_labels_met(policy: &PolicySet, query: &Query) -> bool {
    let rules = &policy.base().rules;
    rules.may_depend_on_labels_met(policy.servers().have_labels())
        && rules.depend_on_labels_met(&facts(&Subject::new(policy, query)))
}

/// What nobody can be asked about is denied.
fn denied_unasked(subject: &Subject<'_>, hold: &Step, mut trace: Vec<(Stage, Step)>) -> Explanation {
    let step = cannot_be_held(hold);
    if subject.query.tracing == Tracing::Full {
        trace.push((Stage::MandatoryHold, step.clone()));
    }
    explain(subject, Stage::MandatoryHold, step, trace)
}

fn denied(subject: &Subject<'_>, authorization: Authorization) -> Explanation {
    let (stage, step) = authorization.denied.unwrap_or((Stage::Names, Step::because(Reason::UnknownTool)));
    explain(subject, stage, step, authorization.trace)
}

fn explain(subject: &Subject<'_>, stage: Stage, step: Step, trace: Vec<(Stage, Step)>) -> Explanation {
    // A step that reaches this point has a reason; were one without, it must not read as an allow.
    let reason = step.reason().unwrap_or(Reason::RuleError);
    Explanation {
        decision: reason.decision(),
        stage,
        reason,
        rule: step.rule,
        detail: step.detail,
        candidates: Vec::new(),
        payers: Vec::new(),
        trace,
        policy_version: subject.policy.version(),
        valid_until: valid_until(subject),
    }
}

fn decision_of(step: &Step) -> Decision {
    step.reason().map_or(Decision::Hold, Reason::decision)
}

/// Adding an entry helps only where auto-run alone holds.
fn candidates(mandatory: usize, auto_run: AutoRun) -> Vec<String> {
    if mandatory == 0 { auto_run.candidates } else { Vec::new() }
}

/// Whom to ask next, and who can settle the call at once: whoever every hold lists. Where no one is
/// on all lists (a changed definition that would also be held), the strictest hold comes first.
fn payers(subject: &Subject<'_>, reasons: &[Reason], needs: &ApprovalNeeds) -> (Vec<Payer>, Vec<Payer>) {
    let lists: Vec<Vec<Payer>> = reasons.iter().map(|reason| payers_now(subject, *reason, needs)).collect();
    let Some(first) = lists.first() else { return (Vec::new(), Vec::new()) };
    let common: Vec<Payer> =
        first.iter().copied().filter(|payer| lists.iter().all(|list| list.contains(payer))).collect();
    (if common.is_empty() { first.clone() } else { common.clone() }, common)
}

/// CORE-3 at this moment: settings may take the sandbox and the classifier away.
fn payers_now(subject: &Subject<'_>, reason: Reason, needs: &ApprovalNeeds) -> Vec<Payer> {
    let policy = subject.policy;
    let may_pay = |payer: &Payer| match payer {
        Payer::Sandbox => {
            policy.base().auto_run.sandbox_resolves
                && subject.query.launcher == Launcher::Caged
                && matches!(subject.query.call.kind, CallKind::Shell { .. })
        }
        Payer::Classifier => {
            // The admin's word replaces the user's classifier; a broken permissions.json stops it; and where it is said how
            // persons answer calls of this tool, a machine's word is none.
            policy.auto_review(subject.chosen_mode())
                && policy.base().admin.is_none()
                && !policy.base().approvers.name(subject.names.server_name, subject.names.tool_name)
                && !policy.has_broken_permissions(subject.query)
        }
        Payer::Person | Payer::SecondPerson | Payer::Accept => true,
    };
    let second = |payer| if payer == Payer::Person && needs.second_person { Payer::SecondPerson } else { payer };
    reason.payers().iter().copied().filter(may_pay).map(second).collect()
}

/// The next moment at which the same question may have another answer.
fn valid_until(subject: &Subject<'_>) -> Option<jiff::Timestamp> {
    let time = subject.query.time;
    let of_mode = subject.chosen_mode().and_then(|mode| mode.next_change(time));
    let of_token = subject.caller.token.expires_at.filter(|end| *end > time);
    let rules = &subject.policy.base().rules;
    let of_rules = (rules.may_depend_on_time() && rules.depend_on_time(&facts(subject))).then_some(time);
    [of_mode, of_token, of_rules].into_iter().flatten().min()
}
