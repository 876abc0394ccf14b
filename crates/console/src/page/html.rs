//! The page as text. Everything that comes from callers, tools and servers is hostile: it is shown as it is written,
//! with what would deceive made visible, and never as markup.

use std::fmt::Write as _;

use toolwarden_control::{ApprovalView, NarrowedOffer};
use toolwarden_core::name::{shown, shown_json};
use toolwarden_core::{AnswerScope, ApprovalState, MachineVerdict};

use super::PAGE_PATH;
use super::form::{NARROWED, Narrowed};

/// How a visitor is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    LoggedIn,
    Linked,
}

/// What the form of a page carries back.
#[derive(Clone, Copy)]
pub(super) struct Carried<'a> {
    pub(super) mark: &'a str,
    pub(super) login: Option<&'a str>,
}

/// Text between tags or quotes.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

fn told(text: &str) -> String {
    escaped(&shown(text))
}

/// The frame of every page. The title says nothing of the call: previews and histories keep titles.
fn framed(inside: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>Toolwarden</title>\
         <link rel=\"stylesheet\" href=\"{PAGE_PATH}style.css\"></head>\n<body><main>\
         <header class=\"brand\">Toolwarden</header>\n{inside}</main></body></html>\n"
    )
}

pub(super) fn notice(words: &str) -> String {
    framed(&format!("<p class=\"notice\" role=\"status\">{}</p>\n", told(words)))
}

pub(super) fn login(next: Option<&str>, why: Option<&str>) -> String {
    let why = why.map(|why| format!("<p class=\"notice bad\" role=\"alert\">{}</p>", told(why))).unwrap_or_default();
    let next = next.map(|next| format!("<input type=\"hidden\" name=\"next\" value=\"{}\">", escaped(next)));
    framed(&format!(
        "<h1>Log in to answer held calls</h1>{why}\n<form method=\"post\" action=\"{PAGE_PATH}login\">{}\
         <label for=\"token\">Your token</label>\
         <input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" required autofocus>\
         <p class=\"hint\">A token of a person: <code>toolwarden tokens issue --person --user NAME --right approver\
         </code></p><p class=\"hint\">For a person without a token: a link to one held call, from \
         <code>toolwarden approvals link ID --user NAME</code></p><button class=\"primary\">Log in</button></form>\n",
        next.unwrap_or_default()
    ))
}

/// The call, and where it waits the form that answers it.
pub(super) fn call(view: &ApprovalView, (user, who): (&str, Who), carried: Carried<'_>, said: Option<&str>) -> String {
    let state = view.state.as_str();
    let mut page = String::new();
    if let Some(said) = said {
        let _ = writeln!(page, "<p class=\"notice\" role=\"status\">{}</p>", told(said));
    }
    let question = match (view.state, &view.result) {
        (ApprovalState::Held, None) => "May this be called?",
        (ApprovalState::Held, Some(_)) => "May this result be shown?",
        _ => "This call",
    };
    let _ = writeln!(
        page,
        "<h1>{question}</h1><p class=\"tool\"><strong>{}</strong> on <strong>{}</strong> \
         <span class=\"state {state}\">{state}</span></p>",
        told(&view.tool),
        told(&view.server)
    );
    page.push_str(&facts(view));
    let _ = writeln!(page, "<h2>Arguments</h2><pre>{}</pre>", escaped(&shown_json(&view.laid_out)));
    if let Some(besides) = &view.besides {
        let _ = writeln!(page, "<h2>Sent besides</h2><pre>{}</pre>", escaped(&shown_json(besides)));
    }
    if let Some(result) = &view.result {
        let _ = writeln!(page, "<h2>The call was made. Its result</h2><pre>{}</pre>", escaped(&shown_json(result)));
    }
    if let Some(claims) = &view.claims {
        let _ = writeln!(page, "<h2>What the tool says of itself</h2><blockquote>{}</blockquote>", told(claims));
    }
    if let Some(opinion) = &view.machine_opinion {
        let verdict = opinion.verdict.map_or("nothing that counts", MachineVerdict::as_str);
        let _ = writeln!(
            page,
            "<h2>What a machine thought ({})</h2><blockquote>{verdict}: {}</blockquote>",
            told(&opinion.model),
            told(&opinion.words)
        );
    }
    if view.state == ApprovalState::Held {
        page.push_str(&answers(view, who, carried));
    }
    page.push_str(&footer(user, who));
    framed(&page)
}

