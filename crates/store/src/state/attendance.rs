//! Whether anybody would hear of a held call: somebody watches, a webhook is told, or a person's client may be asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use toolwarden_core::ApprovalState;

use super::{Feed, State};

/// So long after somebody who follows what waits looked at it again, they count as watching.
const LOOKED: Duration = Duration::from_secs(15);

/// Who watches here.
#[derive(Debug)]
pub struct Attendance {
    watching: Arc<AtomicUsize>,
    /// When somebody last looked, in seconds.
    looked: AtomicI64,
}

impl Default for Attendance {
    fn default() -> Self {
        Self { watching: Arc::default(), looked: AtomicI64::new(i64::MIN) }
    }
}

/// Somebody who watches, until dropped.
#[derive(Debug)]
pub struct Attending(Arc<AtomicUsize>);

impl Drop for Attending {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Attendance {
    #[must_use]
    pub fn attend(&self) -> Attending {
        self.watching.fetch_add(1, Ordering::Relaxed);
        Attending(self.watching.clone())
    }

    /// Somebody who follows what waits looked at it again.
    pub fn looked(&self, now: Timestamp) {
        self.looked.store(now.as_second(), Ordering::Relaxed);
    }

    fn is_watched(&self, now: Timestamp) -> bool {
        let since = now.as_second().saturating_sub(self.looked.load(Ordering::Relaxed));
        let is_recent = u64::try_from(since).is_ok_and(|since| since <= LOOKED.as_secs());
        self.watching.load(Ordering::Relaxed) > 0 || is_recent
    }
}

impl State {
    /// Whether some webhook is told of calls that are held.
    #[must_use]
    pub fn tells_of_held(&self) -> bool {
        self.subscriptions.iter().any(|subscription| subscription.states.contains(&ApprovalState::Held))
    }
}

impl Feed {
    /// Whether anybody would hear of a held call now.
    #[must_use]
    pub fn is_attended(&self, now: Timestamp) -> bool {
        let counts = |end: Option<Timestamp>| end.is_none_or(|end| end > now);
        let is_asked = || {
            let known = self.known();
            let mut tokens = known.tokens.by_id.values().filter(|token| token.revoked_at.is_none());
            tokens.any(|token| token.claims.may_answer && counts(token.claims.expires_at))
        };
        self.bells().attendance.is_watched(now) || self.state().tells_of_held() || is_asked()
    }
}

#[cfg(test)]
#[path = "attendance_tests.rs"]
mod tests;
