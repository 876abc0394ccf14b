//! The corridor: the life of a call, one file per step, and the doors it comes in by.
//!
//! Read `pipeline.rs` first: it is the one function every message walks through. Doors turn bytes into
//! arrivals, `upstreams` holds the conversations with servers, and `answer` alone knows wire codes.

mod aggregate;
mod answer;
mod arrival;
mod audit;
mod bridge;
mod catalog;
mod decide;
pub mod doors;
mod exchange;
mod forward;
mod gateway;
mod identify;
mod inspect;
mod live;
mod news;
mod opening;
mod parameters;
mod pipeline;
mod questions;
mod refusal;
mod request_state;
mod resolve;
mod review;
mod roots;
mod sessions;
pub mod settings;
mod shared;
mod stream_log;
mod tasks;
mod upstreams;
mod watching;

pub use answer::Answer;
pub use arrival::{Arrival, Credential, Scope, Via};
pub use gateway::{Gateway, Parts};
pub use settings::{Hold, Settings};
pub use upstreams::{ServerState, ServerStatus};

#[cfg(test)]
mod tests;
