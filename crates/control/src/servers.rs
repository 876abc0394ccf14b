//! What the clerk knows of upstream servers and open conversations. A running gateway tells it through `Servers`; the
//! two rooms do not know each other.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};
use toolwarden_policy::input::ServerInput;

use crate::sessions::{SessionView, Stays};

/// One server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerView {
    pub name: String,
    /// `connected`, `idle` (not needed yet), `error`, `disabled`, `not running` (no gateway runs).
    pub status: String,
    /// How many tools it has listed so far.
    pub tools: usize,
    pub detail: Option<String>,
    /// `command`, `url` or `none`.
    pub reached_by: String,
    /// Where it is configured.
    pub source: String,
    /// Whose alone it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Why none of its tools can be called, where a rule does not fit them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_refused: Option<String>,
    /// Which gateway says so, where it is not the one that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
}

/// One tool, and what a call of it would meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolView {
    pub name: String,
    pub description: Option<String>,
    /// For whoever asks, with arguments unknown; none where that cannot be said.
    pub decision: Option<String>,
    pub reason: Option<String>,
}

/// A policy that a running gateway could not take over; the former one is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedPolicy {
    pub since: String,
    pub error: String,
}

/// The servers of a running gateway, and what keeps their policy from being the one in the files.
pub trait Servers: Debug + Send + Sync {
    /// In the order they are configured.
    fn list(&self) -> Vec<ServerView>;
    /// The tools a server listed so far, as name and description.
    fn tools(&self, server: &str) -> Vec<(String, Option<String>)>;
    /// Servers that are in no file and no record: the demo's.
    fn own(&self) -> Vec<ServerInput>;
    /// Ends what is open with a server, which is opened anew when needed; whether there is such a server.
    fn restart(&self, server: &str) -> bool;
    /// The conversations that are open with clients.
    fn sessions(&self) -> Vec<SessionView>;
    /// Whether one of them may be put in a mode, or in none.
    ///
    /// # Errors
    /// As `switch_session`.
    fn may_switch(&self, id: &str, mode: Option<&str>) -> Result<(), Stays>;
    /// Puts one of them in another mode, or in none.
    ///
    /// # Errors
    /// It is over, or there is no such mode for it.
    fn switch_session(&self, id: &str, mode: Option<&str>) -> Result<SessionView, Stays>;
    /// Why the policy that was read last is not in force; none where it is.
    fn refused_policy(&self) -> Option<RefusedPolicy>;
    /// What is written otherwise than at the start, and acts after a restart only.
    fn waits_for_restart(&self) -> Vec<String>;
}
