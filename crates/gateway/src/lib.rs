//! The corridor: the life of a call, one file per step.
//!
//! Read `pipeline.rs` first: it is the one function every message walks through. The room `doors` turns bytes
//! into arrivals, `conversations` holds what is open with clients and servers, `answer` alone knows wire codes.

mod aggregate;
pub mod answer;
mod arrival;
mod audit;
mod bridge;
mod catalog;
mod decide;
mod ending;
mod exchange;
mod forward;
mod gateway;
mod identify;
mod inspect;
mod news;
mod opening;
mod parameters;
mod pinning;
mod pipeline;
mod places;
mod resolve;
mod review;
mod roots;
pub mod settings;
mod shared;
mod visible;
mod visits;
mod watching;

pub use answer::{Answer, Events, Reply, Shape};
pub use arrival::{Arrival, Course, Credential, Via};
pub use gateway::{Gateway, Parts};
pub use identify::identify;
pub use inspect::InspectedBody;
pub use pipeline::handle;
pub use settings::{Hold, Settings};
pub use toolwarden_conversations::Scope;
pub use toolwarden_conversations::upstreams::{ServerState, ServerStatus};
pub use toolwarden_guard::pins::Book;
pub use toolwarden_refusals::{Denial, Refusal};
pub use visits::Standing;
