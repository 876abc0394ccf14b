//! What is counted of a classifier: its verdicts, and why there was none.

use std::sync::atomic::{AtomicU64, Ordering};

use toolwarden_core::{MachineVerdict, NO_VERDICT};

const VERDICTS: [&str; 3] = ["allow", "hold", "none"];

/// Where a verdict came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Asked,
    /// The same question was asked before.
    Cached,
}

impl Source {
    const ALL: [Self; 2] = [Self::Asked, Self::Cached];

    fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Cached => "cached",
        }
    }
}

/// The counts.
#[derive(Debug, Default)]
pub struct Classifying {
    /// By verdict, then by source.
    verdicts: [[AtomicU64; 2]; VERDICTS.len()],
    failures: [AtomicU64; NO_VERDICT.len()],
}

impl Classifying {
    /// The classifier said this of a call; without a verdict, why.
    pub fn said(&self, verdict: Option<MachineVerdict>, source: Source, failure: Option<&str>) {
        let place = match verdict {
            Some(MachineVerdict::Allow) => 0,
            Some(MachineVerdict::Hold) => 1,
            None => 2,
        };
        if let Some(count) = self.verdicts.get(place).and_then(|row| row.get(source as usize)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let place = failure.and_then(|failure| NO_VERDICT.iter().position(|code| *code == failure));
        if let Some(count) = place.and_then(|place| self.failures.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn verdicts(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        VERDICTS.iter().zip(&self.verdicts).flat_map(|(verdict, row)| {
            let counts = Source::ALL.into_iter().zip(row);
            counts.map(|(source, count)| (*verdict, source.as_str(), count.load(Ordering::Relaxed)))
        })
    }

    pub(crate) fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NO_VERDICT.iter().zip(&self.failures).map(|(why, count)| (*why, count.load(Ordering::Relaxed)))
    }
}
