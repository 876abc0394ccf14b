//! Open conversations as people see them, and the mode each is in: a person puts one in another while it lasts (MODE-8).

use std::sync::Arc;

use toolwarden_conversations::Scope;
use toolwarden_conversations::sessions::ClientSession;
use toolwarden_core::Caller;
use toolwarden_core::name::shown;

use crate::decide::still_permitted;
use crate::gateway::Gateway;
use crate::visible::announce_mode;

/// One conversation.
#[derive(Debug, Clone)]
pub struct OpenSession {
    /// Stands for the id, which is a secret of the client.
    pub mark: String,
    pub caller: Arc<Caller>,
    /// Where it is at one server alone.
    pub server: Option<Arc<str>>,
    /// The name the client gave itself.
    pub client: Option<String>,
    pub version: &'static str,
}

/// Why a session stays in its mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSwitched {
    #[error("there is no such session")]
    NoSession,
    #[error("there is no mode `{}`; there are: {}", shown(mode), known.join(", "))]
    NoMode { mode: String, known: Vec<String> },
    #[error("the mode `{}` has faults: {}", shown(mode), faults.join("; "))]
    Faulty { mode: String, faults: Vec<String> },
    #[error("an agent has the modes its token was issued with: {}", if modes.is_empty() { "none".to_owned() } else { modes.join(", ") })]
    NotIssued { modes: Vec<String> },
}

impl Gateway {
    /// Every conversation that is open here. Modern clients have none: each of their calls names its mode.
    #[must_use]
    pub fn open_sessions(&self) -> Vec<OpenSession> {
        self.sessions.everybody().iter().map(view).collect()
    }

    /// Puts a session in another mode, or in none, and tells its client what it sees otherwise now.
    ///
    /// # Errors
    /// There is no such session, or no such mode for it.
    pub fn switch_mode(&self, mark: &str, mode: Option<&str>) -> Result<OpenSession, NotSwitched> {
        let session = self.session_for(mark, mode)?;
        let former = session.switch(mode.map(str::to_owned));
        // What is open or waits was permitted in the mode that was left.
        self.live.look_again();
        self.parks.give_up_forbidden(|asked| still_permitted(self, asked).is_ok());
        announce_mode(self, &session, former);
        Ok(view(&session))
    }

    /// Whether a session may be put in a mode.
    ///
    /// # Errors
    /// As `switch_mode`.
    pub fn may_switch_mode(&self, mark: &str, mode: Option<&str>) -> Result<(), NotSwitched> {
        self.session_for(mark, mode).map(drop)
    }

    /// The session of a mark, where it may be put in that mode.
    fn session_for(&self, mark: &str, mode: Option<&str>) -> Result<Arc<ClientSession>, NotSwitched> {
        let session = self.sessions.everybody().into_iter().find(|session| session.mark == mark);
        let session = session.ok_or(NotSwitched::NoSession)?;
        self.check_mode(&session.caller(), mode)?;
        Ok(session)
    }

    fn check_mode(&self, caller: &Caller, mode: Option<&str>) -> Result<(), NotSwitched> {
        let Some(slug) = mode else { return Ok(()) };
        if caller.is_agent() && !caller.token.modes.iter().any(|issued| issued == slug) {
            let modes = caller.token.modes.iter().map(|mode| shown(mode).into_owned()).collect();
            return Err(NotSwitched::NotIssued { modes });
        }
        let policy = self.live.policy();
        let modes = &policy.base().modes;
        match modes.get(slug) {
            None => {
                let known = modes.sorted().iter().map(|mode| shown(&mode.slug).into_owned()).collect();
                Err(NotSwitched::NoMode { mode: slug.to_owned(), known })
            }
            Some(found) if !found.faults.is_empty() => {
                Err(NotSwitched::Faulty { mode: slug.to_owned(), faults: found.faults.clone() })
            }
            Some(_) => Ok(()),
        }
    }
}

fn view(session: &Arc<ClientSession>) -> OpenSession {
    let client = session.agreed().and_then(|agreed| agreed.client.as_ref());
    let named = client.and_then(|client| client.value().get("name")?.as_str().map(|name| name.into_owned()));
    OpenSession {
        mark: session.mark.clone(),
        caller: session.caller(),
        server: match &session.scope {
            Scope::One(server) => Some(server.clone()),
            Scope::All => None,
        },
        client: named,
        version: session.version().as_str(),
    }
}
