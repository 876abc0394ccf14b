//! Results that wait for a person before their caller sees them (`review = "result"`).
//!
//! Takes the result of a tool that is marked so; gives what its caller is told instead, and, to the same call made again,
//! the result once a person permitted it. Nothing runs twice; what nobody can look at is seen by nobody.

use std::sync::Arc;

use toolwarden_conversations::Failure;
use toolwarden_conversations::sessions::identity;
use toolwarden_core::json::Part;
use toolwarden_core::{
    ApprovalNeeds, ApprovalState, Decision, Digest, HeldCall, Operation, Payer, Reason, Stage, Status,
};
use toolwarden_mcp::compose::{self, object_with, quoted};
use toolwarden_mcp::{Era, Id};
use toolwarden_policy::{Explanation, PolicySet, RuleRef};
use toolwarden_refusals::{Denial, Refusal, ask_for_approval};
use toolwarden_review::{Desk, Marks, Raised, Turned};
use toolwarden_store::state::Approval;

use crate::answer::Answer;
use crate::audit::Trail;
use crate::gateway::Gateway;
use crate::resolve::{Asked, What};
use crate::review::{definition, held_caller, over, rejected};
use crate::settings::Hold;

const RESULT_TYPE: &str = "resultType";

/// Why results of a tool wait, and for whom.
#[derive(Debug, Clone)]
pub(crate) struct Reviewed {
    rule: RuleRef,
    needs: ApprovalNeeds,
}

impl Reviewed {
    /// None where results pass.
    pub(crate) fn of(policy: &PolicySet, asked: &Asked) -> Option<Self> {
        let tool = match &asked.what {
            What::Call if asked.query.call.requested_operation() == Operation::CallTool => &*asked.query.call.tool,
            What::Task(Some(tool)) if matches!(&*asked.method, "tasks/result" | "tasks/get") => &**tool,
            _ => return None,
        };
        let (rule, needs) = policy.reviews_results(&asked.upstream.name, tool)?;
        Some(Self { rule, needs })
    }

    /// What the caller is told of a result: that it waits. Nothing of it where nobody can be asked.
    pub(crate) async fn withheld(
        &self,
        gateway: &Gateway,
        asked: &Asked,
        result: &Part,
        era: Era,
    ) -> Result<Part, Failure> {
        if !matches!(asked.what, What::Call) {
            return Err(Failure::Withheld("it waits for a person, which results of tasks cannot".to_owned()));
        }
        let Some(desk) = gateway.desk.as_ref().filter(|_| gateway.settings.hold != Hold::Deny) else {
            return Err(Failure::Withheld("a person has to look at it first, and nobody is asked here".to_owned()));
        };
        let policy = asked.policy(gateway);
        let marks = Named::of(&policy, asked);
        let call = self.held_call(&policy, asked, object_with(Some(result.value()), &[(RESULT_TYPE, None)]));
        match desk.raise(marks.marks(), &call).await {
            Ok(Raised::Waits(asking)) => {
                let told = told(&asking.id, era);
                // One call has one result.
                let _ = asked.withheld.set(asking);
                told
            }
            // Another one of the same call is there; this one is nobody's.
            Ok(Raised::Approved(approval)) => told(&approval.id, era),
            Ok(Raised::Turned(Turned { reason, .. })) => Err(Failure::Withheld(reason.sentence().to_owned())),
            Err(error) => {
                tracing::error!("a result that waits for a person cannot be kept, so nobody sees it: {error}");
                Err(Failure::Withheld("it waits for a person, and could not be kept".to_owned()))
            }
        }
    }

    fn held_call(&self, policy: &PolicySet, asked: &Asked, result: String) -> HeldCall {
        let call = &asked.query.call;
        HeldCall {
            server: call.server.to_string(),
            tool: call.tool.to_string(),
            method: asked.method.to_string(),
            // Without what the client was asked on the way: that was used, and the call is the same without it.
            params: object_with(
                call.params.as_ref().map(Part::value),
                &[("inputResponses", None), ("requestState", None)],
            ),
            claims: None,
            caller: held_caller(asked),
            reason: Reason::ResultReview.code().to_owned(),
            message: Reason::ResultReview.sentence().to_owned(),
            rule: Some(format!("{} ({})", self.rule.text, self.rule.origin)),
            candidates: Vec::new(),
            payers: vec![Payer::Person],
            policy_version: policy.version(),
            anchor: None,
            definition: None,
            needs: self.needs.clone(),
            opinion: None,
            result: Some(result),
        }
    }

    /// What its caller is told while it waits.
    fn held(&self, policy: &PolicySet, approval: String) -> Refusal {
        let denial = Denial::new(self.explanation(policy), Reason::ResultReview.sentence().to_owned());
        Refusal::Held(Box::new(Denial { approval: Some(approval), ..denial }))
    }

    fn explanation(&self, policy: &PolicySet) -> Explanation {
        Explanation {
            decision: Decision::Hold,
            stage: Stage::Review,
            reason: Reason::ResultReview,
            rule: Some(self.rule.clone()),
            detail: None,
            candidates: Vec::new(),
            payers: vec![Payer::Person],
            trace: Vec::new(),
            policy_version: policy.version(),
            valid_until: None,
        }
    }
}

