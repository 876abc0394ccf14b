//! What happens to held calls by themselves: they expire, are forgotten, and are found again after a crash.
//!
//! A gateway that starts looks what it had taken: without an intent in its journal nothing left, and the approval counts
//! again; with one, nobody knows. Those of a gateway that is gone become unknown after a while.

use std::sync::{Arc, Weak};
use std::time::Duration;

use toolwarden_core::ApprovalState;
use toolwarden_store::Index;
use toolwarden_store::index::Fate;
use toolwarden_store::state::{Approval, Moved, StateError};

use crate::desk::Desk;

/// How often this is done.
const EVERY: Duration = Duration::from_secs(5);
/// A gateway that did not say for so long that a call is on its way has lost it.
const GRACE: Duration = Duration::from_secs(60);
/// How long arguments stay that nobody needs any more.
const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl Desk {
    /// Looks after held calls until the gateway is gone.
    pub async fn keep(self: Arc<Self>) {
        let weak: Weak<Self> = Arc::downgrade(&self);
        drop(self);
        let mut is_well = true;
        loop {
            tokio::time::sleep(EVERY).await;
            let Some(desk) = weak.upgrade() else { return };
            match desk.tidy().await {
                Ok(()) => is_well = true,
                Err(error) if is_well => {
                    is_well = false;
                    tracing::warn!("held calls are not looked after: {error}");
                }
                Err(_) => {}
            }
        }
    }

    /// One round of it.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn tidy(&self) -> Result<(), StateError> {
        let (state, now) = (&self.parts.state, self.parts.clock.now());
        self.tell_again().await;
        let outstanding: Vec<String> = self.outstanding().iter().cloned().collect();
        state.approvals_are_on_their_way(&self.parts.node, &outstanding, now).await?;
        for ended in state.expire_approvals(now).await? {
            self.tell(
                "approval_expired",
                &ended.id,
                Some(&ended.call),
                "nobody answered it, or used the answer, in time",
            );
        }
        let silent_since = now.checked_sub(GRACE).unwrap_or(now);
        for lost in state.give_up_approvals(silent_since, now).await? {
            self.tell("approval_unknown", &lost.id, Some(&lost.call), "the gateway that made the call is gone");
        }
        let forgotten = now.checked_sub(REMEMBERED).unwrap_or(now);
        state.forget_approvals(forgotten).await?;
        state.forget_grants(forgotten).await?;
        state.forget_notices(forgotten).await?;
        state.forget_tasks(now).await?;
        self.look_at_agreement().await
    }

    /// Whether this gateway had taken anything when it last ended.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn has_taken(&self) -> Result<bool, StateError> {
        Ok(!self.parts.state.approvals_at(&self.parts.node).await?.is_empty())
    }

    /// Finds out what became of calls that this gateway had taken when it last ended. The index must have its journal.
    ///
    /// # Errors
    /// The store or the index cannot be used.
    pub async fn recover(&self, index: &Index) -> Result<usize, RecoveryError> {
        let mine = self.parts.state.approvals_at(&self.parts.node).await?;
        for approval in &mine {
            let since = approval.taken_at.unwrap_or(approval.held_at);
            let fate = index.fate_of(self.parts.journal.node(), &approval.id, since).await?;
            if fate != Fate::NeverLeft && approval.state == ApprovalState::Consumed {
                // It left, and nobody could write that down.
                self.moves(approval, ApprovalState::Dispatched).await?;
            }
            let (to, what, words) = match fate {
                Fate::NeverLeft if approval.state == ApprovalState::Consumed => {
                    (ApprovalState::Approved, "approval_returned", "the gateway ended before the call left")
                }
                Fate::Ended { is_ok: true } => {
                    (ApprovalState::Succeeded, "approval_succeeded", "found in the journal after a restart")
                }
                Fate::Ended { is_ok: false } => {
                    (ApprovalState::Failed, "approval_failed", "found in the journal after a restart")
                }
                Fate::NeverLeft | Fate::Unknown => {
                    (ApprovalState::Unknown, "approval_unknown", "the gateway ended while the call was on its way")
                }
            };
            if self.moves(approval, to).await? {
                self.tell(what, &approval.id, Some(&approval.call), words);
            }
        }
        Ok(mine.len())
    }
}

impl Desk {
    /// Whether it was this one who moved it.
    async fn moves(&self, approval: &Approval, to: ApprovalState) -> Result<bool, StateError> {
        let (node, now) = (&self.parts.node, self.parts.clock.now());
        let moved = self.parts.state.move_own_approval(&approval.id, to, node, now).await?;
        Ok(matches!(moved, Moved::Done(_)))
    }
}

/// Why it is not known what became of calls.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Index(#[from] toolwarden_store::index::IndexError),
}
