//! `approvals`: held calls, and a person's answers to them.

mod showing;
mod watching;

use anyhow::Result;
use toolwarden_control::operations::approvals_answer::Outcome;
use toolwarden_control::operations::{
    ApprovalsApprove, ApprovalsDeny, ApprovalsLink, ApprovalsList, ApprovalsShow, ApprovalsStats, Nothing,
    approvals_approve, approvals_deny, approvals_link, approvals_list, approvals_show,
};
use toolwarden_core::name::shown;

use crate::clerk::Desk;
use crate::output::{self, Exit};
use toolwarden_cli::{ApprovalsCommand, Format, Places};

pub fn run(places: &Places, command: &ApprovalsCommand) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    match command {
        ApprovalsCommand::List { state, limit, format } => {
            let request = approvals_list::Request {
                state: Some(state.clone()),
                limit: Some(*limit),
                ..approvals_list::Request::default()
            };
            let found = desk.ask::<ApprovalsList>(request)?;
            if found.unreadable > 0 {
                output::remark(&format!(
                    "{} held calls were changed in the database by somebody without the key, and are left out",
                    found.unreadable
                ));
            }
            if found.next.is_some() {
                output::remark(&format!("there are more than the newest {}: see --limit", found.approvals.len()));
            }
            if format.json {
                output::json(&found.approvals)?;
            } else if found.approvals.is_empty() {
                output::text(if state == "held" { "no call waits for an answer\n" } else { "no such calls\n" })?;
            } else {
                output::text(&showing::list(&found.approvals))?;
            }
            Ok(Exit::Done)
        }
        ApprovalsCommand::Show { id, format } => {
            let view = desk.ask::<ApprovalsShow>(approvals_show::Request { id: id.clone(), narrowed: true })?;
            if format.json {
                output::json(&view)?;
            } else {
                output::text(&showing::whole(&view))?;
            }
            Ok(Exit::Done)
        }
        ApprovalsCommand::Approve { id, scope, conditions, free, note, again, format } => {
            let (scope, note) = (Some((*scope).into()), note.clone());
            let (id, conditions, free) = (id.clone(), conditions.clone(), free.clone());
            let request = approvals_approve::Request { id, scope, note, again: *again, conditions, free, digest: None };
            told(&desk.ask::<ApprovalsApprove>(request)?, format)
        }
        ApprovalsCommand::Deny { id, remember, note, take_back, format } => {
            let (id, note) = (id.clone(), note.clone());
            let request =
                approvals_deny::Request { id, remember: *remember, note, take_back: *take_back, digest: None };
            told(&desk.ask::<ApprovalsDeny>(request)?, format)
        }
        ApprovalsCommand::Link { id, user, groups, format } => {
            let request = approvals_link::Request { id: id.clone(), user: user.clone(), groups: groups.clone() };
            let link = desk.ask::<ApprovalsLink>(request)?;
            if format.json {
                output::json(&link)?;
            } else {
                output::text(&format!("{}\n", link.url))?;
            }
            Ok(Exit::Done)
        }
        ApprovalsCommand::Stats { format } => {
            let found = desk.ask::<ApprovalsStats>(Nothing {})?;
            if format.json {
                output::json(&found)?;
            } else {
                output::text(&showing::agreement(found.agreement))?;
            }
            Ok(Exit::Done)
        }
        ApprovalsCommand::Watch { format } => watching::watch(&desk, format.json),
    }
}

/// Says what an answer did.
fn told(outcome: &Outcome, format: &Format) -> Result<Exit> {
    let exit = if outcome.not_done.is_some() { Exit::Failed } else { Exit::Done };
    if let Some(not_done) = &outcome.not_done {
        output::remark(not_done);
    }
    if format.json {
        output::json(outcome)?;
        return Ok(exit);
    }
    output::text(&in_words(outcome))?;
    Ok(exit)
}

fn in_words(outcome: &Outcome) -> String {
    let view = &outcome.approval;
    let what = format!("{}:{}", shown(&view.server), shown(&view.tool));
    let is_approval = view.answer.as_ref().is_some_and(|answer| answer.is_approval);
    let mut text = if is_approval && outcome.followed {
        let shown = if view.result.is_some() { "gets its result" } else { "runs now" };
        format!("approved: {what}; its caller follows it as a task, which {shown}\n")
    } else if is_approval && view.result.is_some() {
        format!("approved: the result of {what}; the same call, made before {}, gets it\n", view.expires_at)
    } else if is_approval {
        format!("approved: {what}; the same call, made before {}, runs once\n", view.expires_at)
    } else {
        format!("denied: {what}; the same call is refused until {}\n", view.expires_at)
    };
    if let Some(besides) = &outcome.besides {
        text.push_str(&format!("{besides}\n"));
    }
    text
}
