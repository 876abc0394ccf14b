//! Where messages come in: MCP over HTTP, in its newer and its oldest form, and MCP over stdio.
//!
//! A door turns bytes into an `Arrival`, hands it to the corridor, and puts the answer on its wire. What a
//! caller may do is no door's business: there is no way from here to a server but `toolwarden_gateway::handle`.

mod beside;
mod body;
pub mod hosts;
mod http;
mod landing;
mod lines;
mod listener;
mod news;
mod observing;
mod post;
mod query;
mod sse;
pub mod stdio;
mod streams;
pub mod tls;
mod workers;

pub use beside::{Answering, Beside};
pub use body::AnswerBody;
pub use http::serve_request;
pub use listener::{Listener, serve};
pub use workers::Workers;

#[cfg(test)]
mod tests;