/// What tells the result of one call from every other, and from the call itself.
struct Named {
    caller: String,
    definition: String,
    digest: Option<Digest>,
}

impl Named {
    fn of(policy: &PolicySet, asked: &Asked) -> Self {
        Self {
            caller: identity(&asked.arrival.caller),
            definition: format!("result of {}", definition(policy, asked)),
            digest: asked.query.call.params.as_ref().map(Digest::of_part),
        }
    }

    fn marks(&self) -> Marks<'_> {
        let digest = self.digest.as_ref().map(|digest| digest.as_bytes().as_slice()).unwrap_or_default();
        Marks { caller: &self.caller, definition: &self.definition, digest }
    }
}

/// In the words of the server's era: what is told goes the way its result would have gone.
fn told(id: &str, era: Era) -> Result<Part, Failure> {
    let text = format!(
        "Toolwarden: the call was made, and its result waits for a person: {}, exactly as it is. It is not made a second \
         time, and you get the result. Reason: {}.",
        ask_for_approval(id),
        Reason::ResultReview.code()
    );
    let kind = if era == Era::Modern { r#""resultType":"complete","# } else { "" };
    let result = format!(
        r#"{{{kind}"content":[{{"type":"text","text":{}}}],"isError":true,"_meta":{{"toolwarden/approval":{}}}}}"#,
        quoted(&text),
        quoted(id)
    );
    Ok(Part::composed(result)?)
}

/// The result of this very call, where one waited for a person and was permitted; an error where it still waits.
///
/// # Errors
/// A person has yet to look at it, or said no.
pub async fn waiting(gateway: &Gateway, asked: &Asked, trail: &mut Option<Trail>) -> Result<Option<Answer>, Refusal> {
    let policy = asked.policy(gateway);
    let reviewed = Reviewed::of(&policy, asked).filter(|_| matches!(asked.what, What::Call) && asked.state.is_none());
    let (Some(reviewed), Some(desk)) = (reviewed, &gateway.desk) else { return Ok(None) };
    let marks = Named::of(&policy, asked);
    let call = reviewed.held_call(&policy, asked, String::new());
    let found = desk.found(marks.marks(), &call).await.map_err(|error| {
        tracing::error!("whether a result waits for a person cannot be looked up, so its call is not made: {error}");
        Refusal::Unverified
    })?;
    let Some(approval) = found else { return Ok(None) };
    match approval.state {
        ApprovalState::Approved if lacks(&reviewed, &approval).is_none() => {
            delivered(gateway, desk, asked, &approval, trail).await.map(Some)
        }
        ApprovalState::Held | ApprovalState::Approved => Err(reviewed.held(&policy, approval.id)),
        ApprovalState::Rejected => Err(rejected(gateway, approval)),
        state => Err(over(gateway, &approval.id, state)),
    }
}

/// What the answer lacks by the rules of now.
fn lacks(reviewed: &Reviewed, approval: &Approval) -> Option<&'static str> {
    let answer = approval.answer.as_ref().filter(|answer| answer.is_approval);
    answer.map_or(Some("nobody permitted it"), |answer| reviewed.needs.lacks(&approval.call.caller, answer))
}

/// The result that a person permitted its caller to see, by its approval; whether one waits for it any more or not.
///
/// # Errors
/// It does not suffice by the rules of now, somebody else has it, or it cannot be recorded.
pub async fn permitted(
    gateway: &Gateway,
    asked: &Asked,
    approval: &Approval,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    let policy = asked.policy(gateway);
    let desk = gateway.desk.as_ref().ok_or(Refusal::NoRecord)?;
    match Reviewed::of(&policy, asked) {
        Some(reviewed) if lacks(&reviewed, approval).is_some() => Err(reviewed.held(&policy, approval.id.clone())),
        _ if approval.call.result.is_none() => Err(over(gateway, &approval.id, ApprovalState::Expired)),
        _ => delivered(gateway, desk, asked, approval, trail).await,
    }
}

/// Hands a result over, once.
async fn delivered(
    gateway: &Gateway,
    desk: &Arc<Desk>,
    asked: &Asked,
    approval: &Approval,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    let mut taken = desk.take(&approval.id).await.map_err(|_| over(gateway, &approval.id, ApprovalState::Consumed))?;
    let kept = approval.call.result.clone().unwrap_or_default();
    let result = Part::composed(kept).map_err(|error| Refusal::Upstream(error.into()))?;
    let is_modern = asked.arrival.version.era() == Era::Modern;
    let kind = is_modern.then_some("\"complete\"");
    let result =
        if is_modern { object_with(Some(result.value()), &[(RESULT_TYPE, kind)]) } else { result.raw().to_owned() };
    let id = asked.id.clone().unwrap_or_else(|| Id::number(0));
    let body = compose::result(&id, &result);
    // Not recorded, it is not handed over, and the approval counts again.
    let recorded = trail.as_mut().ok_or(Refusal::NoRecord)?;
    recorded.hands_over(&approval.id, "its result waited for a person, and was permitted", body.len() as u64).await?;
    taken.leaves().await;
    desk.ended(&approval.id, Status::Ok);
    *trail = None;
    Ok(Answer::message(body))
}
