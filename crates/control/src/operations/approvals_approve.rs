//! Permits a held call: once, or, where that is offered, from now on (REVIEW-3).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;
use toolwarden_core::{AnswerScope, ApprovalState, GrantClaims, HeldCall, SESSION_ANCHOR, TOKEN_ANCHOR};
use toolwarden_policy::{NarrowEntry, Narrowing};

use super::allowlist_add::{AllowlistAdd, Request as AddRequest};
use super::approvals_answer::{Outcome, Said, answer, whose};
use super::approvals_show::find;
use super::grants_issue::issue;
use crate::approvals::{must_be_shown, offers, reach};
use crate::narrowing::{choose, may_be_narrowed};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// How long "this session" lasts at most.
const SESSION: Duration = Duration::from_secs(8 * 60 * 60);

/// The operation.
#[derive(Debug)]
pub struct ApprovalsApprove;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub id: String,
    /// What else it permits: `once`, where nothing is said.
    #[serde(default)]
    pub scope: Option<AnswerScope>,
    #[serde(default)]
    pub note: Option<String>,
    /// Also where the call may have run already, and nobody knows.
    #[serde(default)]
    pub again: bool,
    /// For `narrowed`: what arguments must be like, as `NAME=KIND:VALUE`.
    #[serde(default, rename = "where")]
    pub conditions: Vec<String>,
    /// For `narrowed`: arguments that may be anything.
    #[serde(default)]
    pub free: Vec<String>,
    /// Only if the call has this digest: the one that `approvals show` gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl Operation for ApprovalsApprove {
    const PATH: &'static str = "/api/v1/approvals/approve";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::User;
    const ALSO_FOR: Option<Role> = Some(Role::Approver);
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let scope = request.scope.unwrap_or(AnswerScope::Once);
        let approval = find(clerk, actor, &request.id).await?;
        let call = approval.call.clone();
        must_be_shown(&call, &request.id, request.digest.as_deref())?;
        check_scope(&call, scope)?;
        // Made before anything counts: what cannot be an entry is said now.
        let narrowed = narrowed(&call, scope, &request)?;
        if approval.state == ApprovalState::Unknown && !request.again {
            return Err(ControlError::BadInput(format!(
                "the call left, and nobody knows how it ended: approved once more it may run twice. Look at the server \
                 first, then say so: `toolwarden approvals approve {} --again`",
                approval.id
            )));
        }
        if matches!(scope, AnswerScope::Tool | AnswerScope::Server | AnswerScope::Narrowed) {
            // Said before anything counts: whose lists these are.
            actor.must_be(&whose(&call)?, "lists of others")?;
        }
        let note = request.note.clone();
        let answered = answer(clerk, actor, approval, Said::Yes(scope), request.note).await?;
        let (besides, not_done) = match always(clerk, actor, &call, (scope, narrowed), note).await {
            Ok(besides) => (besides, None),
            Err(error) => {
                (None, Some(format!("the call is approved once; what else was asked for is not done: {error}")))
            }
        };
        // Only for the words: where it cannot be looked up, making the call again is right, too.
        let followed = clerk.state()?.is_followed(&request.id).await.unwrap_or_default();
        Ok(Outcome { approval: answered.into(), besides, not_done, followed })
    }
}

/// Only what is offered can be answered.
fn check_scope(call: &HeldCall, scope: AnswerScope) -> Result<(), ControlError> {
    let is_narrowed = scope == AnswerScope::Narrowed && may_be_narrowed(call);
    if is_narrowed || offers(call).iter().any(|offer| offer.scope == scope) {
        return Ok(());
    }
    let why = match scope {
        AnswerScope::Session => "this call belongs to no conversation that could be told from others",
        _ => "no entry of an allowlist would let such calls through: a person is asked each time",
    };
    Err(ControlError::BadInput(format!("`{}` cannot be answered: {why}", scope.as_str())))
}

/// The entry over arguments that is asked for.
fn narrowed(call: &HeldCall, scope: AnswerScope, request: &Request) -> Result<Option<NarrowEntry>, ControlError> {
    let chosen = Narrowing { conditions: request.conditions.clone(), free: request.free.clone() };
    match scope {
        AnswerScope::Narrowed => choose(call, &chosen).map(Some),
        _ if chosen == Narrowing::default() => Ok(None),
        _ => Err(ControlError::BadInput("arguments are chosen for the answer `narrowed` alone".to_owned())),
    }
}

/// "Run and add": the entry goes where it takes effect.
async fn always(
    clerk: &Clerk,
    actor: &Actor,
    call: &HeldCall,
    (scope, narrowed): (AnswerScope, Option<NarrowEntry>),
    note: Option<String>,
) -> Result<Option<String>, ControlError> {
    let entry = match scope {
        AnswerScope::Once => return Ok(None),
        AnswerScope::Session => return this_session(clerk, actor, call, note).await.map(Some),
        AnswerScope::Tool => format!("{}:{}", call.server, call.tool),
        AnswerScope::Server => format!("{}:*", call.server),
        AnswerScope::Narrowed => match narrowed {
            Some(entry) => entry.to_string(),
            None => return Ok(None),
        },
    };
    let request = AddRequest { entry, user: Some(whose(call)?), ..AddRequest::default() };
    let added = AllowlistAdd::run(clerk, actor, request).await?;
    Ok(Some(format!("`{}` is in {} ({})", shown(&added.entry), shown(&added.place), added.outcome)))
}

/// The same tool, as it is defined now, in the same conversation, for a while (REVIEW-7).
async fn this_session(
    clerk: &Clerk,
    actor: &Actor,
    call: &HeldCall,
    note: Option<String>,
) -> Result<String, ControlError> {
    let anchor = call.anchor.as_deref().unwrap_or_default();
    let claims = GrantClaims {
        server: call.server.clone(),
        tool: Some(call.tool.clone()),
        definition: call.definition.clone(),
        token: anchor.strip_prefix(TOKEN_ANCHOR).map(str::to_owned),
        session: anchor.strip_prefix(SESSION_ANCHOR).map(str::to_owned),
        user: call.caller.user.clone(),
        by: actor.user.clone(),
        groups: actor.groups.clone(),
        by_token: actor.acting_token(),
        note,
        ..GrantClaims::default()
    };
    let until = clerk.parts.clock.now().checked_add(SESSION).unwrap_or(jiff::Timestamp::MAX);
    let grant = issue(clerk, actor, "approvals_session", claims, None, until).await?;
    Ok(format!(
        "{} runs without asking {} until {} (grant {})",
        grant.entry(),
        reach(anchor),
        grant.expires_at,
        grant.id
    ))
}
