//! Who may hear of a server at the moment there is something to tell: the policy may have changed since
//! somebody began to listen (GATE-19). And what is to be known of a server before it is used.

use std::sync::Arc;

use toolwarden_core::Caller;
use toolwarden_core::json::Part;

/// Asked before news of a server reach anybody.
pub trait Audience: std::fmt::Debug + Send + Sync {
    /// Whether a caller may hear of a server, and of this resource of it.
    fn may_hear(&self, caller: &Arc<Caller>, server: &Arc<str>, uri: Option<&str>) -> bool;

    /// Whether a server may be started or reached: what starts it is as a person accepted it (GATE-12).
    fn may_start(&self, server: &str) -> bool;

    /// A server may list something else than before: it says so, or was started anew.
    fn may_have_changed(&self, server: &str);

    /// What may be told of the words of a server, such as a line of its log.
    fn screened(&self, server: &str, words: &Part) -> Telling;
}

/// What becomes of the words of a server.
#[derive(Debug)]
pub enum Telling {
    AsItIs,
    Instead(Part),
    Nothing,
}
