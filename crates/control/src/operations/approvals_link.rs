//! A link by which one named person can answer one held call, once, without logging in.

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;
use toolwarden_core::{ActingToken, ApprovalState};
use toolwarden_store::state::Approval;

use super::approvals_show::find;
use crate::links::Link;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct ApprovalsLink;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub id: String,
    /// Whom it is for; whoever asks, where nobody is named.
    #[serde(default)]
    pub user: Option<String>,
    #[serde(default)]
    pub groups: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub id: String,
    pub user: String,
    /// The address, as far as this gateway knows how it is reached.
    pub url: String,
    pub expires_at: String,
}

impl Operation for ApprovalsLink {
    const PATH: &'static str = "/api/v1/approvals/link";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let approval = find(clerk, actor, &request.id).await?;
        if approval.state != ApprovalState::Held {
            let (id, state) = (&approval.id, approval.state.as_str());
            return Err(ControlError::BadInput(format!("{id} is {state}: nobody can answer it any more")));
        }
        let user = request.user.unwrap_or_else(|| clerk.whom(actor));
        let words = format!("give {} a link to answer it", shown(&user));
        clerk.record_approval(actor, ("approvals_link", "linked"), &words, &approval).await?;
        link_for(clerk, &approval, (user, request.groups), actor.acting_token())
    }
}

/// A link to a held call for one person, who has to be one that may answer it.
pub(crate) fn link_for(
    clerk: &Clerk,
    approval: &Approval,
    (user, groups): (String, Vec<String>),
    token: Option<ActingToken>,
) -> Result<Outcome, ControlError> {
    let base = clerk.parts.page.as_ref().ok_or(ControlError::Without("a running gateway with an address"))?;
    let call = &approval.call;
    if !call.needs.names(&user, &groups) {
        let user = shown(&user);
        return Err(ControlError::BadInput(format!("{user} is not among those who are named to answer this call")));
    }
    if call.needs.second_person && call.caller.user.as_ref() == Some(&user) {
        return Err(ControlError::BadInput("this call needs the answer of another person than its caller".to_owned()));
    }
    if token.as_ref().is_some_and(|token| call.caller.called_with(token)) {
        let why = "the token that made a call, and tokens of the same credential, give nobody a link to answer it: ask \
                   at the machine itself";
        return Err(ControlError::Forbidden(why.to_owned()));
    }
    let expires_at = approval.expires_at;
    let link = Link { approval: approval.id.clone(), user, groups, expires_at, token };
    let url = format!("{base}{}", link.sealed(&*clerk.keyring()?)?);
    Ok(Outcome { id: link.approval, user: link.user, url, expires_at: expires_at.to_string() })
}
