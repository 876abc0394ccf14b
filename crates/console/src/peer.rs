//! Who asks: the owner of the data directory or root at the control socket, or a person whose token was verified.

use toolwarden_control::{Actor, Clerk, Role, TokenInUse, Via};
use toolwarden_core::Claims;

/// Who asks, as a door vouches for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer(Who);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Who {
    /// At the socket, as the kernel tells it.
    Socket {
        user_id: u32,
        is_owner: bool,
    },
    Person {
        user: String,
        roles: Vec<Role>,
        groups: Vec<String>,
        via: Via,
        token: TokenInUse,
    },
}

impl Peer {
    /// The peer, if it may speak at the socket: the user this process runs as, or root.
    pub(crate) fn admit(user_id: u32, own: u32) -> Option<Self> {
        let is_owner = user_id == own;
        (is_owner || user_id == 0).then_some(Self(Who::Socket { user_id, is_owner }))
    }

    /// A person whose token of this id was found good. A token without rights may do nothing here (SELF-5); none where a
    /// right is not known, since nobody can say what it forbids, and for tokens of nobody.
    #[must_use]
    pub fn of_person(id: &str, claims: &Claims) -> Option<Self> {
        let roles = claims.rights.iter().map(|right| Role::parse(right)).collect::<Option<Vec<_>>>()?;
        let (user, groups) = (claims.user.clone()?, claims.groups.clone());
        Some(Self(Who::Person { user, roles, groups, via: Via::Token, token: TokenInUse::of(id, claims) }))
    }

    /// The same person, logged in at a page.
    #[must_use]
    pub fn at_page(self) -> Self {
        match self.0 {
            Who::Person { user, roles, groups, token, .. } => {
                Self(Who::Person { user, roles, groups, via: Via::Page, token })
            }
            other => Self(other),
        }
    }

    pub(crate) fn actor(&self, clerk: &Clerk) -> Actor {
        match &self.0 {
            Who::Socket { is_owner: true, .. } => Actor::owner(clerk.owner(), Via::ControlSocket),
            Who::Socket { user_id: 0, .. } => Actor::owner("root", Via::ControlSocket),
            Who::Socket { user_id, .. } => Actor::owner(user_id.to_string(), Via::ControlSocket),
            Who::Person { user, roles, groups, via, token } => Actor {
                user: user.clone(),
                via: *via,
                roles: roles.clone(),
                groups: groups.clone(),
                token: Some(token.clone()),
            },
        }
    }
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
