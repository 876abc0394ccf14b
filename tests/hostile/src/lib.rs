//! The hostile kit: a server, a client and a workspace that mean harm, and a gateway for them to meet.
//!
//! Every attack runs twice. The gateway as people run it must refuse it; with the one guard switched off
//! that it is aimed at, it must succeed, or it would prove nothing.

pub mod attack;
pub mod bearers;
pub mod child;
pub mod client;
pub mod house;
pub mod keyring;
pub mod logs;
pub mod pipe;
pub mod server;
pub mod workspace;

pub use attack::{Outcome, Tried, outcome};
pub use bearers::Who;
pub use client::{Ask, Got};
pub use house::{Given, House};
pub use server::{Heard, Said, Server};
pub use toolwarden_core::Weakness;

/// Why an attempt came to nothing: the kit failed, not the attack.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;
