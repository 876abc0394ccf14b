//! Issues a token: for an agent of a role, or for a person's client. Its secret is shown here and never again.

use std::fmt;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolwarden_core::name::{self, shown};
use toolwarden_core::{Bearer, Claims, NewToken, TOKEN_BYTES};
use toolwarden_policy::PolicySet;
use toolwarden_policy::input::Scope;
use toolwarden_sources::Locations;
use toolwarden_store::state::Tokens;

use crate::clerk::blocking;
use crate::naming::or_nearest;
use crate::place::{self, Place};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// More names than any task has; and none longer than a name may be.
const MOST_NAMES: usize = 200;

/// The operation.
#[derive(Debug)]
pub struct TokensIssue;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub place: Place,
    /// For a person's client, not for an agent.
    pub person: bool,
    pub role: Option<String>,
    pub user: Option<String>,
    pub groups: Vec<String>,
    pub task: Option<String>,
    pub project: Option<String>,
    pub run: Option<String>,
    pub job: Option<String>,
    pub session: Option<String>,
    pub modes: Vec<String>,
    pub task_tools: Vec<String>,
    pub workspace: Option<PathBuf>,
    pub rights: Vec<String>,
    pub may_answer: bool,
    pub expires_at: Option<Timestamp>,
    pub max_calls: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub id: String,
    pub token: ShownOnce,
    #[serde(flatten)]
    pub claims: Claims,
    /// Until now clients on this machine needed no token, and from now on they do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_anonymous_loopback: bool,
}

impl Outcome {
    /// What whoever issues it should know besides.
    #[must_use]
    pub fn notice(&self) -> Option<&'static str> {
        self.ends_anonymous_loopback.then_some(
            "This is the first token: from now on clients that show none are refused over HTTP, also on this machine. Give \
             each client a token (`Authorization: Bearer TOKEN`), or set `[gateway] anonymous_loopback = true` and restart \
             `toolwarden serve`.",
        )
    }
}

/// A token on its way to whoever asked for it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShownOnce(pub String);

impl fmt::Debug for ShownOnce {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ShownOnce(..)")
    }
}

impl Operation for TokensIssue {
    const PATH: &'static str = "/api/v1/tokens/issue";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let locations = request.place.locations(&clerk.parts.locations, actor);
        let now = clerk.parts.clock.now();
        let store = clerk.records().await?;
        let (mut claims, anonymous) = blocking(move || {
            let opened = place::open(&locations, &[], &store)?;
            let anonymous = opened.loaded.config.gateway.anonymous_loopback;
            Ok((request.claims(&opened.policy, &locations.user, now)?, anonymous))
        })
        .await?;
        actor.must_cover(&claims)?;
        claims.ancestors = actor.acting_token().map(|token| token.line()).unwrap_or_default();
        if claims.ancestors.len() > MOST_NAMES {
            return Err(ControlError::BadInput("too many tokens were issued one with the other".to_owned()));
        }
        let token = new_token(clerk)?;
        let mut before = Tokens::default();
        clerk.state()?.catch_up_tokens(&mut before).await?;
        let ends_anonymous_loopback = anonymous.is_none() && !before.any_was_issued();
        clerk.record(actor, "tokens_issue", &format!("{} for {}", token.id, words(&claims))).await?;
        clerk.state()?.issue_token(&clerk.author(actor), &token.id, token.digest, &claims).await?;
        clerk.caught_up().await;
        let text = ShownOnce(token.text.reveal_to_upstream().to_owned());
        Ok(Outcome { id: token.id, token: text, claims, ends_anonymous_loopback })
    }
}

pub(super) fn new_token(clerk: &Clerk) -> Result<NewToken, ControlError> {
    let mut bytes = [0; TOKEN_BYTES];
    clerk.keyring()?.random(&mut bytes).map_err(|_| ControlError::Without("randomness"))?;
    Ok(NewToken::of_random(&bytes))
}

/// Whose a token is.
pub(super) fn words(claims: &Claims) -> String {
    let user = claims.user.as_deref().map(|user| format!(" of {}", shown(user))).unwrap_or_default();
    match claims.bearer {
        Bearer::Agent => format!("an agent with role {}{user}", shown(claims.role.as_deref().unwrap_or_default())),
        Bearer::Person => format!("a person's client{user}"),
    }
}

