//! Held calls in the clerk's words: what a person is shown, and who may answer.

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;
use toolwarden_core::{
    AnswerScope, ApprovalNeeds, ApprovalState, Digest, HeldAnswer, HeldCall, HeldCaller, Opinion, ShownCall,
    TOKEN_ANCHOR,
};
use toolwarden_store::state::Approval;

use crate::narrowing::NarrowedOffer;
use crate::{Actor, ControlError, Role};

/// A held call as it is listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalView {
    pub id: String,
    /// Digest of everything that is held here. An answer that names it counts only for a call with the same digest.
    #[serde(default)]
    pub digest: String,
    pub state: ApprovalState,
    pub server: String,
    pub tool: String,
    /// What would be sent, as far as JSON goes; as it was sent it stands in `sent`.
    pub arguments: serde_json::Value,
    pub sent: String,
    /// The arguments in lines, as they were sent.
    pub laid_out: String,
    /// What is sent besides the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub besides: Option<String>,
    /// What the tool says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<String>,
    /// What the tool answered: then the call was made, and this is what waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    pub caller: HeldCaller,
    pub reason: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    pub held_at: String,
    pub expires_at: String,
    pub changed_at: String,
    pub needs: ApprovalNeeds,
    /// What a classifier said of it: a machine's opinion, in words that may come from whoever made the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_opinion: Option<Opinion>,
    /// What else each answer would permit.
    pub offers: Vec<Offer>,
    /// What a narrowed answer could ask for; only where that was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub narrowed: Vec<NarrowedOffer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<HeldAnswer>,
    /// The caller follows this call as a task; only in `approvals show`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub followed: bool,
}

/// An answer that can be given, and what it permits besides this call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub scope: AnswerScope,
    pub permits: String,
}

impl From<Approval> for ApprovalView {
    fn from(approval: Approval) -> Self {
        let Approval { id, state, call, answer, held_at, expires_at, changed_at, .. } = approval;
        let digest = digest(&call);
        let offers = if state == ApprovalState::Held { offers(&call) } else { Vec::new() };
        let HeldCall {
            server,
            tool,
            params,
            claims,
            caller,
            reason,
            message,
            rule,
            needs,
            method,
            opinion,
            result,
            ..
        } = call;
        let ShownCall { arguments, laid_out, besides } = ShownCall::of(&method, &params);
        // A number that no program could hold is shown as text, never left out.
        let arguments = serde_json::from_str(&arguments).unwrap_or(serde_json::Value::String(arguments));
        Self {
            id,
            digest,
            state,
            server,
            tool,
            arguments,
            sent: params,
            laid_out,
            besides,
            claims,
            result,
            caller,
            reason,
            message,
            rule,
            held_at: held_at.to_string(),
            expires_at: expires_at.to_string(),
            changed_at: changed_at.to_string(),
            needs,
            machine_opinion: opinion,
            offers,
            narrowed: Vec::new(),
            answer,
            followed: false,
        }
    }
}

impl ApprovalView {
    /// With the answers that this one may give: entries are in the lists of whoever calls, which are not everybody's.
    #[must_use]
    pub(crate) fn offered_to(mut self, actor: &Actor) -> Self {
        let may_add = actor.may_add_for(self.caller.user.as_deref());
        self.offers.retain(|offer| may_add || !matches!(offer.scope, AnswerScope::Tool | AnswerScope::Server));
        self
    }
}

/// Digest of a held call: caller, tool, params, reason, and everything else that is kept of it.
fn digest(call: &HeldCall) -> String {
    serde_json::to_vec(call).map(|bytes| Digest::of_bytes(&bytes).to_string()).unwrap_or_default()
}

/// Refuses an answer to another call than the one that was shown.
///
/// # Errors
/// The answer names a digest, and this call has another one.
pub(crate) fn must_be_shown(call: &HeldCall, id: &str, shown_digest: Option<&str>) -> Result<(), ControlError> {
    match shown_digest {
        Some(named) if named.is_empty() || named != digest(call) => Err(ControlError::BadInput(format!(
            "the held call {} is not the one that was shown; look at it again: `toolwarden approvals show {}`",
            shown(id),
            shown(id)
        ))),
        _ => Ok(()),
    }
}

/// What can be answered, narrowest first. "Always" only where an entry would help.
pub(crate) fn offers(call: &HeldCall) -> Vec<Offer> {
    let (server, tool) = (shown(&call.server), shown(&call.tool));
    let offer = |scope, permits: String| Offer { scope, permits };
    let mut offers = vec![offer(AnswerScope::Once, "nothing else: this call, once".to_owned())];
    if let Some(anchor) = &call.anchor {
        let whose = reach(anchor);
        offers.push(offer(
            AnswerScope::Session,
            format!("every call of {tool} on {server} {whose}, for at most 8 hours"),
        ));
    }
    if !call.candidates.is_empty() {
        offers.push(offer(
            AnswerScope::Tool,
            format!("every call of {tool} on {server}, with any arguments, from now on"),
        ));
        offers.push(offer(AnswerScope::Server, format!("every call of every tool on {server}, from now on")));
    }
    offers
}

/// Which calls an answer "for this session" covers (REVIEW-7): a token has one such session, however often it connects.
pub(crate) fn reach(anchor: &str) -> &'static str {
    if anchor.starts_with(TOKEN_ANCHOR) { "with the same token, in every session of it" } else { "in this session" }
}

impl Actor {
    /// Whether this one may see a held call: approvers all, others their own, and those who are named to answer.
    pub(crate) fn sees_held(&self, call: &HeldCall) -> bool {
        let is_named = !call.needs.approvers.is_empty() && call.needs.names(&self.user, &self.groups);
        self.is(Role::Approver) || self.owns(call) || is_named
    }

    /// Whether this one may change the lists of whoever made a call.
    pub(crate) fn may_add_for(&self, caller: Option<&str>) -> bool {
        caller.is_some_and(|user| self.must_be(user, "lists of others").is_ok())
    }

    fn owns(&self, call: &HeldCall) -> bool {
        call.caller.user.as_ref() == Some(&self.user)
    }

    /// # Errors
    /// This one may not answer this call, or not so.
    pub(crate) fn must_answer(&self, call: &HeldCall, answer: &HeldAnswer) -> Result<(), ControlError> {
        let has_right = !call.needs.approvers.is_empty() || self.is(Role::Approver) || self.owns(call);
        if !has_right {
            return Err(ControlError::Forbidden("calls of others are for those with the right `approver`".to_owned()));
        }
        // Whoever may answer may say no without further ado.
        let needs =
            ApprovalNeeds { second_person: call.needs.second_person && answer.is_approval, ..call.needs.clone() };
        match needs.lacks(&call.caller, answer) {
            None => Ok(()),
            Some(why) => Err(ControlError::Forbidden(why.to_owned())),
        }
    }
}
