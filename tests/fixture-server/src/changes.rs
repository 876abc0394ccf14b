//! Lists and resources that change while the server runs, and who hears of it.

use std::collections::HashSet;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::{Mutex, broadcast};

use crate::catalogue::WATCHED_RESOURCE;

/// One thing that changed.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    Tools,
    Prompts,
    Watched,
    /// The client is gone: whoever listens on its behalf stops.
    Closing,
}

/// The URIs one legacy session subscribed to.
pub type Watched = Arc<Mutex<HashSet<String>>>;

/// Serves one `subscriptions/listen` stream until the client leaves.
pub async fn listen(context: SubscriptionContext, mut news: broadcast::Receiver<Change>) -> Result<(), ErrorData> {
    loop {
        let change = tokio::select! {
            () = context.cancelled() => return Ok(()),
            change = news.recv() => match change {
                Ok(change) => change,
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            },
        };
        // The sink refuses what this stream did not ask for; that is the filter at work, not a failure.
        let _ = match change {
            Change::Tools => context.sink().notify_tool_list_changed().await,
            Change::Prompts => context.sink().notify_prompt_list_changed().await,
            Change::Watched => context.sink().notify_resource_updated(WATCHED_RESOURCE).await,
            Change::Closing => return Ok(()),
        };
    }
}

/// Tells one legacy session about changes until it ends.
pub async fn tell(peer: Peer<RoleServer>, watched: Watched, mut news: broadcast::Receiver<Change>) {
    loop {
        let change = match news.recv().await {
            Ok(change) => change,
            Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let sent = match change {
            Change::Tools => peer.notify_tool_list_changed().await,
            Change::Prompts => peer.notify_prompt_list_changed().await,
            Change::Watched if watched.lock().await.contains(WATCHED_RESOURCE) => {
                peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(WATCHED_RESOURCE)).await
            }
            Change::Watched => Ok(()),
            Change::Closing => return,
        };
        if sent.is_err() {
            return;
        }
    }
}
