//! Issues a grant: calls of a tool that would be held run without asking, for one run or so many times (REVIEW-9).

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;
use toolwarden_core::{ActingToken, Entry, Grant, GrantClaims, Side, token};
use toolwarden_policy::NarrowEntry;

use super::grants_list::GrantView;
use super::tools_set::unknown_tool;
use crate::editing::not_there;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct GrantsIssue;

/// Nobody remembers what they granted longer than this.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// And where nothing is said.
const USUAL: Duration = Duration::from_secs(8 * 60 * 60);
const MOST_CALLS: u64 = 10_000;
const ID_BYTES: usize = 10;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// `server:tool`, or `server:*`.
    pub entry: String,
    pub token: Option<String>,
    pub user: Option<String>,
    pub run: Option<String>,
    pub calls: Option<u64>,
    pub expires_at: Option<Timestamp>,
    pub note: Option<String>,
}

impl Operation for GrantsIssue {
    const PATH: &'static str = "/api/v1/grants/issue";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::User;
    const ALSO_FOR: Option<Role> = Some(Role::Approver);
    type Request = Request;
    type Outcome = GrantView;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<GrantView, ControlError> {
        let claims = claims(clerk, actor, &request).await?;
        let now = clerk.parts.clock.now();
        let latest = now.checked_add(LONGEST).unwrap_or(Timestamp::MAX);
        let usual = now.checked_add(USUAL).unwrap_or(Timestamp::MAX);
        let expires_at = request.expires_at.unwrap_or(usual);
        if expires_at <= now || expires_at > latest {
            return Err(ControlError::BadInput("a grant ends later than now, and within 7 days".to_owned()));
        }
        if request.calls.is_some_and(|calls| calls == 0 || calls > MOST_CALLS) {
            return Err(ControlError::BadInput(format!("a grant is for 1 to {MOST_CALLS} calls")));
        }
        // Files that cannot be read are said elsewhere: a grant is for a name.
        let opened = clerk.opened((*clerk.records().await?).clone()).await.ok();
        let name = format!("{}:{}", claims.server, claims.tool.as_deref().unwrap_or("*"));
        let odd = opened.and_then(|opened| unknown_tool(&opened, &name, "is of use"));
        let issued = issue(clerk, actor, "grants_issue", claims, request.calls, expires_at).await?;
        Ok(GrantView { findings: odd.into_iter().collect(), ..issued })
    }
}

/// Keeps a grant, recorded first.
pub(super) async fn issue(
    clerk: &Clerk,
    actor: &Actor,
    operation: &'static str,
    claims: GrantClaims,
    calls_left: Option<u64>,
    expires_at: Timestamp,
) -> Result<GrantView, ControlError> {
    let mut random = [0; ID_BYTES];
    let unusable = |_| ControlError::Without("the key");
    clerk.keyring()?.random(&mut random).map_err(unusable)?;
    let issued_at = clerk.parts.clock.now();
    let grant = Grant { id: token::letters(&random), claims, issued_at, expires_at, calls_left, revoked_at: None };
    let view = GrantView::from(grant.clone());
    clerk.record(actor, operation, &view.words()).await?;
    clerk.state()?.issue_grant(&grant).await?;
    Ok(view)
}

/// What is asked for, checked: whose calls, and that this one may speak for them.
async fn claims(clerk: &Clerk, actor: &Actor, request: &Request) -> Result<GrantClaims, ControlError> {
    if NarrowEntry::is_meant(&request.entry) {
        return Err(ControlError::BadInput(
            "a grant takes no conditions on arguments: it is for server:tool, or server:*. Such an entry can be allowed for \
             good, with `toolwarden allow`"
                .to_owned(),
        ));
    }
    let entry = Entry::parse(&request.entry)
        .map_err(|fault| ControlError::BadInput(format!("`{}`: {fault}", shown(&request.entry))))?;
    let (Side::Name(server), tool) = (entry.server, entry.tool) else {
        return Err(ControlError::BadInput(
            "a grant is for the tools of one server: server:tool, or server:*".to_owned(),
        ));
    };
    let mut claims = GrantClaims {
        server,
        tool: match tool {
            Side::Name(tool) => Some(tool),
            Side::Any => None,
        },
        token: request.token.clone(),
        user: request.user.clone(),
        run: request.run.clone(),
        by: actor.user.clone(),
        groups: actor.groups.clone(),
        by_token: actor.acting_token(),
        note: request.note.clone(),
        ..GrantClaims::default()
    };
    if request.run.is_none() && request.calls.is_none() {
        return Err(ControlError::BadInput("say for which --run it is, or for how many --calls".to_owned()));
    }
    // Others' calls are for approvers; a run alone would be anybody's.
    if !actor.is(Role::Approver) {
        match &claims.user {
            Some(user) => actor.must_be(user, "calls of others")?,
            None => claims.user = Some(clerk.whom(actor)),
        }
    }
    must_be_a_token(clerk, &claims).await?;
    refuse_own(clerk, &claims).await?;
    if claims.token.is_none() && claims.user.is_none() && claims.run.is_none() {
        claims.user = Some(clerk.whom(actor));
    }
    Ok(claims)
}

/// A grant for a token that nobody has would be for no call.
async fn must_be_a_token(clerk: &Clerk, claims: &GrantClaims) -> Result<(), ControlError> {
    let Some(id) = &claims.token else { return Ok(()) };
    match clerk.state()?.token_of(id).await? {
        Some(_) => Ok(()),
        None => Err(not_there(format!("there is no token `{}`", shown(id)), "see `toolwarden tokens list`")),
    }
}

/// Refuses a grant for a token of the credential that issues it. It would not count (SELF-5); say so at once.
async fn refuse_own(clerk: &Clerk, claims: &GrantClaims) -> Result<(), ControlError> {
    let (Some(acting), Some(id)) = (&claims.by_token, &claims.token) else { return Ok(()) };
    let found = clerk.state()?.token_of(id).await?;
    let ancestors = found.map(|token| token.claims.ancestors).unwrap_or_default();
    if acting.is_related_to(&ActingToken { id: id.clone(), ancestors }) {
        let why =
            "a token issues no grant for itself or for a token of the same credential: issue it at the machine itself";
        return Err(ControlError::Forbidden(why.to_owned()));
    }
    Ok(())
}
