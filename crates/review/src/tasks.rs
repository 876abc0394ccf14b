//! Held calls that their callers follow as tasks: kept beside the approval each waits for, so that whichever gateway is
//! asked knows how far one is, also after a restart.

use std::time::Duration;

use jiff::Timestamp;
use toolwarden_core::{TaskStage, token};
use toolwarden_store::state::{Approval, HeldTask, NewHeldTask, StateError};

use crate::desk::{Asking, Desk, later};

/// How long what a task gave is kept at least.
const KEPT: Duration = Duration::from_secs(60 * 60);
const ID_BYTES: usize = 20;
/// How the ids of these tasks begin.
pub const TASK_PREFIX: &str = "tw-";

impl Desk {
    /// Makes a task of a held call of this caller, or finds the one there is; none where they have as many as may be.
    ///
    /// # Errors
    /// The store cannot be written; then there is none.
    pub async fn make_task(&self, caller: &str, asking: &Asking) -> Result<Option<HeldTask>, StateError> {
        let mut random = [0; ID_BYTES];
        self.parts.keyring.random(&mut random).map_err(|_| StateError::Key)?;
        let (id, now) = (format!("{TASK_PREFIX}{}", token::letters(&random)), self.parts.clock.now());
        let expires_at = self.last_moment(asking).max(later(now, KEPT));
        let caller_mark = self.caller_mark(caller);
        let new = NewHeldTask { id: &id, approval: &asking.id, caller_mark: &caller_mark, now, expires_at };
        self.parts.state.make_task(new).await
    }

    /// A task of this caller.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn task(&self, caller: &str, id: &str) -> Result<Option<HeldTask>, StateError> {
        self.parts.state.held_task(id, &self.caller_mark(caller), self.parts.clock.now()).await
    }

    /// The newest tasks of this caller.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn tasks_of(&self, caller: &str, most: u32) -> Result<Vec<HeldTask>, StateError> {
        self.parts.state.tasks_of(&self.caller_mark(caller), self.parts.clock.now(), most).await
    }

    /// A held call by its id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn approval(&self, id: &str) -> Result<Option<Approval>, StateError> {
        self.parts.state.approval(id).await
    }

    /// Whether it was this gateway that took an approval, in whatever life.
    #[must_use]
    pub fn is_own(&self, approval: &Approval) -> bool {
        approval.node.as_ref() == Some(&self.parts.node)
    }

    /// The caller gave a call up that was about to leave: if it did not, its approval counts for nobody.
    pub async fn cancel_returned(&self, id: &str) {
        self.was_told_of(id).await;
        self.cancel(id).await;
    }

    /// Moves a task on, also to another approval; false where somebody else did, or where there is no room for what it
    /// gave.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn move_task(
        &self,
        task: &HeldTask,
        stage: TaskStage,
        next: Option<&Asking>,
    ) -> Result<bool, StateError> {
        let now = self.parts.clock.now();
        let mut to = task.clone();
        (to.stage, to.changed_at) = (stage, now);
        to.expires_at = task.expires_at.max(later(now, KEPT));
        if let Some(next) = next {
            to.approval.clone_from(&next.id);
            to.expires_at = to.expires_at.max(self.last_moment(next));
        }
        self.parts.state.move_task(task, &to).await
    }

    /// Until then somebody can answer, the call can be made, and its result be asked for.
    fn last_moment(&self, asking: &Asking) -> Timestamp {
        later(asking.expires_at, self.parts.times.approved.saturating_add(KEPT))
    }

    /// So that nobody who reads the database learns who a task belongs to.
    fn caller_mark(&self, caller: &str) -> String {
        self.mark(&[caller.as_bytes()])
    }
}
