//! The guard: what keeps the corridor safe all day. The policy in force, how many calls there
//! may be, and the screen that what servers return is looked through with.
//!
//! Knows no wire and no conversation: it is told what was seen, and says what follows.

mod bodies;
mod closing;
mod flows;
mod heads;
mod large;
mod limits;
pub mod live;
mod rate;
pub mod redaction;
pub mod screen;
mod screens;
mod turns;

pub use bodies::{Bodies, Full, Room};
pub use closing::Closing;
pub use flows::Flows;
pub use heads::{Head, Heads};
pub use large::{CheckTurn, LargeChecks};
pub use limits::{Defaults, Held, Limiter, Over, PerMinute, Uncounted};
pub use live::Live;
pub use screen::Screen;
pub use screens::Screens;
