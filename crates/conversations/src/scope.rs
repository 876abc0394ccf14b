//! Which servers a conversation of a client reaches.

use std::sync::Arc;

/// Which servers a door leads to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One server, its names unchanged.
    One(Arc<str>),
    /// All of them, under one roof.
    All,
}
