//! How the policy was last read: when it was taken over, and why it was refused if the last reading was.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

/// A reading that was refused; the former policy stays in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub since: Timestamp,
    pub error: String,
}

/// Readings of the policy since the start.
#[derive(Debug)]
pub struct Reloads {
    pub(crate) taken: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) taken_at: AtomicI64,
    /// Zero where none was refused yet.
    pub(crate) refused_at: AtomicI64,
    refusal: Mutex<Option<Refused>>,
    for_restart: Mutex<Vec<String>>,
}

impl Reloads {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            taken: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            taken_at: AtomicI64::new(now.as_second()),
            refused_at: AtomicI64::new(0),
            refusal: Mutex::new(None),
            for_restart: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Refused>> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A policy was read and is in force.
    pub fn accepted(&self, now: Timestamp) {
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.taken_at.store(now.as_second(), Ordering::Relaxed);
        *self.lock() = None;
    }

    /// A policy was read and cannot be used. The same error again is the same refusal: it is tried again and again.
    pub fn refuse(&self, now: Timestamp, error: &str) {
        let mut refusal = self.lock();
        if refusal.as_ref().is_some_and(|known| known.error == error) {
            return;
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.refused_at.store(now.as_second(), Ordering::Relaxed);
        *refusal = Some(Refused { since: now, error: error.to_owned() });
    }

    /// What was read otherwise than at the start, and acts after a restart only; said once.
    pub fn waits_for_restart(&self, what: Vec<String>) {
        let mut known = self.for_restart.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != what && !what.is_empty() {
            tracing::warn!("changed, and acts after a restart only: {}", what.join(", "));
        }
        *known = what;
    }

    #[must_use]
    pub fn for_restart(&self) -> Vec<String> {
        self.for_restart.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why the last reading was refused; none where it was taken over.
    #[must_use]
    pub fn refusal(&self) -> Option<Refused> {
        self.lock().clone()
    }

    /// When the policy in force was read.
    #[must_use]
    pub fn taken_at(&self) -> Timestamp {
        Timestamp::from_second(self.taken_at.load(Ordering::Relaxed)).unwrap_or_default()
    }
}
