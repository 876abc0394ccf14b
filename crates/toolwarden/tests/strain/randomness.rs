//! Random numbers from a seed that can be told.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// A sequence of random numbers (SplitMix64).
#[derive(Debug)]
pub struct Random {
    pub seed: u64,
    state: u64,
}

impl Random {
    /// With another seed each time.
    pub fn new() -> Self {
        let seed = RandomState::new().build_hasher().finish();
        Self { seed, state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// A time between two numbers of milliseconds.
    pub fn between(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.below(most - least + 1))
    }
}
