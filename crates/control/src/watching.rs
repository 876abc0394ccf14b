//! What becomes of held calls, as it happens, for those who may see them.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use toolwarden_store::state::{ApprovalNews, Attending};

use crate::approvals::ApprovalView;
use crate::operations::ApprovalsList;
use crate::{Actor, Clerk, ControlError, Operation};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ControlEvent {
    /// A held call is in another state.
    Approval(Box<ApprovalView>),
    /// More happened than could be told: whoever listens looks at everything again.
    Missed {},
}

impl ControlEvent {
    /// The name it is told under.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Approval(_) => "approval",
            Self::Missed {} => "missed",
        }
    }

    /// What is told, as JSON.
    #[must_use]
    pub fn data(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }
}

/// Somebody who listens.
#[derive(Debug)]
pub struct Listening {
    clerk: Arc<Clerk>,
    actor: Actor,
    news: broadcast::Receiver<ApprovalNews>,
    /// What was heard and not told yet: whoever waits may give up in between.
    heard: Option<ApprovalNews>,
    _attending: Attending,
}

impl Clerk {
    /// Listens on behalf of somebody, from now on.
    ///
    /// # Errors
    /// They may not, or no gateway runs here.
    pub fn listen(self: &Arc<Self>, actor: &Actor) -> Result<Listening, ControlError> {
        if !ApprovalsList::is_for(actor) {
            return Err(ControlError::Forbidden(actor.lacks_rights(&ApprovalsList::rights())));
        }
        let feed = self.parts.feed.as_ref().ok_or(ControlError::Without("the feed of a running gateway"))?;
        let (news, _attending) = (feed.bells().listen(), feed.bells().attendance.attend());
        Ok(Listening { clerk: self.clone(), actor: actor.clone(), news, heard: None, _attending })
    }
}

impl Listening {
    /// The next event this one may hear of; none once the gateway ends.
    pub async fn next(&mut self) -> Option<ControlEvent> {
        loop {
            if self.heard.is_none() {
                self.heard = match self.news.recv().await {
                    Ok(news) => Some(news),
                    Err(RecvError::Lagged(_)) => return Some(ControlEvent::Missed {}),
                    Err(RecvError::Closed) => return None,
                };
            }
            let Some(id) = self.heard.as_ref().map(|news| news.id.clone()) else { continue };
            // As it is by now: what comes in between is told once more.
            let found = self.clerk.state().ok()?.approval(&id).await;
            self.heard = None;
            let Ok(found) = found else { return Some(ControlEvent::Missed {}) };
            let Some(approval) = found else { continue };
            if self.actor.sees_held(&approval.call) {
                let view = ApprovalView::from(approval).offered_to(&self.actor);
                return Some(ControlEvent::Approval(Box::new(view)));
            }
        }
    }
}
