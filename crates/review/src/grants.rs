//! Grants: answers that a person gave in advance, for a conversation, a run, or so many calls (REVIEW-7, REVIEW-9).
//!
//! They pay only where a call is held for want of a standing permission. What always asks is not theirs to pay, and what
//! an answer needs, a grant needs, too.

use toolwarden_core::{Grant, GrantedCall, HeldAnswer, HeldCaller, Reason, Stage};
use toolwarden_policy::Pending;
use toolwarden_store::state::StateError;

use crate::desk::Desk;

/// Whether a standing answer may pay for this hold: auto-run alone holds it, and no admin took such answers away.
#[must_use]
pub fn may_be_granted(pending: &Pending) -> bool {
    let why = pending.explanation();
    why.stage == Stage::AutoRun
        && match why.reason {
            // Without an entry that would help, the caller is an administrator's, or the tool has no name to go by.
            Reason::NotInAllowlist => !why.candidates.is_empty(),
            Reason::AskEveryTime | Reason::AllowlistGateOff => true,
            _ => false,
        }
}

impl Desk {
    /// A grant that is for this call, where one is.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn granted(&self, pending: &Pending, call: &GrantedCall<'_>) -> Result<Option<Grant>, StateError> {
        if !may_be_granted(pending) {
            return Ok(None);
        }
        let now = self.parts.clock.now();
        let caller = HeldCaller::from(call.caller);
        let is_good = |grant: &Grant| {
            let answer = HeldAnswer {
                is_approval: true,
                by: grant.claims.by.clone(),
                groups: grant.claims.groups.clone(),
                door: String::new(),
                at: grant.issued_at,
                scope: toolwarden_core::AnswerScope::Session,
                note: grant.claims.note.clone(),
                token: grant.claims.by_token.clone(),
            };
            grant.counts(now) && grant.claims.covers(call) && pending.needs().lacks(&caller, &answer).is_none()
        };
        let grants = self.parts.state.grants_for(call.server, now).await?;
        // One that is used up last: those without a number first.
        let mut good: Vec<_> = grants.into_iter().filter(is_good).collect();
        good.sort_by_key(|grant| (grant.calls_left.is_some(), grant.expires_at));
        Ok(good.into_iter().next())
    }

    /// Uses a grant for one call; false where it counts no more.
    ///
    /// # Errors
    /// The store cannot be written; then the call must not be made.
    pub async fn use_grant(&self, id: &str) -> Result<bool, StateError> {
        self.parts.state.use_grant(id, self.parts.clock.now()).await
    }
}
