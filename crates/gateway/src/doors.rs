//! Where messages come in: MCP over HTTP, in its newer and its oldest form, and MCP over stdio.

mod body;
pub mod hosts;
mod http;
mod lines;
mod listener;
mod post;
mod sse;
pub mod stdio;
mod streams;
pub mod tls;
mod workers;

pub use body::AnswerBody;
pub use http::serve_request;
pub use listener::{Listener, serve};
pub use workers::Workers;
