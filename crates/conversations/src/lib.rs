//! Conversations on both sides of the gateway: sessions of clients, and links to servers.
//!
//! Nothing is decided here but what a server may ask of a client (GATE-18). `upstreams` reaches servers and
//! finds out which era each speaks, `greeting` opens what they speak, `sessions` remembers what a legacy
//! client agreed to and has in flight, and the rest is what is known of a server: its lists, tasks and names.

pub mod alias;
pub mod ask;
mod audience;
pub mod bounds;
mod failure;
pub mod flight;
pub mod greeting;
pub mod known;
pub mod listing;
pub mod memo;
pub mod questions;
pub mod receipt;
pub mod request_state;
mod scope;
pub mod sessions;
pub mod source;
pub mod stream_log;
pub mod tasks;
pub mod upstreams;
pub mod whole;

pub use audience::{Audience, Telling};
pub use failure::Failure;
pub use scope::Scope;
