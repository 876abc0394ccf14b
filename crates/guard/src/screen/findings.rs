//! What was found: kinds with their counts, and the first few places. Never what stood there.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::json;

/// So many places are told; counts go on.
const MOST_TOLD: usize = 32;

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub kind: String,
    /// A JSON pointer to the text it is in.
    pub place: String,
    /// In bytes.
    pub length: usize,
}

/// Everything that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    counts: BTreeMap<String, usize>,
    told: Vec<Finding>,
}

impl Findings {
    pub(super) fn add(&mut self, kind: &str, place: &str, length: usize) {
        self.count(kind, 1);
        self.tell(kind, place, length);
    }

    pub(super) fn count(&mut self, kind: &str, more: usize) {
        match self.counts.get_mut(kind) {
            Some(count) => *count += more,
            None => drop(self.counts.insert(kind.to_owned(), more)),
        }
    }

    pub(super) fn tell(&mut self, kind: &str, place: &str, length: usize) {
        if self.told.len() < MOST_TOLD {
            self.told.push(Finding { kind: kind.to_owned(), place: place.to_owned(), length });
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How often each kind was found.
    #[must_use]
    pub fn counts(&self) -> &BTreeMap<String, usize> {
        &self.counts
    }

    /// The first of them, with their places.
    #[must_use]
    pub fn told(&self) -> &[Finding] {
        &self.told
    }

    /// For whoever gets a result that is marked, as JSON.
    #[must_use]
    pub fn mark(&self) -> String {
        let places = self.told.iter();
        let places: Vec<_> = places
            .map(|finding| json!({ "kind": finding.kind, "place": finding.place, "length": finding.length }))
            .collect();
        json!({ "kinds": self.counts, "places": places }).to_string()
    }
}

/// Kinds and counts, for people and records.
impl fmt::Display for Findings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (kind, count)) in self.counts.iter().enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            write!(formatter, "{separator}{kind} ({count})")?;
        }
        Ok(())
    }
}
