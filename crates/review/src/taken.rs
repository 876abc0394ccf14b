//! An approval in the hands of the gateway that makes its call.
//!
//! Dropped before the call left, it is given back: nothing happened, and the same call may use it. Once the call is in
//! the journal it is used up, whatever becomes of it.

use std::sync::Arc;

use toolwarden_core::{ApprovalState, Status};
use toolwarden_store::state::{Approval, StateError};

use crate::desk::Desk;

/// Why an approval could not be taken.
#[derive(Debug)]
pub enum NotTaken {
    /// It is in another state by now.
    State(ApprovalState),
    Store(StateError),
    /// What is done cannot be recorded.
    Record,
}

/// An approval that was taken.
#[derive(Debug)]
pub struct Taken {
    desk: Arc<Desk>,
    approval: Approval,
    has_left: bool,
}

impl Taken {
    pub(crate) fn new(desk: Arc<Desk>, approval: Approval) -> Self {
        Self { desk, approval, has_left: false }
    }

    #[must_use]
    pub fn approval(&self) -> &Approval {
        &self.approval
    }

    /// The call is in the journal: from now on it may have had an effect.
    pub async fn leaves(&mut self) {
        self.has_left = true;
        let moved = self.desk.moved(&self.approval.id, ApprovalState::Dispatched);
        if let Err(error) = moved.await {
            // The journal has it, and says so if this gateway ends before its call.
            tracing::warn!("that an approved call left is not told to others: {error}");
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.has_left {
            return;
        }
        let (desk, id) = (self.desk.clone(), self.approval.id.clone());
        desk.ending().insert(id.clone());
        desk.spawn(async move |desk| {
            desk.tell_end(&id, ApprovalState::Approved).await;
        });
    }
}

impl Desk {
    /// Tells how a call ended that left under an approval.
    pub fn ended(self: &Arc<Self>, id: &str, status: Status) {
        let id = id.to_owned();
        let state = match status {
            Status::Ok => ApprovalState::Succeeded,
            Status::ToolError | Status::TooLarge => ApprovalState::Failed,
            Status::UpstreamError
            | Status::Timeout
            | Status::Cancelled
            | Status::Denied
            | Status::Held
            | Status::Unknown => ApprovalState::Unknown,
        };
        self.ending().insert(id.clone());
        self.spawn(async move |desk| {
            desk.tell_end(&id, state).await;
        });
    }

    /// Tells the store how a call ended here; what cannot be told is tried again.
    async fn tell_end(&self, id: &str, state: ApprovalState) {
        if let Err(error) = self.moved(id, state).await {
            tracing::warn!("how an approved call ended is not told to others yet: {error}");
            self.untold().push((id.to_owned(), state));
        }
        self.outstanding().remove(id);
        self.ending().remove(id);
        self.told.notify_waiters();
    }

    /// Tells what could not be told before.
    pub(crate) async fn tell_again(&self) {
        let untold = std::mem::take(&mut *self.untold());
        for (id, state) in untold {
            if self.moved(&id, state).await.is_err() {
                self.untold().push((id, state));
            }
        }
    }

    /// A call that paused is on its way again.
    pub fn goes_on(&self, id: &str) {
        self.outstanding().insert(id.to_owned());
    }

    /// The call goes on in another request, whenever its client comes back.
    pub fn pauses(&self, id: &str) {
        self.outstanding().remove(id);
    }

    async fn moved(&self, id: &str, to: ApprovalState) -> Result<(), StateError> {
        let (node, now) = (&self.parts.node, self.parts.clock.now());
        self.parts.state.move_own_approval(id, to, node, now).await.map(drop)
    }

    pub(crate) fn spawn<F>(self: &Arc<Self>, work: impl FnOnce(Arc<Self>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        // Outside of a runtime the process ends: the next start finds out.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(work(self.clone()));
        }
    }
}
