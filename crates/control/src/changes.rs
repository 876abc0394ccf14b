//! The change feed: what the clerk changed is taken over by the server before the answer goes out.
//!
//! A change raises a number; a follower reloads and says how far it came, and with what fault.
//! Without a follower nobody waits.

use std::time::Duration;

use tokio::sync::watch;
use toolwarden_store::state::Author;

/// How long an answer waits for the server to take a change over.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a follower said last.
#[derive(Debug, Clone, Default)]
struct Taken {
    change: u64,
    fault: Option<String>,
}

/// A change that was made.
#[derive(Debug, Clone, Default)]
pub struct Change {
    number: u64,
    /// Who made it. Of changes that come together, the last one's.
    pub by: Option<Author>,
}

/// The feed.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    feed: watch::Sender<Change>,
    taken: watch::Sender<Taken>,
}

/// One who takes changes over.
#[derive(Debug)]
pub struct Follower {
    feed: watch::Receiver<Change>,
    taken: watch::Sender<Taken>,
}

impl Changes {
    #[must_use]
    pub fn follow(&self) -> Follower {
        Follower { feed: self.feed.subscribe(), taken: self.taken.clone() }
    }

    /// Announces a change and waits until it is in force. Gives what stands in the way, if anything.
    pub(crate) async fn announce(&self, by: Author) -> Option<String> {
        let mut change = 0;
        self.feed.send_modify(|last| {
            change = last.number + 1;
            *last = Change { number: change, by: Some(by) };
        });
        if self.feed.receiver_count() == 0 {
            return None;
        }
        let mut taken = self.taken.subscribe();
        let answer = tokio::time::timeout(PATIENCE, taken.wait_for(|taken| taken.change >= change)).await;
        match answer {
            Ok(Ok(taken)) => taken.fault.clone(),
            Ok(Err(_)) => Some("the server is stopping".to_owned()),
            Err(_) => Some("the server did not take it over in time; see its log".to_owned()),
        }
    }
}

impl Follower {
    /// The next change; none when the feed has ended. Changes that come together are one.
    pub async fn next(&mut self) -> Option<Change> {
        self.feed.changed().await.ok()?;
        Some(self.feed.borrow_and_update().clone())
    }

    /// Says that a change was taken over, or why not.
    pub fn took(&self, change: &Change, fault: Option<String>) {
        self.taken.send_replace(Taken { change: change.number, fault });
    }
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