impl Request {
    fn claims(self, policy: &PolicySet, owner: &str, now: Timestamp) -> Result<Claims, ControlError> {
        let wrong = |message: String| Err(ControlError::BadInput(message));
        self.check_names()?;
        if let Some(unknown) = self.modes.iter().find(|mode| policy.base().modes.get(mode).is_none()) {
            let modes = policy.base().modes.sorted();
            let slugs = modes.iter().map(|mode| mode.slug.as_str());
            let help = or_nearest(unknown, slugs, "see `toolwarden modes list`");
            return wrong(format!("no mode is called `{}`; {help}", shown(unknown)));
        }
        if self.max_calls == Some(0) {
            return wrong("a token for no call is good for nothing; give at least 1".to_owned());
        }
        if self.expires_at.is_some_and(|end| end <= now) {
            return wrong("the token would have expired already".to_owned());
        }
        if self.workspace.as_ref().is_some_and(|workspace| !workspace.is_absolute()) {
            return wrong("the workspace must be an absolute path".to_owned());
        }
        let bearer = match (self.person, &self.role) {
            (true, None) => {
                self.check_person()?;
                Bearer::Person
            }
            (false, Some(role)) => {
                self.check_agent(policy, role)?;
                Bearer::Agent
            }
            (true, Some(_)) => return wrong("a token is for an agent of a role or for a person, not both".to_owned()),
            (false, None) => {
                return wrong("say which role the agent has, or that the token is for a person".to_owned());
            }
        };
        if bearer == Bearer::Person
            && let Some(unknown) = self.rights.iter().find(|right| Role::parse(right).is_none())
        {
            return wrong(format!(
                "`{}` is no right; there are {}",
                shown(unknown),
                Role::ALL.map(Role::as_str).join(", ")
            ));
        }
        let owner = || Some(owner.to_owned()).filter(|_| bearer == Bearer::Person);
        Ok(Claims {
            bearer,
            role: self.role,
            user: self.user.or_else(owner),
            groups: self.groups,
            task: self.task,
            project: self.project,
            run: self.run,
            job: self.job,
            session: self.session,
            modes: self.modes,
            task_tools: self.task_tools,
            // Known by its real path, so that a link that is turned elsewhere does not take the token with it.
            workspace: self.workspace.as_deref().map(Locations::bound_workspace),
            rights: self.rights,
            may_answer: self.may_answer,
            expires_at: self.expires_at,
            max_calls: self.max_calls,
            ancestors: Vec::new(),
        })
    }

    /// What restricts agents does nothing for a person, who chooses a mode in the address or with `--mode` (MODE-8).
    fn check_person(&self) -> Result<(), ControlError> {
        let wrong = |what: &str| {
            Err(ControlError::BadInput(format!("{what} restrict agents: a person's token cannot have them")))
        };
        if !self.modes.is_empty() {
            return wrong("modes");
        }
        if !self.task_tools.is_empty() {
            return wrong("task tools");
        }
        Ok(())
    }

    /// GATE-3: what the token of a role must carry; and what only persons can have.
    fn check_agent(&self, policy: &PolicySet, role: &str) -> Result<(), ControlError> {
        let wrong = |message: String| Err(ControlError::BadInput(message));
        let Some(known) = policy.base().roles.get(role) else {
            let roles = policy.base().roles.sorted().into_iter().map(|known| known.name.as_str());
            let help = or_nearest(role, roles, "make it with `toolwarden roles set`, or see `toolwarden roles list`");
            return wrong(format!("no role is called `{}`; {help}", shown(role)));
        };
        let (missing, needs) = match known.side {
            Scope::Sandbox => (self.task.is_none() || self.job.is_none(), "a task and a job: `--task ID --job ID`"),
            Scope::Pm | Scope::Both => (self.user.is_none(), "a user: `--user NAME`"),
        };
        if missing {
            return wrong(format!("a token of role `{}` needs {needs}", shown(role)));
        }
        if self.may_answer || !self.rights.is_empty() {
            return wrong("answers and rights are for persons: an agent has neither".to_owned());
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), ControlError> {
        let single = [&self.role, &self.user, &self.task, &self.project, &self.run, &self.job, &self.session];
        let lists = [&self.groups, &self.modes, &self.task_tools, &self.rights];
        if lists.iter().any(|list| list.len() > MOST_NAMES) {
            return Err(ControlError::BadInput(format!("a token has at most {MOST_NAMES} of each kind of name")));
        }
        let mut names = single.into_iter().flatten().chain(lists.into_iter().flatten());
        let is_wrong = |text: &&String| {
            text.trim().is_empty() || text.chars().count() > 256 || text.chars().any(name::is_deceptive)
        };
        match names.find(is_wrong) {
            Some(wrong) => Err(ControlError::BadInput(format!("`{}` is no name", shown(wrong)))),
            None => Ok(()),
        }
    }
}