fn facts(view: &ApprovalView) -> String {
    let mut facts = String::from("<dl>");
    let mut fact = |name: &str, words: &str| {
        let _ = write!(facts, "<div><dt>{name}</dt><dd>{}</dd></div>", told(words));
    };
    let caller = &view.caller;
    let parts = [("role", &caller.role), ("token", &caller.token), ("mode", &caller.mode), ("task", &caller.task)];
    let mut who = caller.user.clone().unwrap_or_else(|| "somebody".to_owned());
    if caller.is_agent {
        who = format!("an agent of {who}");
    }
    for (name, value) in parts {
        if let Some(value) = value {
            let _ = write!(who, ", {name} {value}");
        }
    }
    fact("Who calls", &who);
    fact("Why it is held", &format!("{} ({})", view.message, view.reason));
    if let Some(rule) = &view.rule {
        fact("Rule", rule);
    }
    fact("Held at", &moment(&view.held_at));
    if view.state == ApprovalState::Held {
        fact("Waits until", &moment(&view.expires_at));
    }
    if let Some(answer) = &view.answer {
        let what = if answer.is_approval { "approved" } else { "denied" };
        let note = answer.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
        let at = moment(&answer.at.to_string());
        fact("Answer", &format!("{what} ({}) by {} at {at}{note}", answer.scope.as_str(), answer.by));
    }
    facts.push_str("</dl>\n");
    facts
}

/// A time as people read it, to the second.
fn moment(text: &str) -> String {
    let (day, time) = text.split_once('T').unwrap_or((text, ""));
    let second = time.split(['.', 'Z']).next().unwrap_or_default();
    format!("{day} {second} UTC")
}

fn answers(view: &ApprovalView, who: Who, carried: Carried<'_>) -> String {
    // After a login the address is another one.
    let action = carried.login.map(|_| format!(" action=\"{PAGE_PATH}{}\"", escaped(&view.id))).unwrap_or_default();
    let mut form = format!("<form method=\"post\"{action}>");
    for (name, value) in [("mark", Some(carried.mark)), ("login", carried.login)] {
        if let Some(value) = value {
            let _ = write!(form, "<input type=\"hidden\" name=\"{name}\" value=\"{}\">", escaped(value));
        }
    }
    let offers = offered(view, who);
    if offers.len() > 1 {
        form.push_str("<fieldset><legend>If you approve, this permits</legend>");
        for (value, permits) in offers {
            let checked = if value == AnswerScope::Once.as_str() { " checked" } else { "" };
            let _ = write!(
                form,
                "<label class=\"choice\"><input type=\"radio\" name=\"scope\" value=\"{}\"{checked}> <span>{}</span>\
                 </label>",
                escaped(&value),
                told(&permits)
            );
        }
        form.push_str("</fieldset>");
    } else {
        form.push_str("<p class=\"hint\">Your answer is for this one call.</p>");
    }
    let required = if view.needs.reason { " required" } else { "" };
    let hint = if view.needs.reason { "Why (needed)" } else { "Note (the agent reads it if you deny)" };
    let _ = writeln!(
        form,
        "<label for=\"note\">{hint}</label><textarea id=\"note\" name=\"note\" rows=\"2\" \
         maxlength=\"1000\"{required}></textarea><div class=\"buttons\">\
         <button class=\"bad\" name=\"answer\" value=\"deny\">Deny</button>\
         <button class=\"primary\" name=\"answer\" value=\"approve\">Approve</button></div></form>"
    );
    form
}

/// What can be chosen, and what each permits: the narrower before the wider.
fn offered(view: &ApprovalView, who: Who) -> Vec<(String, String)> {
    let mut offers = Vec::new();
    for offer in view.offers.iter().filter(|offer| who == Who::LoggedIn || offer.scope == AnswerScope::Once) {
        if offer.scope == AnswerScope::Tool {
            offers.extend(view.narrowed.iter().map(|one| narrowed(view, one)));
        }
        offers.push((offer.scope.as_str().to_owned(), offer.permits.clone()));
    }
    offers
}

fn narrowed(view: &ApprovalView, offer: &NarrowedOffer) -> (String, String) {
    let chosen = Narrowed { conditions: offer.conditions.clone(), free: offer.free.clone() };
    let value = format!("{NARROWED}{}", serde_json::to_string(&chosen).unwrap_or_default());
    let permits = format!("calls of {} on {} with {}", view.tool, view.server, offer.in_words());
    (value, permits)
}

fn footer(user: &str, who: Who) -> String {
    match who {
        Who::Linked => format!("<footer>This link was given to {}.</footer>\n", told(user)),
        Who::LoggedIn => format!("<footer>You answer as {}.</footer>\n", told(user)),
    }
}
