//! Held calls: those that wait, or in whatever state, the newest first.

use serde::{Deserialize, Serialize};
use toolwarden_core::ApprovalState;
use toolwarden_store::state::{ApprovalFilter, Whose};

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
    /// Those that follow a page: what it gave as `next`.
    pub after: Option<String>,
    /// Nothing, if nothing moved since: the version that an earlier answer gave.
    pub since: Option<u64>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub approvals: Vec<ApprovalView>,
    /// Rows that were changed by somebody without the key.
    pub unreadable: usize,
    /// What the next page is asked for with; none where this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Moves with every change to any held call.
    #[serde(default)]
    pub version: u64,
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
        let after = request.after.as_deref().map(page_of).transpose()?;
        let waits = states.contains(&ApprovalState::Held) || states.is_empty();
        // Whoever looked before and asks again follows what comes; one look hears of nothing that is held later.
        if let Some(feed) = clerk.parts.feed.as_ref().filter(|_| waits && request.since.is_some()) {
            feed.bells().attendance.looked(clerk.parts.clock.now());
        }
        // Before looking: what moves in between is looked at again.
        let version = clerk.state()?.approvals_version().await?;
        if request.since == Some(version) {
            return Ok(Outcome { version, ..Outcome::default() });
        }
        let filter = ApprovalFilter { states, whose: whose(actor), after, limit };
        let mut found = clerk.state()?.approvals(&filter).await?;
        found.approvals.retain(|approval| actor.sees_held(&approval.call));
        let next = found.next.map(|(held, id)| format!("{held}.{id}"));
        let offered = |approval| ApprovalView::from(approval).offered_to(actor);
        let approvals = found.approvals.into_iter().map(offered).collect();
        Ok(Outcome { approvals, unreadable: found.unreadable, next, version })
    }
}

/// Whom others' calls are not for gets their own and those they are named for, however many others there are.
fn whose(actor: &Actor) -> Option<Whose> {
    if actor.is(Role::Approver) {
        return None;
    }
    let groups = actor.groups.iter().map(|group| format!("group:{group}"));
    Some(Whose { user: actor.user.clone(), named: std::iter::once(actor.user.clone()).chain(groups).collect() })
}

fn page_of(text: &str) -> Result<(i64, String), ControlError> {
    let place = text.split_once('.').and_then(|(held, id)| Some((held.parse().ok()?, id.to_owned())));
    place.ok_or_else(|| ControlError::BadInput("`after` is what an earlier page gave as `next`".to_owned()))
}

fn unknown(text: &str) -> ControlError {
    let known: Vec<_> = ApprovalState::ALL.iter().map(|state| state.as_str()).collect();
    let text = toolwarden_core::name::shown(text);
    ControlError::BadInput(format!("`{text}` is no state of a held call: all, {}", known.join(", ")))
}
