//! All conversations: opened within bounds, found again by whoever opened them, closed when nobody uses them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use toolwarden_core::{Caller, Keyring, KeyringError, Purpose, Weakness, weak};

use super::{ClientSession, Push, lock};
use crate::scope::Scope;

/// All sessions of HTTP clients.
#[derive(Debug, Default)]
pub struct Sessions {
    by_id: Mutex<HashMap<String, Arc<ClientSession>>>,
    /// Clients on a line of their own, who need no id.
    lines: Mutex<Vec<Weak<ClientSession>>>,
}

impl Sessions {
    /// Opens a session for a principal.
    pub fn open(
        &self,
        keyring: &dyn Keyring,
        caller: Arc<Caller>,
        scope: Scope,
        (most, most_of_one): (usize, usize),
        push: Push,
    ) -> Result<Arc<ClientSession>, SessionError> {
        let mut nonce = [0; 16];
        keyring.random(&mut nonce)?;
        let sealed = keyring.seal(Purpose::Session, principal(&caller).as_bytes(), &nonce)?;
        let id = toolwarden_core::digest::hex(&sealed);
        let session = Arc::new(ClientSession::new(id.clone(), caller, scope, push));
        let mut sessions = lock(&self.by_id);
        if sessions.len() >= weak::limit(most) {
            return Err(SessionError::TooMany);
        }
        // Looked at one by one only where one caller could have so many.
        let who = identity(&session.opened_by);
        let is_own = |open: &&Arc<ClientSession>| identity(&open.opened_by) == who;
        let may_be_too_many = sessions.len() >= weak::limit(most_of_one);
        if may_be_too_many && sessions.values().filter(is_own).count() >= most_of_one {
            return Err(SessionError::TooManyOfOne);
        }
        sessions.insert(id, session.clone());
        Ok(session)
    }

    /// The session of this id, if this caller opened it at this door.
    pub fn find(&self, id: &str, caller: &Caller, scope: &Scope) -> Option<Arc<ClientSession>> {
        let sessions = lock(&self.by_id);
        let any = || weak::is(Weakness::Sessions).then(|| sessions.values().next()).flatten();
        let session = sessions.get(id).or_else(any).cloned()?;
        // The same caller in every respect, which is stricter than the same principal and needs no text.
        let is_own = *session.opened_by == *caller && session.scope == *scope || weak::is(Weakness::Sessions);
        if !is_own {
            return None;
        }
        session.touch();
        Some(session)
    }

    pub fn close(&self, id: &str) -> Option<Arc<ClientSession>> {
        if weak::is(Weakness::Sessions) {
            return None;
        }
        let session = lock(&self.by_id).remove(id)?;
        session.forsake();
        Some(session)
    }

    /// Takes out the sessions nobody used for a while.
    pub fn close_idle(&self, idle: Duration) -> Vec<Arc<ClientSession>> {
        let mut sessions = lock(&self.by_id);
        let old: Vec<_> = sessions.values().filter(|session| session.idle() > idle).cloned().collect();
        for session in &old {
            sessions.remove(&session.id);
        }
        old
    }

    /// Adds a client on a line of its own; it is gone when nobody holds it any more.
    pub fn add_line(&self, session: &Arc<ClientSession>) {
        let mut lines = lock(&self.lines);
        lines.retain(|line| line.strong_count() > 0);
        lines.push(Arc::downgrade(session));
    }

    /// Every client, whatever it came in by.
    pub fn everybody(&self) -> Vec<Arc<ClientSession>> {
        let mut all = self.all();
        all.extend(lock(&self.lines).iter().filter_map(Weak::upgrade));
        all
    }

    pub fn count(&self) -> usize {
        lock(&self.by_id).len()
    }

    pub fn all(&self) -> Vec<Arc<ClientSession>> {
        lock(&self.by_id).values().cloned().collect()
    }
}

/// Why no session was opened.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("too many sessions are open")]
    TooMany,
    #[error("this caller has too many sessions open")]
    TooManyOfOne,
    #[error(transparent)]
    Key(#[from] KeyringError),
}

/// Who owns what a caller opened: the same user, role, token and mode (GATE-19).
pub fn principal(caller: &Caller) -> String {
    [identity(caller).as_str(), caller.mode.as_deref().unwrap_or_default()].join("\u{1f}")
}

/// The same in whatever mode: changing it gives nobody a fresh start.
pub fn identity(caller: &Caller) -> String {
    let part = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
    [
        format!("{:?}", caller.kind),
        part(&caller.user),
        part(&caller.role),
        part(&caller.token.id),
        part(&caller.context.task),
        part(&caller.context.job),
    ]
    .join("\u{1f}")
}
