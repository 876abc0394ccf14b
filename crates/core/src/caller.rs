//! Who is calling: a person or an agent, with the context its credential carries.

use std::path::PathBuf;

use jiff::Timestamp;

use crate::token::{Bearer, Claims};

/// Whether a human or an agent stands behind the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerKind {
    /// The operating-system user who runs Toolwarden, or a person token issued to that user: the
    /// permissions.json files belong to them (PERM-1).
    LocalPerson,
    /// Another human, proven by a console session or a person token.
    Person,
    /// Anything with an agent token or a lease.
    Agent,
}

/// The task context a credential carries. Empty for most persons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    pub task: Option<String>,
    pub project: Option<String>,
    pub run: Option<String>,
    pub job: Option<String>,
    pub session: Option<String>,
}

/// Whether a credential still counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Standing {
    /// As far as anybody knows.
    #[default]
    Good,
    /// It was taken back.
    Revoked,
    /// Nothing was heard of the store for so long that nobody knows.
    Unknown,
}

/// What the credential itself says, beyond role and context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenClaims {
    pub id: Option<String>,
    pub standing: Standing,
    /// Nothing was shown, which is enough only as long as nobody else is known.
    pub is_anonymous: bool,
    /// Of the secret it was shown with: another one may have taken its place.
    pub digest: Option<String>,
    /// The directory its calls happen in.
    pub workspace: Option<PathBuf>,
    /// The modes it was issued with; an agent may use no other (MODE-8).
    pub modes: Vec<String>,
    /// The tools its task was given, for roles that demand it (GATE-5).
    pub task_tools: Vec<String>,
    pub expires_at: Option<Timestamp>,
    pub calls_left: Option<u64>,
    /// Answers that the client gives for its person count (REVIEW-6).
    pub may_answer: bool,
    /// The tokens it was issued or rotated with.
    pub ancestors: Vec<String>,
}

/// Everything the judge needs to know of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub kind: CallerKind,
    pub user: Option<String>,
    pub groups: Vec<String>,
    pub role: Option<String>,
    /// The mode asked for, or carried by the session.
    pub mode: Option<String>,
    pub context: Context,
    pub token: TokenClaims,
}

impl Caller {
    /// Whoever carries a token of this id that is good for this. A person's token of `local_user` is that user's.
    #[must_use]
    pub fn of_token(id: &str, claims: &Claims, local_user: &str) -> Self {
        let Claims { bearer, role, user, groups, task, project, run, job, session, modes, .. } = claims.clone();
        let kind = match bearer {
            Bearer::Agent => CallerKind::Agent,
            Bearer::Person if user.as_deref() == Some(local_user) => CallerKind::LocalPerson,
            Bearer::Person => CallerKind::Person,
        };
        Self {
            kind,
            user,
            groups,
            role,
            mode: None,
            context: Context { task, project, run, job, session },
            token: TokenClaims {
                id: Some(id.to_owned()),
                standing: Standing::Good,
                is_anonymous: false,
                digest: None,
                workspace: claims.workspace.clone(),
                modes,
                task_tools: claims.task_tools.clone(),
                expires_at: claims.expires_at,
                calls_left: claims.max_calls,
                may_answer: claims.may_answer && bearer == Bearer::Person,
                ancestors: claims.ancestors.clone(),
            },
        }
    }

    /// The operating-system user at this machine, without a mode.
    #[must_use]
    pub fn local_person(user: impl Into<String>) -> Self {
        Self::of_kind(CallerKind::LocalPerson, Some(user.into()), None)
    }

    /// Another human.
    #[must_use]
    pub fn person(user: impl Into<String>) -> Self {
        Self::of_kind(CallerKind::Person, Some(user.into()), None)
    }

    /// An agent of a role.
    #[must_use]
    pub fn agent(role: impl Into<String>, user: Option<String>) -> Self {
        Self::of_kind(CallerKind::Agent, user, Some(role.into()))
    }

    fn of_kind(kind: CallerKind, user: Option<String>, role: Option<String>) -> Self {
        Self {
            kind,
            user,
            groups: Vec::new(),
            role,
            mode: None,
            context: Context::default(),
            token: TokenClaims::default(),
        }
    }

    #[must_use]
    pub fn is_agent(&self) -> bool {
        self.kind == CallerKind::Agent
    }
}
