//! Who is at the other end of the control socket: the owner of the data directory, or root.

use toolwarden_control::{Actor, Clerk, Via};

/// The user at the other end, as the kernel tells it. Only a door makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    user_id: u32,
    is_owner: bool,
}

impl Peer {
    /// The peer, if it may speak here: the user this process runs as, or root.
    pub(crate) fn admit(user_id: u32, own: u32) -> Option<Self> {
        let is_owner = user_id == own;
        (is_owner || user_id == 0).then_some(Self { user_id, is_owner })
    }

    pub(crate) fn actor(self, clerk: &Clerk) -> Actor {
        let user = match (self.is_owner, self.user_id) {
            (true, _) => clerk.owner().to_owned(),
            (false, 0) => "root".to_owned(),
            (false, number) => number.to_string(),
        };
        Actor::owner(user, Via::ControlSocket)
    }
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
