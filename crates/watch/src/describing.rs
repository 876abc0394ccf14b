//! The texts of the panes: a held call, the questions about an answer, and the help.

use toolwarden_control::{ApprovalView, NarrowedOffer};
use toolwarden_core::AnswerScope;
use toolwarden_core::name::shown;

use crate::board::{Answer, Verb};
use crate::content::{Content, Style};
use crate::words;

/// Everything a person has to see before the call can be approved.
pub fn call(view: &ApprovalView) -> Content {
    let mut content = Content::default();
    content.field("tool", &words::tool(view));
    content.field("called by", &words::caller(view));
    if let Some(client) = &view.caller.client {
        content.quote("client", client);
    }
    content.field("because", &format!("{} ({})", view.message, view.reason));
    if let Some(rule) = &view.rule {
        content.quote("rule", rule);
    }
    content.json("arguments", &view.laid_out);
    if let Some(besides) = &view.besides {
        content.json("also sent", besides);
    }
    if let Some(result) = &view.result {
        content.json("the call was made, this result waits", result);
    }
    if let Some(claims) = &view.claims {
        content.quote("tool says", claims);
    }
    if let Some(opinion) = &view.machine_opinion {
        content.quote("classifier", &words::machine(opinion));
    }
    let needs = words::needs(view);
    if !needs.is_empty() {
        content.field("needs", &needs);
    }
    if view.followed {
        content.field("task", "its caller follows it as a task: approved, it goes on by itself");
    }
    content.field("held", &format!("{}, until {}", seconds(&view.held_at), seconds(&view.expires_at)));
    content.field("id", &view.id);
    answers(&mut content, view);
    content
}

/// A time without its fractions of a second.
fn seconds(time: &str) -> String {
    let parsed: Option<jiff::Timestamp> = time.parse().ok();
    parsed.map_or_else(|| time.to_owned(), |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// What each key would permit, as exact entries.
fn answers(content: &mut Content, view: &ApprovalView) {
    content.say("answers", Style::Strong);
    let mut line = |key: &str, words: &str| content.field(&format!("  {key}"), words);
    for offer in &view.offers {
        match offer.scope {
            AnswerScope::Once => line("a", "approve once: this call and nothing else"),
            AnswerScope::Session => {
                line("s", &format!("permit {} in this session, at most 8 hours", entry(view, offer.scope)));
            }
            AnswerScope::Tool => {
                line("t", &format!("always permit {}, with any arguments", entry(view, offer.scope)));
            }
            AnswerScope::Server => {
                line("S", &format!("always permit {}, every tool of the server", entry(view, offer.scope)));
            }
            AnswerScope::Narrowed => {}
        }
    }
    if may_narrow(view) {
        line("n", "always permit calls with such arguments: shows the entries");
    }
    line("d", "deny this call, with a note for the agent");
    line("D", &format!("deny, and block {} for {} from now on", words::tool(view), user(view)));
}

/// Narrowed entries are offered where entries are, and only for tools.
pub fn may_narrow(view: &ApprovalView) -> bool {
    view.offers.iter().any(|offer| offer.scope == AnswerScope::Tool)
}

/// The entry that a permanent answer adds.
pub fn entry(view: &ApprovalView, scope: AnswerScope) -> String {
    match scope {
        AnswerScope::Server => format!("{}:*", shown(&view.server)),
        _ => words::tool(view),
    }
}

fn user(view: &ApprovalView) -> String {
    view.caller.user.as_deref().map_or_else(|| "its user".to_owned(), |user| shown(user).into_owned())
}

/// The narrowed entries to choose from.
pub fn offers(view: &ApprovalView, offers: &[NarrowedOffer]) -> Content {
    let mut content = Content::default();
    content.say(&format!("Entries for calls of {} with such arguments:", words::tool(view)), Style::Plain);
    for (place, offer) in offers.iter().enumerate() {
        content.field(&format!("  {}", place + 1), &format!("always with {}", offer.in_words()));
        content.quote("    entry", &offer.entry);
    }
    content
}

/// The last question before a permanent answer.
pub fn confirmation(view: &ApprovalView, answer: &Answer) -> Content {
    let mut content = Content::default();
    let tool = words::tool(view);
    match &answer.verb {
        Verb::Deny { .. } => {
            content.say("Deny this call and block the tool?", Style::Bad);
            content.field("call", &format!("{tool}, {}", view.id));
            content.field("blocks", &tool);
            content.field("for", &user(view));
            content.field("means", "every later call of this tool is denied, and nobody is asked");
            content.quote("undo", &format!("toolwarden unblock {}", words::in_quotes(&tool)));
        }
        Verb::Approve { scope, entry, .. } => {
            content.say("Approve this call, and such calls from now on without asking?", Style::Caution);
            content.field("call", &format!("{tool}, {}", view.id));
            content.quote("adds", entry);
            content.field("to", &format!("the allowlist of {}", user(view)));
            let offer = view.offers.iter().find(|offer| offer.scope == *scope);
            let permits =
                offer.map_or("every call of this tool with such arguments, from now on", |offer| &offer.permits);
            content.field("permits", permits);
            content.quote("undo", &format!("toolwarden disallow {}", words::in_quotes(entry)));
        }
    }
    if let Some(note) = &answer.note {
        content.quote("note", note);
    }
    content
}

/// The question for a note.
pub fn note(view: &ApprovalView, answer: &Answer, is_required: bool) -> Content {
    let mut content = Content::default();
    let (words, style) = match answer.verb {
        Verb::Deny { .. } => ("Deny this call?", Style::Bad),
        Verb::Approve { .. } => ("Approve this call?", Style::Caution),
    };
    content.say(words, style);
    content.field("call", &format!("{}, {}", words::tool(view), view.id));
    let reader =
        if matches!(answer.verb, Verb::Deny { .. }) { "The agent is told the note." } else { "The note is recorded." };
    let whether = if is_required { "Answers to this tool need one." } else { "It may be empty." };
    content.field("note", &format!("{reader} {whether}"));
    content
}

pub fn help() -> Content {
    let mut content = Content::default();
    for (keys, words) in [
        ("↑ ↓ j k", "scroll the call by a row"),
        ("PgUp PgDn", "scroll by a page"),
        ("Home End", "go to the first or the last row (also g, G)"),
        ("Space", "go to the next rows that were not shown yet"),
        ("Tab ← →", "choose another call (Shift-Tab: back)"),
        ("a", "approve this call, once"),
        ("s", "approve it, and the tool for this session"),
        ("t", "approve it, and the tool from now on; asks once more"),
        ("S v", "approve it, and every tool of the server; asks once more"),
        ("n", "choose an entry over the arguments; asks once more"),
        ("d", "deny it; asks for a note, Enter sends"),
        ("D", "deny it, and block the tool; asks once more"),
        ("Esc", "leave a question without an answer"),
        ("q Ctrl-C", "leave; held calls go on waiting"),
    ] {
        content.field(keys, words);
    }
    content.say("A call can be approved once every row of it was on the screen.", Style::Plain);
    content.say("An answer counts only for the call that was shown.", Style::Plain);
    content
}
