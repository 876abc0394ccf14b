//! The conversations that are open with clients: who speaks, at which server, in which mode.

use serde::{Deserialize, Serialize};

use super::Nothing;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role, SessionView};

/// The operation.
#[derive(Debug)]
pub struct SessionsList;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub sessions: Vec<SessionView>,
    /// Whether a gateway runs that could have any.
    pub is_running: bool,
}

impl Operation for SessionsList {
    const PATH: &'static str = "/api/v1/sessions";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Policy;
    const FOR: Role = Role::User;
    type Request = Nothing;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, _request: Nothing) -> Result<Outcome, ControlError> {
        let Some(servers) = &clerk.parts.servers else { return Ok(Outcome::default()) };
        let mut sessions = servers.sessions();
        sessions.retain(|session| session.is_for(actor));
        sessions.sort_by(|one, other| (&one.user, &one.id).cmp(&(&other.user, &other.id)));
        Ok(Outcome { sessions, is_running: true })
    }
}
