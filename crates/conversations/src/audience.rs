//! Who may hear of a server at the moment there is something to tell: the policy may have changed since
//! somebody began to listen (GATE-19).

use std::sync::Arc;

use toolwarden_core::Caller;

/// Asked before news of a server reach anybody.
pub trait Audience: std::fmt::Debug + Send + Sync {
    /// Whether a caller may hear of a server, and of this resource of it.
    fn may_hear(&self, caller: &Arc<Caller>, server: &Arc<str>, uri: Option<&str>) -> bool;
}
