//! Refuses a held call, and where asked to every later one of its tool (REVIEW-3).

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;
use toolwarden_core::{AnswerScope, ApprovalState, HeldCall};
use toolwarden_sources::edit::Write;
use toolwarden_sources::records::StoredUser;
use toolwarden_store::state::Approval;

use super::allowlist_edit::edit_lists;
use super::approvals_answer::{Outcome, Said, answer, whose};
use super::approvals_show::find;
use crate::approvals::must_be_shown;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct ApprovalsDeny;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub id: String,
    /// And never again: the tool is blocked for the caller's user.
    #[serde(default)]
    pub remember: bool,
    #[serde(default)]
    pub note: Option<String>,
    /// Also where somebody permitted it, and the call was not made yet.
    #[serde(default)]
    pub take_back: bool,
    /// Only if the call has this digest: the one that `approvals show` gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl Operation for ApprovalsDeny {
    const PATH: &'static str = "/api/v1/approvals/deny";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::User;
    const ALSO_FOR: Option<Role> = Some(Role::Approver);
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let approval = find(clerk, actor, &request.id).await?;
        let call = approval.call.clone();
        must_be_shown(&call, &request.id, request.digest.as_deref())?;
        let takes_back = request.take_back && approval.state == ApprovalState::Approved;
        let said = if takes_back { Said::NotAnyMore } else { Said::No };
        if request.remember {
            actor.must_be(&whose(&call)?, "blocks of others")?;
        }
        let stays = takes_back.then(|| stays(&approval)).flatten();
        let answered = answer(clerk, actor, approval, said, request.note).await?;
        let blocked = if request.remember { block(clerk, actor, &call).await.map(Some) } else { Ok(None) };
        let (besides, not_done) = match blocked {
            Ok(besides) => (besides.or(stays), None),
            Err(error) => (None, Some(format!("the call is denied; the tool is not blocked: {error}"))),
        };
        Ok(Outcome { approval: answered.into(), besides, not_done, followed: false })
    }
}

/// What an approval permitted besides its call is not taken back with it.
fn stays(approval: &Approval) -> Option<String> {
    let scope = approval.answer.as_ref()?.scope;
    (scope != AnswerScope::Once).then(|| {
        format!(
            "what it permitted besides (`{}`) stands: see `toolwarden grants list` and `toolwarden allowlist`",
            scope.as_str()
        )
    })
}

/// "Deny always": a block of the user, which is decided before anybody is asked.
async fn block(clerk: &Clerk, actor: &Actor, call: &HeldCall) -> Result<String, ControlError> {
    let user = whose(call)?;
    let entry = format!("{}:{}", call.server, call.tool);
    let words = format!("block `{}` for {}", shown(&entry), shown(&user));
    let locations = clerk.parts.locations.clone();
    let added = entry.clone();
    let edit = move |_: &_, (_, stored): (&str, &mut StoredUser), _: Write| {
        if !stored.blocks.iter().any(|known| known.eq_ignore_ascii_case(&added)) {
            stored.blocks.push(added.clone());
        }
        Ok(((), false))
    };
    edit_lists(clerk, (actor, "approvals_block", &words, true), (locations, user.clone()), edit).await?;
    Ok(format!(
        "`{}` is blocked for {}; `toolwarden unblock '{}'` takes that back",
        shown(&entry),
        shown(&user),
        shown(&entry)
    ))
}
