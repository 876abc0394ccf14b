//! What an integration answers: signed by its webhook's secret, just now, once, and in the name of the one person the
//! config says it speaks for. What it may not say, that person may not either.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use toolwarden_control::operations::{ApprovalsApprove, ApprovalsDeny, approvals_approve, approvals_deny};
use toolwarden_control::{Actor, ApprovalView, Clerk, ControlError, Role, Via};
use toolwarden_core::{AnswerScope, Clock, Secret};

use crate::signature::{NotSigned, Signed, check};
use crate::webhook::Webhook;

/// Messages that are remembered, so that none counts twice. As many come in ten minutes at most.
const REMEMBERED: usize = 10_000;

/// Why nothing was answered.
#[derive(Debug, thiserror::Error)]
pub enum NotAnswered {
    #[error("no webhook of that name may answer")]
    NoSuch,
    #[error(transparent)]
    NotSigned(#[from] NotSigned),
    #[error("this message came before")]
    Repeated,
    #[error("the message cannot be read: it has `id`, `answer` (approve or deny), and maybe a `note`")]
    Unreadable,
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl NotAnswered {
    /// Whether the same message may count a moment later: nothing is wrong with it.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        let Self::Control(error) = self else { return false };
        !matches!(error, ControlError::BadInput(_) | ControlError::Forbidden(_) | ControlError::NotFound { .. })
    }
}

/// What is said.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    id: String,
    answer: Word,
    #[serde(default)]
    note: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Approve,
    Deny,
}

/// A webhook that may answer.
#[derive(Debug)]
struct Voice {
    name: String,
    secret: Secret,
    user: String,
    groups: Vec<String>,
}

/// Those who may answer.
#[derive(Debug, Default)]
pub struct Answers {
    voices: Vec<Voice>,
    seen: Mutex<VecDeque<String>>,
}

impl Answers {
    #[must_use]
    pub fn of(webhooks: &[Webhook]) -> Self {
        let voice = |webhook: &Webhook| {
            let parts = &webhook.parts;
            let (secret, user) = parts.secret.clone().zip(parts.user.clone()).filter(|_| parts.answers)?;
            Some(Voice { name: parts.name.clone(), secret, user, groups: parts.groups.clone() })
        };
        Self { voices: webhooks.iter().filter_map(voice).collect(), seen: Mutex::default() }
    }

    /// Takes an answer, where it is one.
    ///
    /// # Errors
    /// It is none, or that person may not give it, or somebody was faster.
    pub async fn take(
        &self,
        (clerk, clock): (&Clerk, &dyn Clock),
        name: &str,
        signed: Signed<'_>,
        body: &[u8],
    ) -> Result<ApprovalView, NotAnswered> {
        let voice = self.voices.iter().find(|voice| voice.name == name).ok_or(NotAnswered::NoSuch)?;
        check(&voice.secret, signed, body, clock.now())?;
        let message = format!("{name} {}", signed.id);
        if !self.is_new(&message) {
            return Err(NotAnswered::Repeated);
        }
        let said: Said = serde_json::from_slice(body).map_err(|_| NotAnswered::Unreadable)?;
        let (user, groups) = (voice.user.clone(), voice.groups.clone());
        let actor = Actor { user, via: Via::Webhook, roles: vec![Role::Approver], groups, token: None };
        let outcome = perform(clerk, &actor, said).await;
        if outcome.as_ref().is_err_and(NotAnswered::is_passing) {
            // Whoever says the same once more is heard.
            self.forget(&message);
        }
        outcome
    }

    fn forget(&self, message: &str) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| known != message);
    }

    fn is_new(&self, id: &str) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.iter().any(|known| known == id) {
            return false;
        }
        if seen.len() >= REMEMBERED {
            seen.pop_front();
        }
        seen.push_back(id.to_owned());
        true
    }
}

async fn perform(clerk: &Clerk, actor: &Actor, said: Said) -> Result<ApprovalView, NotAnswered> {
    let Said { id, answer, note } = said;
    let outcome = match answer {
        Word::Approve => {
            let scope = Some(AnswerScope::Once);
            let request = approvals_approve::Request { id, scope, note, ..approvals_approve::Request::default() };
            clerk.perform::<ApprovalsApprove>(actor, request).await?
        }
        Word::Deny => {
            let request = approvals_deny::Request { id, note, ..approvals_deny::Request::default() };
            clerk.perform::<ApprovalsDeny>(actor, request).await?
        }
    };
    Ok(outcome.approval)
}
