//! The gateway under strain: killed at random moments, with many callers, and beside others that misbehave.
//!
//! Everything goes through the real program. The servers behind it are the test's own (`upstream.rs`), or the
//! fixture server as a child. `TOOLWARDEN_SOAK=N` kills and loads N times as long. Nothing here measures speed:
//! waits are bounded generously, so that a busy machine is slow and not wrong.

mod caller;
mod crowd;
mod dying;
mod held_followed;
mod held_killed;
mod held_place;
mod held_raced;
mod held_random;
mod house;
mod huge;
mod journal;
mod killing;
mod lasting;
mod randomness;
mod scripted;
mod slow;
mod stuck;
mod tally;
mod upstream;
