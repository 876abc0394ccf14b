//! Connections to upstream servers: HTTP with a pool, its predecessor with events, and children over their pipes.

pub mod child;
pub mod error;
pub mod event_pipe;
pub mod http;

pub use child::{Child, ChildError, ChildLimits, ChildSpec, Exit, ExitCause};
pub use error::UpstreamError;
pub use event_pipe::{EventPipe, EventPipeError, EventPipeExit, EventPipeLimits};
pub use http::{Body, EventStream, HttpTarget, HttpUpstream, Reply, ReplyBody, TargetError, Timeouts, Tls};
