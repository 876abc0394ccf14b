//! What the clerk knows of open conversations with clients.

use serde::{Deserialize, Serialize};

use crate::Actor;

/// One conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionView {
    /// By which it is named here; the client knows it by another.
    pub id: String,
    pub user: Option<String>,
    pub role: Option<String>,
    /// The id of the token it was opened with.
    pub token: Option<String>,
    pub mode: Option<String>,
    /// Where it is at one server alone.
    pub server: Option<String>,
    /// The name the client gave itself.
    pub client: Option<String>,
    pub version: String,
}

impl SessionView {
    /// Sessions are for whoever they are of, and for admins.
    pub(crate) fn is_for(&self, actor: &Actor) -> bool {
        actor.is_admin() || self.user.as_ref() == Some(&actor.user)
    }
}

/// Why a session stays in its mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stays {
    /// It is over.
    Gone,
    /// In words.
    Refused(String),
}
