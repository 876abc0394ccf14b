//! How a message ends without an answer of its server: why, and the form in which its caller hears of it.

mod refusal;
mod wire;
mod words;

pub use refusal::{Denial, Refusal};
pub use wire::{MISSING_CAPABILITY, Reply, Shape, failure_message, refuse};
pub use words::{ask_for_approval, without_commands};
