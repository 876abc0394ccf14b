//! A person's answer to a held call: the first one counts, and whoever comes later is told whose it is (REVIEW-3).

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;
use toolwarden_core::{AnswerScope, ApprovalState, HeldAnswer, HeldCall};
use toolwarden_store::state::{Approval, Moved};

use super::approvals_show::no_such;
use crate::approvals::ApprovalView;
use crate::{Actor, Clerk, ControlError};

/// Notes are for people.
const LONGEST_NOTE: usize = 2_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub approval: ApprovalView,
    /// What was changed besides, in words.
    pub besides: Option<String>,
    /// What could not be: the answer itself counts.
    pub not_done: Option<String>,
    /// Its caller follows it as a task: nobody has to make the call again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub followed: bool,
}

/// What a person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Yes(AnswerScope),
    No,
    /// What somebody permitted is not to be.
    NotAnyMore,
}

pub(super) async fn answer(
    clerk: &Clerk,
    actor: &Actor,
    approval: Approval,
    said: Said,
    note: Option<String>,
) -> Result<Approval, ControlError> {
    let (is_approval, scope) = match said {
        Said::Yes(scope) => (true, scope),
        Said::No | Said::NotAnyMore => (false, AnswerScope::Once),
    };
    if note.as_ref().is_some_and(|note| note.len() > LONGEST_NOTE) {
        return Err(ControlError::BadInput(format!("a note has at most {LONGEST_NOTE} bytes")));
    }
    let given = HeldAnswer {
        is_approval,
        by: actor.user.clone(),
        groups: actor.groups.clone(),
        door: actor.door().to_owned(),
        at: clerk.parts.clock.now(),
        scope,
        note: note.filter(|note| !note.trim().is_empty()),
        token: actor.acting_token(),
    };
    actor.must_answer(&approval.call, &given)?;
    let (operation, transition) = match is_approval {
        true => ("approvals_approve", "approval_approved"),
        false => ("approvals_deny", "approval_rejected"),
    };
    let words = match is_approval {
        true => format!("approve ({})", scope.as_str()),
        false => "deny".to_owned(),
    };
    clerk.record_approval(actor, (operation, "requested"), &words, &approval).await?;
    let count_for = if is_approval { clerk.parts.answer_times.approved } else { clerk.parts.answer_times.held };
    let until = given.at.checked_add(count_for).unwrap_or(jiff::Timestamp::MAX);
    let state = clerk.state()?;
    let moved = match said {
        Said::NotAnyMore => state.take_back_approval(&approval.id, &given, until).await?,
        Said::Yes(_) | Said::No => state.answer_approval(&approval.id, &given, until).await?,
    };
    match moved {
        Moved::Done(answered) => {
            let done = if is_approval { format!("approved ({})", scope.as_str()) } else { "rejected".to_owned() };
            clerk.record_approval(actor, (transition, "answered"), &done, &answered).await?;
            clerk.caught_up().await;
            Ok(*answered)
        }
        Moved::Not(other) => {
            clerk
                .record_approval(actor, (operation, "unchanged"), &format!("nothing changed: {words}"), &other)
                .await?;
            Err(ControlError::BadInput(already(&other)))
        }
        Moved::NoSuch => Err(no_such(&approval.id)),
    }
}

/// What was faster, in words.
fn already(approval: &Approval) -> String {
    let id = &approval.id;
    match &approval.answer {
        Some(answer) => {
            let what = if answer.is_approval { "approved" } else { "denied" };
            let state = approval.state.as_str();
            let back = match approval.state {
                ApprovalState::Approved => format!(". `toolwarden approvals deny {id} --take-back` takes it back"),
                _ => String::new(),
            };
            format!(
                "{id} was {what} by {} at {}, and is {state}; your answer does not count{back}",
                shown(&answer.by),
                answer.at
            )
        }
        None => format!("{id} is {}; your answer does not count", approval.state.as_str()),
    }
}

pub(super) fn whose(call: &HeldCall) -> Result<String, ControlError> {
    let none = || ControlError::BadInput("the caller has no user, so there is no list to change".to_owned());
    call.caller.user.clone().ok_or_else(none)
}
