//! The wire: JSON-RPC envelopes, both eras of MCP, HTTP, SSE and stdio.

pub mod backoff;
pub mod compose;
pub mod eras;
pub mod fitting_meta;
pub mod headers;
pub mod ladder;
pub mod message;
pub mod methods;
pub mod parameters;
pub mod questions;
pub mod scan;
pub mod sse;
pub mod stdio;
pub mod trace;
pub mod upstream;
pub mod versions;

pub use backoff::Backoff;
pub use compose::{Edit, HopMember, Wire};
pub use message::{Id, Incoming, Message, MessageError, Notification, Request, Response};
pub use methods::{Direction, Form, Method, Treatment};
pub use trace::Trace;
pub use versions::{Era, Version};
