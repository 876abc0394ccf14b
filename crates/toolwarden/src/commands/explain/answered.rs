//! What people said of a call that the policy holds: grants, and answers to calls before. The decision stays the
//! policy's; who asks what would happen must still hear that the call itself would fare otherwise.

use anyhow::Result;
use jiff::Timestamp;
use toolwarden_control::ApprovalView;
use toolwarden_control::operations::{ApprovalsList, GrantsList, Nothing, approvals_list, grants_list::GrantView};
use toolwarden_core::name::shown;
use toolwarden_core::{ApprovalState, Caller, GrantedCall, HeldAnswer, HeldCaller, Payer};
use toolwarden_policy::{Pending, PolicySet, Query};
use toolwarden_review::may_be_granted;
use toolwarden_store::state::{REJECTED_WITHIN, REJECTIONS};

use crate::clerk::Desk;
use crate::store;

/// So many of the newest answers are looked at.
const LOOKED_AT: u32 = 1_000;

/// One sentence for each thing that was said. Where nothing can be asked, that is said instead.
pub(super) fn notes(desk: &Desk, policy: &PolicySet, query: &Query, pending: &Pending) -> Vec<String> {
    if ![Payer::Person, Payer::SecondPerson].into_iter().any(|payer| pending.may_be_paid_by(payer)) {
        return Vec::new();
    }
    looked_up(desk, policy, query, pending).unwrap_or_else(|error| {
        vec![format!("grants and earlier answers cannot be looked up, and are not considered: {error:#}")]
    })
}

fn looked_up(desk: &Desk, policy: &PolicySet, query: &Query, pending: &Pending) -> Result<Vec<String>> {
    // Nobody makes a store to look into it.
    if !desk.is_served()? && !store::exists(desk.locations(), &store::here(desk.locations())?)? {
        return Ok(Vec::new());
    }
    let mut notes = Vec::new();
    // Where an administrator says what runs unasked, standing answers do not count.
    if policy.contents().admin().is_none() && may_be_granted(pending) {
        let grants = desk.ask::<GrantsList>(Nothing {})?;
        notes.extend(grants.iter().find(|grant| covers(grant, query, pending)).map(granted));
    }
    let all = approvals_list::Request {
        state: Some("all".to_owned()),
        limit: Some(LOOKED_AT),
        ..approvals_list::Request::default()
    };
    let mut answered = desk.ask::<ApprovalsList>(all)?.approvals;
    answered.retain(|view| is_of(view, query));
    notes.extend(answered.iter().find_map(|view| told(view, query)));
    notes.extend(rejected_often(&answered, query.time));
    Ok(notes)
}

fn covers(grant: &GrantView, query: &Query, pending: &Pending) -> bool {
    let call = GrantedCall {
        caller: &query.caller,
        session: None,
        server: &query.call.server,
        tool: &query.call.tool,
        definition: "",
    };
    let answer = HeldAnswer {
        is_approval: true,
        by: grant.claims.by.clone(),
        groups: grant.claims.groups.clone(),
        door: String::new(),
        at: time(&grant.issued_at).unwrap_or(query.time),
        scope: toolwarden_core::AnswerScope::Session,
        note: grant.claims.note.clone(),
        token: grant.claims.by_token.clone(),
    };
    let counts = !grant.revoked && grant.calls_left != Some(0) && is_after(&grant.expires_at, query.time);
    counts && grant.claims.covers(&call) && pending.needs().lacks(&HeldCaller::from(&*query.caller), &answer).is_none()
}

fn granted(grant: &GrantView) -> String {
    let left = grant.calls_left.map_or_else(|| format!("until {}", grant.expires_at), |calls| format!("{calls} left"));
    format!("a grant covers this call, so it runs ({}, {left})", grant.id)
}

/// Whether it was made by this caller with this tool.
fn is_of(view: &ApprovalView, query: &Query) -> bool {
    let caller: &Caller = &query.caller;
    let is_same_token = match &caller.token.id {
        // A role without a token stands for every token of that role.
        None if caller.role.is_some() => true,
        id => view.caller.token == *id,
    };
    *view.server == *query.call.server
        && *view.tool == *query.call.tool
        && view.caller.user == caller.user
        && view.caller.role == caller.role
        && is_same_token
}

/// What was said of this very call, and still counts.
fn told(view: &ApprovalView, query: &Query) -> Option<String> {
    let answer = view.answer.as_ref().filter(|_| is_after(&view.expires_at, query.time))?;
    let asked = query.call.arguments.as_ref().map(|arguments| arguments.value().raw());
    let asked = asked.map(serde_json::from_str::<serde_json::Value>).transpose().ok()?;
    if asked.as_ref().is_some_and(|asked| *asked != view.arguments) {
        return None;
    }
    let (call, same) = match asked {
        Some(_) => ("this call", "this call"),
        None => ("a call of this tool", "the same call, with the same arguments,"),
    };
    let by = shown(&answer.by);
    match view.state {
        ApprovalState::Rejected => Some(format!(
            "{call} was rejected by {by} ({}): {same} is denied (rejected) until {}",
            view.id, view.expires_at
        )),
        ApprovalState::Approved => {
            Some(format!("{call} was approved by {by} ({}): {same} runs once, until {}", view.id, view.expires_at))
        }
        _ => None,
    }
}

/// Nobody is asked any more about a tool whose calls were rejected again and again.
fn rejected_often(answered: &[ApprovalView], now: Timestamp) -> Option<String> {
    let rejected = answered.iter().filter(|view| view.state == ApprovalState::Rejected);
    let mut ends: Vec<Timestamp> =
        rejected.filter_map(|view| time(&view.changed_at)?.checked_add(REJECTED_WITHIN).ok()).collect();
    ends.retain(|end| *end > now);
    ends.sort_unstable_by(|left, right| right.cmp(left));
    let most = usize::try_from(REJECTIONS).ok()?;
    let until = ends.get(most.checked_sub(1)?)?;
    Some(format!(
        "{REJECTIONS} calls of this tool were rejected within {} minutes: further ones are denied (rejected_often) until \
         {until}",
        REJECTED_WITHIN.as_secs() / 60
    ))
}

fn is_after(text: &str, now: Timestamp) -> bool {
    time(text).is_some_and(|time| time > now)
}

fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}
