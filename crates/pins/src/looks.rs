//! Who has seen everything a server lists since it was last heard to change.

use std::collections::HashSet;

use arc_swap::ArcSwap;

use crate::Kind;

/// So many callers are remembered; whoever is forgotten looks again.
const MOST_CALLERS: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Looks(ArcSwap<Round>);

/// What was looked at between two changes.
#[derive(Debug, Default, Clone)]
struct Round {
    /// How many changes were heard of before.
    number: u64,
    tools: HashSet<u64>,
    prompts: HashSet<u64>,
}

impl Round {
    fn callers(&mut self, kind: Kind) -> Option<&mut HashSet<u64>> {
        match kind {
            Kind::Tool => Some(&mut self.tools),
            Kind::Prompt => Some(&mut self.prompts),
            Kind::Launch | Kind::Instructions => None,
        }
    }
}

impl Looks {
    /// How many changes were heard of so far.
    pub(super) fn changes(&self) -> u64 {
        self.0.load().number
    }

    /// The server may have changed: nobody has looked since.
    pub(super) fn forget(&self) {
        self.0.rcu(|round| Round { number: round.number + 1, ..Round::default() });
    }

    pub(super) fn has(&self, kind: Kind, caller: u64) -> bool {
        let round = self.0.load();
        match kind {
            Kind::Tool => round.tools.contains(&caller),
            Kind::Prompt => round.prompts.contains(&caller),
            Kind::Launch | Kind::Instructions => true,
        }
    }

    /// A caller has looked at what was asked for after so many changes. If there was another one since, the
    /// list may be from before it.
    pub(super) fn note(&self, kind: Kind, caller: u64, after: u64) {
        if self.has(kind, caller) {
            return;
        }
        self.0.rcu(|round| {
            let mut round = (**round).clone();
            let is_same = round.number == after;
            if let Some(callers) = round.callers(kind).filter(|_| is_same) {
                if callers.len() >= MOST_CALLERS {
                    callers.clear();
                }
                callers.insert(caller);
            }
            round
        });
    }
}
