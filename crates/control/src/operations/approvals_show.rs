//! One held call: the arguments, what the tool says of itself, who calls, why it is held, and what can be answered.

use serde::{Deserialize, Serialize};
use toolwarden_core::ApprovalState;
use toolwarden_core::name::shown;
use toolwarden_store::state::Approval;

use crate::approvals::ApprovalView;
use crate::editing::not_there;
use crate::narrowing::{may_be_narrowed, suggest};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct ApprovalsShow;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub id: String,
    /// With what a narrowed answer could ask for.
    #[serde(default)]
    pub narrowed: bool,
}

impl Operation for ApprovalsShow {
    const PATH: &'static str = "/api/v1/approvals/show";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::State;
    const FOR: Role = Role::User;
    const ALSO_FOR: Option<Role> = Some(Role::Approver);
    type Request = Request;
    type Outcome = ApprovalView;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<ApprovalView, ControlError> {
        let approval = find(clerk, actor, &request.id).await?;
        let may_add = actor.may_add_for(approval.call.caller.user.as_deref());
        let is_open = approval.state == ApprovalState::Held && may_be_narrowed(&approval.call) && may_add;
        let narrowed = if request.narrowed && is_open { suggest(clerk, actor, &approval).await? } else { Vec::new() };
        // Only told to people: where it cannot be looked up, the call can be answered all the same.
        let followed = clerk.state()?.is_followed(&approval.id).await.unwrap_or_default();
        Ok(ApprovalView { narrowed, followed, ..ApprovalView::from(approval).offered_to(actor) })
    }
}

/// A held call this one may see. Others do not exist for them.
pub(super) async fn find(clerk: &Clerk, actor: &Actor, id: &str) -> Result<Approval, ControlError> {
    let found = clerk.state()?.approval(id).await?.filter(|approval| actor.sees_held(&approval.call));
    found.ok_or_else(|| no_such(id))
}

pub(super) fn no_such(id: &str) -> ControlError {
    not_there(format!("no held call has the id `{}`", shown(id)), "see `toolwarden approvals list`")
}
