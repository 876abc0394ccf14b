//! Flow labels (GATE-20): what kinds of data a conversation has met so far.
//!
//! A call of a labelled tool leaves its labels with the anchor it was made under, before it leaves; rules see
//! them as `context.seen`. Nothing is kept while no tool is labelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Anchors that are remembered; beyond that the one that was not used for the longest time is forgotten.
const MOST_ANCHORS: usize = 100_000;

/// What was seen, by anchor.
#[derive(Debug, Default)]
pub struct Flows(Mutex<HashMap<String, Seen>>);

#[derive(Debug)]
struct Seen {
    labels: Arc<[String]>,
    used: Instant,
}

impl Flows {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The labels seen under an anchor that was used within its life.
    #[must_use]
    pub fn seen(&self, anchor: &str, now: Instant, life: Duration) -> Arc<[String]> {
        let mut all = self.lock();
        match all.get_mut(anchor) {
            Some(seen) if now.saturating_duration_since(seen.used) < life => {
                seen.used = now;
                seen.labels.clone()
            }
            Some(_) => {
                all.remove(anchor);
                Arc::default()
            }
            None => Arc::default(),
        }
    }

    /// Adds labels to an anchor.
    pub fn add(&self, anchor: &str, labels: &[String], now: Instant) {
        if labels.is_empty() {
            return;
        }
        let mut all = self.lock();
        if all.len() >= MOST_ANCHORS && !all.contains_key(anchor) {
            let oldest = all.iter().min_by_key(|(_, seen)| seen.used).map(|(anchor, _)| anchor.clone());
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        let seen = all.entry(anchor.to_owned()).or_insert_with(|| Seen { labels: Arc::default(), used: now });
        seen.used = now;
        let mut known = seen.labels.to_vec();
        known.extend(labels.iter().filter(|label| !seen.labels.contains(label)).cloned());
        if known.len() > seen.labels.len() {
            seen.labels = known.into();
        }
    }

    /// A conversation that is over leaves nothing behind.
    pub fn forget(&self, anchor: &str) {
        self.lock().remove(anchor);
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

#[cfg(test)]
#[test]
fn labels_add_up_under_their_anchor_and_end_with_it() {
    let (flows, start, life) = (Flows::default(), tokio::time::Instant::now().into_std(), Duration::from_secs(60));
    let [private, out] = ["reads_private", "sends_out"].map(str::to_owned);
    flows.add("a", &[], start);
    assert!(flows.is_empty(), "nothing is kept for what has no label");
    flows.add("a", std::slice::from_ref(&private), start);
    flows.add("a", &[out.clone(), private.clone()], start);
    assert_eq!(*flows.seen("a", start, life), [private, out]);
    assert!(flows.seen("b", start, life).is_empty());
    let later = start + life / 2;
    assert_eq!(flows.seen("a", later, life).len(), 2, "using it keeps it");
    assert_eq!(flows.seen("a", later + life / 2, life).len(), 2);
    assert!(flows.seen("a", later + life * 2, life).is_empty() && flows.is_empty());
    flows.add("c", &["sends_out".to_owned()], start);
    flows.forget("c");
    assert!(flows.is_empty());
}
