//! Who asks for an operation, how they got here, and what they may do.

use crate::ControlError;

/// Where an actor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// The owner of the data directory, or root, at the control socket.
    ControlSocket,
    /// The command line itself, where no server runs.
    CommandLine,
    /// A person's token, over HTTP.
    Token,
    /// The page of a held call, where a person logged in.
    Page,
    /// A link to it that was given to one person.
    Link,
    /// An integration that speaks for one person.
    Webhook,
}

impl Via {
    /// Whether this one sits at the machine itself, so that its directories are theirs.
    #[must_use]
    pub fn is_here(self) -> bool {
        matches!(self, Self::ControlSocket | Self::CommandLine)
    }
}

/// What a person is here for. Several add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Sees how everything is set up.
    Viewer,
    /// And changes what is their own.
    User,
    /// And reads the record.
    Auditor,
    /// And answers held calls.
    Approver,
    /// And changes everything.
    Admin,
}

impl Role {
    pub const ALL: [Self; 5] = [Self::Viewer, Self::User, Self::Auditor, Self::Approver, Self::Admin];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::User => "user",
            Self::Auditor => "auditor",
            Self::Approver => "approver",
            Self::Admin => "admin",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// Who asks. Whoever owns the data directory may do everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    pub user: String,
    pub via: Via,
    pub roles: Vec<Role>,
    /// The groups they proved to be in.
    pub groups: Vec<String>,
}

impl Actor {
    /// The owner of the data directory.
    #[must_use]
    pub fn owner(user: impl Into<String>, via: Via) -> Self {
        Self { user: user.into(), via, roles: vec![Role::Admin], groups: Vec::new() }
    }

    /// Whether this one has the role an operation is for. Everybody who is somebody sees; an admin may everything.
    #[must_use]
    pub fn is(&self, role: Role) -> bool {
        match role {
            Role::Viewer => !self.roles.is_empty(),
            role => self.roles.contains(&role) || self.is_admin(),
        }
    }

    #[must_use]
    pub fn is_admin(&self) -> bool {
        self.roles.contains(&Role::Admin)
    }

    /// Whether a server is there for this one: everybody's, and what is their own (GATE-8).
    #[must_use]
    pub fn sees(&self, owner: Option<&str>) -> bool {
        self.is_admin() || owner.is_none_or(|owner| self.user == owner)
    }

    /// What is another's is for admins.
    pub(crate) fn must_be(&self, user: &str, what: &str) -> Result<(), ControlError> {
        if self.user == user || self.is_admin() { Ok(()) } else { Err(self.refused(what)) }
    }

    pub(crate) fn must_administer(&self, what: &str) -> Result<(), ControlError> {
        if self.is_admin() { Ok(()) } else { Err(self.refused(what)) }
    }

    fn refused(&self, what: &str) -> ControlError {
        ControlError::Forbidden(format!("{what} are for those with the right `admin`"))
    }

    /// The door written in the record.
    #[must_use]
    pub fn door(&self) -> &'static str {
        match self.via {
            Via::ControlSocket => "control",
            Via::CommandLine => "cli",
            Via::Token => "api",
            Via::Page => "page",
            Via::Link => "link",
            Via::Webhook => "webhook",
        }
    }
}
