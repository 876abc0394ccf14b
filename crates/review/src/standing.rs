//! Looks at the desk before a machine is asked: what a person said, or has yet to say, is not a machine's to go over.

use toolwarden_core::{ApprovalState, HeldCall, Opinion};
use toolwarden_store::state::{Approval, Moved, NewApproval, Standing as Stored, StateError};

use crate::desk::{Desk, Marks};

/// What a held call meets at the desk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Nothing,
    /// It waits for a person, perhaps with what a machine said of it.
    Waits {
        id: String,
        opinion: Option<Box<Opinion>>,
    },
    /// A person answered it, it is on its way, nobody knows how it ended, or its caller is not heard for a while.
    Settled,
}

impl Desk {
    /// What this call would meet. Nothing is laid on the desk.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn standing(&self, marks: Marks<'_>, call: &HeldCall) -> Result<Standing, StateError> {
        let found = self.look(marks, call).await?;
        Ok(match found {
            Stored::Nothing => Standing::Nothing,
            Stored::There(there) if there.state == ApprovalState::Held => {
                Standing::Waits { id: there.id, opinion: there.call.opinion.map(Box::new) }
            }
            Stored::There(_) | Stored::Rejected => Standing::Settled,
        })
    }

    /// What the same call met before, and still counts; none where there is nothing. Nothing is laid on the desk.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn found(&self, marks: Marks<'_>, call: &HeldCall) -> Result<Option<Approval>, StateError> {
        let found = self.look(marks, call).await?;
        Ok(match found {
            Stored::There(there) => Some(*there),
            Stored::Nothing | Stored::Rejected => None,
        })
    }

    async fn look(&self, marks: Marks<'_>, call: &HeldCall) -> Result<Stored, StateError> {
        let (call_mark, caller_mark) = self.both_marks(marks, call);
        let now = self.parts.clock.now();
        let new = NewApproval { id: "", call_mark: &call_mark, caller_mark: &caller_mark, call, now, expires_at: now };
        let mut found = self.parts.state.call_standing(&new).await?;
        if let Stored::There(there) = &found
            && self.has_moved_on(there).await
        {
            // It ended a moment ago: the same call, made again, is another one.
            found = self.parts.state.call_standing(&new).await?;
        }
        Ok(found)
    }

    /// Keeps a newer verdict with a call that lies here already. Where that fails the person is told the older one.
    pub(crate) async fn keep_opinion(&self, there: &Approval, call: &HeldCall) {
        let Some(opinion) = call.opinion.as_ref().filter(|opinion| opinion.verdict.is_some()) else { return };
        if there.state == ApprovalState::Held
            && let Err(error) = self.parts.state.keep_opinion(&there.id, opinion).await
        {
            tracing::warn!("what a classifier said of a held call is not kept: {error}");
        }
    }

    /// Takes a call away that waited, because a machine paid for it; false where a person was faster.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn paid_otherwise(&self, id: &str) -> Result<bool, StateError> {
        match self.parts.state.withdraw_approval(id, self.parts.clock.now()).await? {
            Moved::Done(approval) => {
                self.tell("approval_cancelled", id, Some(&approval.call), "a classifier allowed it meanwhile");
                Ok(true)
            }
            Moved::Not(_) | Moved::NoSuch => Ok(false),
        }
    }
}
