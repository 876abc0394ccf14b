//! Flow labels (GATE-20) that this process knows of: what kinds of data callers have met.
//!
//! Labels are only ever added, so what is known here need not be read or written again while it is in use. What is not known
//! here another process may know: the store has the last word (WORK-3).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Anchors that are remembered; beyond that the one that was not used for the longest time is forgotten.
const MOST_ANCHORS: usize = 100_000;

/// What is known, by anchor.
#[derive(Debug, Default)]
pub struct Flows(Mutex<HashMap<String, Known>>);

#[derive(Debug)]
struct Known {
    labels: Arc<[String]>,
    used: Instant,
    /// Used since `take_used` was last asked.
    is_used: bool,
}

impl Flows {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call under an anchor. What is known of one that was not used within `life` is forgotten.
    pub fn used(&self, anchor: &str, now: Instant, life: Duration) {
        let mut all = self.lock();
        let known = entry(&mut all, anchor, now);
        if now.saturating_duration_since(known.used) >= life {
            known.labels = Arc::default();
        }
        (known.used, known.is_used) = (now, true);
    }

    /// The labels known of an anchor that was used within `life`.
    #[must_use]
    pub fn known(&self, anchor: &str, now: Instant, life: Duration) -> Arc<[String]> {
        let all = self.lock();
        let known = all.get(anchor).filter(|known| now.saturating_duration_since(known.used) < life);
        known.map(|known| known.labels.clone()).unwrap_or_default()
    }

    /// Adds labels to an anchor.
    pub fn add(&self, anchor: &str, labels: &[String], now: Instant) {
        if labels.is_empty() {
            return;
        }
        let mut all = self.lock();
        let known = entry(&mut all, anchor, now);
        (known.used, known.is_used) = (now, true);
        let mut next = known.labels.to_vec();
        next.extend(labels.iter().filter(|label| !known.labels.contains(label)).cloned());
        if next.len() > known.labels.len() {
            known.labels = next.into();
        }
    }

    /// The anchors used since this was last asked, with what is known of each.
    #[must_use]
    pub fn take_used(&self) -> Vec<(String, Arc<[String]>)> {
        let mut all = self.lock();
        let used = all.iter_mut().filter_map(|(anchor, known)| {
            let is_used = std::mem::take(&mut known.is_used);
            is_used.then(|| (anchor.clone(), known.labels.clone()))
        });
        used.collect()
    }
}

fn entry<'a>(all: &'a mut HashMap<String, Known>, anchor: &str, now: Instant) -> &'a mut Known {
    if all.len() >= MOST_ANCHORS && !all.contains_key(anchor) {
        let oldest = all.iter().min_by_key(|(_, known)| known.used).map(|(anchor, _)| anchor.clone());
        oldest.and_then(|oldest| all.remove(&oldest));
    }
    all.entry(anchor.to_owned()).or_insert_with(|| Known { labels: Arc::default(), used: now, is_used: false })
}

#[cfg(test)]
#[test]
fn labels_add_up_under_their_anchor_and_are_forgotten_when_it_is_not_used() {
    let (flows, start, life) = (Flows::default(), tokio::time::Instant::now().into_std(), Duration::from_secs(60));
    let [private, out] = ["reads_private", "sends_out"].map(str::to_owned);
    flows.add("a", &[], start);
    assert!(flows.take_used().is_empty(), "nothing is kept for what has no label");
    flows.add("a", std::slice::from_ref(&private), start);
    flows.add("a", &[out.clone(), private.clone()], start);
    assert_eq!(*flows.known("a", start, life), [private, out]);
    assert!(flows.known("b", start, life).is_empty());
    assert_eq!(flows.take_used().len(), 1);
    assert!(flows.take_used().is_empty(), "each use is told once");
    let later = start + life / 2;
    flows.used("a", later, life);
    assert_eq!(flows.known("a", later + life / 2, life).len(), 2, "using it keeps it");
    assert!(flows.known("a", later + life, life).is_empty());
    flows.used("a", later + life, life);
    assert!(flows.known("a", later + life, life).is_empty(), "what was forgotten does not come back");
}
