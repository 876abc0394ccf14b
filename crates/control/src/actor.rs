//! Who asks for an operation, how they got here, and what they may do.

use jiff::Timestamp;
use toolwarden_core::{ActingToken, Claims};

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
    /// The token they act with; none at the machine itself and for integrations.
    pub token: Option<TokenInUse>,
}

/// A token that is used at the control side, and what it can hand on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenInUse {
    pub acting: ActingToken,
    pub may_answer: bool,
    pub expires_at: Option<Timestamp>,
}

impl TokenInUse {
    /// The token of this id.
    #[must_use]
    pub fn of(id: &str, claims: &Claims) -> Self {
        Self {
            acting: ActingToken { id: id.to_owned(), ancestors: claims.ancestors.clone() },
            may_answer: claims.may_answer,
            expires_at: claims.expires_at,
        }
    }
}

impl Actor {
    /// The owner of the data directory.
    #[must_use]
    pub fn owner(user: impl Into<String>, via: Via) -> Self {
        Self { user: user.into(), via, roles: vec![Role::Admin], groups: Vec::new(), token: None }
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

    /// The token an answer or a grant of this one is given with.
    pub(crate) fn acting_token(&self) -> Option<ActingToken> {
        self.token.as_ref().map(|token| token.acting.clone())
    }

    /// Why this one may not ask for what is for those with other rights (SELF-5), and what helps.
    pub(crate) fn lacks_rights(&self, rights: &str) -> String {
        let first = rights.split(' ').next().unwrap_or(rights);
        // An agent may read this: it names what is missing, and no command that gives it (SELF-5).
        let help = format!("whoever looks after this Toolwarden can issue a token with the right `{first}`");
        match self.roles.is_empty() {
            true => format!(
                "this token has no control rights: it may call tools and nothing else. This is for those with the \
                 right `{rights}`; {help}"
            ),
            false => format!("this is for those with the right `{rights}`; {help}"),
        }
    }

    /// Whether this one may learn the secret of a token with these claims: with a token nobody gets a token that is good
    /// for more than that token.
    ///
    /// # Errors
    /// It would be.
    pub(crate) fn must_cover(&self, claims: &Claims) -> Result<(), ControlError> {
        let Some(own) = &self.token else { return Ok(()) };
        let is_within = |right: &String| Role::parse(right).is_some_and(|role| self.is(role));
        if !claims.rights.iter().all(is_within) {
            return Err(too_much("has rights that yours lacks"));
        }
        if claims.may_answer && !own.may_answer {
            return Err(too_much("may answer in the client, and yours may not"));
        }
        let is_powerful = claims.may_answer || !claims.rights.is_empty();
        let outlives = match (claims.expires_at, own.expires_at) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(end), Some(own)) => end > own,
        };
        if is_powerful && outlives {
            return Err(too_much("has rights for longer than yours: give it an end"));
        }
        Ok(())
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

fn too_much(why: &str) -> ControlError {
    ControlError::Forbidden(format!(
        "with a token nobody gets a token that is good for more: this one {why}. Use `toolwarden tokens` at the machine \
         itself"
    ))
}
