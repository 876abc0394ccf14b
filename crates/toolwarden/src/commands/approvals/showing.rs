//! How held calls look: a line each, or one as a whole.

use toolwarden_control::ApprovalView;
use toolwarden_core::name::{shown, shown_json};
use toolwarden_core::{Agreement, ApprovalState};
use toolwarden_watch::words::{caller, in_one_line, in_quotes, machine, needs, tool, who};

use crate::output::{Colour, coloured};
use crate::table::{self, Cell, Last};

pub fn list(approvals: &[ApprovalView]) -> String {
    let row = |view: &ApprovalView| {
        vec![
            Cell::plain(view.id.as_str()),
            Cell::in_colour(view.state.as_str(), colour(view.state)),
            Cell::plain(who(view)),
            Cell::plain(tool(view)),
            Cell::plain(view.reason.as_str()),
            Cell::plain(in_one_line(&view.arguments.to_string())),
        ]
    };
    let headings = ["ID", "STATE", "WHO", "TOOL", "REASON", "ARGUMENTS"];
    table::text(&headings, approvals.iter().map(row).collect(), Last::Cut)
}

pub fn colour(state: ApprovalState) -> Colour {
    match state {
        ApprovalState::Held | ApprovalState::Unknown => Colour::Yellow,
        ApprovalState::Approved | ApprovalState::Consumed | ApprovalState::Dispatched | ApprovalState::Succeeded => {
            Colour::Green
        }
        ApprovalState::Rejected | ApprovalState::Failed => Colour::Red,
        ApprovalState::Expired | ApprovalState::Cancelled => Colour::Dim,
    }
}

/// Everything a person needs to answer.
pub fn whole(view: &ApprovalView) -> String {
    format!("{}{}", coloured(view.state.as_str(), colour(view.state)), after_state(view))
}

fn after_state(view: &ApprovalView) -> String {
    let mut text = format!("  {}\n", tool(view));
    let mut line = |name: &str, words: &str| text.push_str(&format!("  {name:<10} {words}\n"));
    line("id", &view.id);
    line("who", &caller(view));
    if let Some(client) = &view.caller.client {
        line("client", &in_one_line(client));
    }
    line("because", &format!("{} ({})", shown(&view.message), view.reason));
    if let Some(rule) = &view.rule {
        line("rule", &shown(rule));
    }
    line("held at", &view.held_at);
    line("until", &view.expires_at);
    if let Some(claims) = &view.claims {
        line("it says", &in_one_line(claims));
    }
    if let Some(opinion) = &view.machine_opinion {
        line("a machine", &machine(opinion));
    }
    if let Some(answer) = &view.answer {
        let what = if answer.is_approval { "approved" } else { "denied" };
        let note = answer.note.as_deref().map(|note| format!(": {}", shown(note))).unwrap_or_default();
        line("answer", &format!("{what} ({}) by {} at {}{note}", answer.scope.as_str(), shown(&answer.by), answer.at));
    }
    if view.followed {
        line("task", "its caller follows it as a task, which goes on once the call is approved");
    }
    text.push_str("  arguments\n");
    for line in shown_json(&view.laid_out).lines() {
        text.push_str(&format!("    {line}\n"));
    }
    if let Some(besides) = &view.besides {
        text.push_str("  besides\n");
        for line in shown_json(besides).lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    if let Some(result) = &view.result {
        text.push_str("  the call was made; its result\n");
        for line in shown_json(result).lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    if !needs(view).is_empty() {
        text.push_str(&format!("  needs      {}\n", needs(view)));
    }
    for offer in &view.offers {
        let scope = offer.scope.as_str();
        text.push_str(&format!("  --scope {scope:<8} permits {}\n", offer.permits));
    }
    narrowed(&mut text, view);
    text
}

/// How persons and the classifier agree, case by case.
pub fn agreement(agreement: Agreement) -> String {
    let row = |(verdict, answer, count): (&'static str, &'static str, u64)| {
        vec![Cell::plain(verdict), Cell::plain(answer), Cell::plain(count.to_string())]
    };
    table::text(&["CLASSIFIER", "PERSON", "CALLS"], agreement.cases().into_iter().map(row).collect(), Last::Cut)
}

/// What a narrowed answer could ask for, ready to be typed.
fn narrowed(text: &mut String, view: &ApprovalView) {
    if !view.narrowed.is_empty() {
        text.push_str("  --scope narrowed permits calls of this tool with such arguments, from now on; for example\n");
    }
    for offer in &view.narrowed {
        let conditions = offer.conditions.iter().map(|condition| format!(" --where {}", in_quotes(condition)));
        let free = offer.free.iter().map(|name| format!(" --free {}", in_quotes(name)));
        let options: String = conditions.chain(free).collect();
        let (allowed, of) = (offer.would_have_allowed, offer.of_earlier_calls);
        let denied = match offer.of_them_denied {
            0 => String::new(),
            denied => format!(", {denied} of them denied by a person"),
        };
        text.push_str(&format!(
            "   {options}\n      would have let {allowed} of {of} earlier held calls run{denied}\n"
        ));
        text.push_str(&format!("      adds {}\n", shown(&offer.entry)));
    }
}
