//! How often something took how long: one addition for each value, no lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts of durations between bounds that are fixed at the start.
#[derive(Debug)]
pub(crate) struct Histogram {
    /// Upper bounds in microseconds, ascending.
    bounds: &'static [u64],
    /// One more than there are bounds: the last takes what is longer than all of them.
    counts: Box<[AtomicU64]>,
    microseconds: AtomicU64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, microseconds: AtomicU64::new(0) }
    }

    pub(crate) fn observe(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let place = self.bounds.partition_point(|bound| *bound < took);
        if let Some(count) = self.counts.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.microseconds.fetch_add(took, Ordering::Relaxed);
    }

    /// Upper bounds in microseconds with how many were at most that; then how many there were.
    pub(crate) fn cumulated(&self) -> (Vec<(u64, u64)>, u64) {
        let mut sum = 0;
        let mut below = Vec::with_capacity(self.bounds.len());
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            sum += count.load(Ordering::Relaxed);
            below.push((*bound, sum));
        }
        let longer = self.counts.last().map_or(0, |count| count.load(Ordering::Relaxed));
        (below, sum + longer)
    }

    pub(crate) fn seconds(&self) -> f64 {
        Duration::from_micros(self.microseconds.load(Ordering::Relaxed)).as_secs_f64()
    }
}

#[cfg(test)]
#[test]
fn a_value_counts_in_its_bucket_and_in_every_larger_one() {
    let histogram = Histogram::new(&[10, 100]);
    for micros in [10, 11, 100, 5000] {
        histogram.observe(Duration::from_micros(micros));
    }
    assert_eq!(histogram.cumulated(), (vec![(10, 1), (100, 3)], 4));
    assert!((histogram.seconds() - 0.005_121).abs() < 1e-9);
}
