//! The guard: what keeps the corridor safe all day. The policy in force, and what servers taught us.
//!
//! Knows no wire and no conversation: it is told what was seen, and says what follows.

pub mod live;
pub mod pins;

pub use live::Live;
