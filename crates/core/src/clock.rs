//! Time as a parameter: the porch hands in the real clock, tests hand in their own.

use jiff::Timestamp;

/// Tells the time of day.
pub trait Clock: Send + Sync + std::fmt::Debug {
    fn now(&self) -> Timestamp;
}
