//! What a webhook is told of a held call. Arguments only where the config says so: they leave the house.

use serde_json::{Value, json};
use toolwarden_control::ApprovalView;
use toolwarden_core::ApprovalState;
use toolwarden_core::name::{shown, shown_json};

use crate::webhook::{Format, Webhook};

/// Longest text of arguments in a message for people.
const LONGEST_SHOWN: usize = 2_000;
const LONGEST_NAME: usize = 200;
/// Of every part of it.
const LONGEST_SECTION: usize = 2_900;

/// The body of a message. `url` leads to the page of the call.
pub(crate) fn body(webhook: &Webhook, view: &ApprovalView, state: ApprovalState, url: Option<&str>) -> String {
    match webhook.parts.format {
        Format::Json => own(webhook, view, state, url),
        Format::Slack => slack(webhook, view, state, url),
    }
    .to_string()
}

fn own(webhook: &Webhook, view: &ApprovalView, state: ApprovalState, url: Option<&str>) -> Value {
    let mut data = json!({
        "id": view.id,
        "state": state,
        "server": view.server,
        "tool": view.tool,
        "caller": view.caller,
        "reason": view.reason,
        "message": view.message,
        "held_at": view.held_at,
        "expires_at": view.expires_at,
        "needs": view.needs,
    });
    if let Some(data) = data.as_object_mut() {
        if let Some(url) = url {
            data.insert("url".to_owned(), url.into());
        }
        if webhook.parts.arguments {
            data.insert("arguments".to_owned(), view.arguments.clone());
            data.insert("sent".to_owned(), view.sent.clone().into());
        }
        if let Some(answer) = &view.answer {
            data.insert("answer".to_owned(), json!({ "by": answer.by, "note": answer.note, "at": answer.at }));
        }
    }
    json!({ "type": format!("approval.{}", state.as_str()), "timestamp": view.changed_at, "data": data })
}

/// Slack reads three letters as markup, and `*` and `` ` `` in the rest: names stand in code, without backquotes.
fn plain(text: &str) -> String {
    shown(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('`', "'")
}

fn slack(webhook: &Webhook, view: &ApprovalView, state: ApprovalState, url: Option<&str>) -> Value {
    let who = view.caller.user.as_deref().unwrap_or("somebody");
    let who = shortened(who, LONGEST_NAME);
    let who = if view.caller.is_agent { format!("an agent of {who}") } else { who };
    let tool = format!("{} on {}", shortened(&view.tool, LONGEST_NAME), shortened(&view.server, LONGEST_NAME));
    let title = match state {
        ApprovalState::Held => format!("`{}` wants to call `{}`", plain(&who), plain(&tool)),
        state => format!("`{}` is {}", plain(&tool), state.as_str()),
    };
    let mut blocks = vec![section(&title)];
    blocks.push(section(&format!("Held because {} (`{}`)", plain(&view.message), plain(&view.reason))));
    if webhook.parts.arguments {
        let text = plain_lines(&shown_json(&view.laid_out));
        let cut = shortened(&text, LONGEST_SHOWN);
        let rest = if cut.len() < text.len() { "\n… the page shows all of it" } else { "" };
        blocks.push(section(&format!("```{cut}{rest}```")));
    }
    if let (Some(url), ApprovalState::Held) = (url, state) {
        blocks.push(json!({ "type": "actions", "elements": [{
            "type": "button", "style": "primary", "url": url, "action_id": "toolwarden_open",
            "text": { "type": "plain_text", "text": "Look and answer" },
        }] }));
    }
    json!({ "text": title, "blocks": blocks, "unfurl_links": false, "unfurl_media": false })
}

/// The same, with its lines.
fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}

/// Slack refuses longer texts, and then nobody is told. Cut as it is sent, since escaping makes it longer.
fn shortened(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

fn section(text: &str) -> Value {
    let text = shortened(text, LONGEST_SECTION);
    json!({ "type": "section", "text": { "type": "mrkdwn", "text": text } })
}

#[cfg(test)]
#[path = "payload_tests.rs"]
mod tests;
