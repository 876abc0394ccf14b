//! Connections to upstream servers: HTTP with a pool, and children that speak over their pipes.

pub mod child;
pub mod error;
pub mod http;

pub use child::{Child, ChildError, ChildLimits, ChildSpec, Exit, ExitCause};
pub use error::UpstreamError;
pub use http::{Body, EventStream, HttpTarget, HttpUpstream, Reply, ReplyBody, TargetError, Timeouts, Tls};
