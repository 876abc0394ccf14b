//! The window: how Toolwarden itself speaks to others over HTTP, apart from MCP.
//!
//! One POST at a time to an address an administrator wrote down, bounded in size and time. Redirects are answers, never
//! followed; nothing of an address but host and port is ever told, because the rest may be a secret.

mod post;

pub use post::{Answered, Bounds, NetError, Place};
