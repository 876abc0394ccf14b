//! Held calls: those that wait, or in whatever state, the newest first.

use serde::{Deserialize, Serialize};
use toolwarden_core::ApprovalState;
use toolwarden_store::state::ApprovalFilter;

use crate::approvals::ApprovalView;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct ApprovalsList;

/// As many as a page shows.
const LIMIT: u32 = 100;
const MOST: u32 = 10_000;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// None = those that wait; `all` = in whatever state.
    pub state: Option<String>,
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub approvals: Vec<ApprovalView>,
    /// Rows that were changed by somebody without the key.
    pub unreadable: usize,
}

impl Operation for ApprovalsList {
    const PATH: &'static str = "/api/v1/approvals";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::State;
    const FOR: Role = Role::User;
    const ALSO_FOR: Option<Role> = Some(Role::Approver);
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let states = match request.state.as_deref() {
            None => vec![ApprovalState::Held],
            Some("all") => Vec::new(),
            Some(text) => vec![ApprovalState::parse(text).ok_or_else(|| unknown(text))?],
        };
        let limit = request.limit.unwrap_or(LIMIT).min(MOST);
        // Whom others' calls are not for gets their own, however many others there are.
        let user = (!actor.is(Role::Approver) && actor.groups.is_empty()).then(|| actor.user.clone());
        let filter = ApprovalFilter { states, user, limit };
        let (mut found, unreadable) = clerk.state()?.approvals(&filter).await?;
        found.retain(|approval| actor.sees_held(&approval.call));
        Ok(Outcome { approvals: found.into_iter().map(ApprovalView::from).collect(), unreadable })
    }
}

fn unknown(text: &str) -> ControlError {
    let known: Vec<_> = ApprovalState::ALL.iter().map(|state| state.as_str()).collect();
    let text = toolwarden_core::name::shown(text);
    ControlError::BadInput(format!("`{text}` is no state of a held call: all, {}", known.join(", ")))
}
