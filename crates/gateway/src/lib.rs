//! The corridor: the one way every message takes, across the eras and through the common door.
//!
//! Read `pipeline.rs` first: it is the one function every message walks through. Its steps are the room
//! `steps`; the room `doors` turns bytes into arrivals, `conversations` holds what is open with clients and servers.

mod aggregate;
mod asking;
mod bridge;
mod opening;
mod pipeline;
mod shared;
mod standing;
mod tasks;
mod waiting;

pub use pipeline::handle;
pub use standing::{Standing, standing_stream};
pub use toolwarden_conversations::Scope;
pub use toolwarden_conversations::upstreams::{ServerState, ServerStatus};
pub use toolwarden_pins::Book;
pub use toolwarden_refusals::{Denial, Refusal};
pub use toolwarden_steps::answer::{self, Answer, Events, Reply, Shape};
pub use toolwarden_steps::arrival::{Arrival, Course, Credential, Via};
pub use toolwarden_steps::budgets::Budgets;
pub use toolwarden_steps::flow::keep_noting;
pub use toolwarden_steps::gateway::{Full, Gateway, Parts, Room};
pub use toolwarden_steps::identify::identify;
pub use toolwarden_steps::identities::Identities;
pub use toolwarden_steps::inspect::InspectedBody;
pub use toolwarden_steps::moding::{NotSwitched, OpenSession};
pub use toolwarden_steps::protection::Protection;
pub use toolwarden_steps::replacing::{NotTaken, Reading};
pub use toolwarden_steps::settings::{self, Hold, Settings};
