//! `[control.webhooks.NAME]`: who is told of held calls elsewhere.

use toolwarden_core::{ApprovalState, Secret, name};

use super::gateway::WebhookSection;
use crate::readers::known::Section;
use crate::report::Report;
use crate::tree::Node;

pub(super) fn read(report: &mut Report, node: &Node) -> Vec<WebhookSection> {
    let mut webhooks = Vec::new();
    for (name, node) in report.table("webhooks", node) {
        let mut section = WebhookSection {
            name: name.text.clone(),
            url: Secret::new(String::new()),
            secret: None,
            format: "json".to_owned(),
            user: None,
            groups: Vec::new(),
            states: vec![ApprovalState::Held],
            arguments: false,
            answers: false,
        };
        let mut url = None;
        for (key, value) in report.keys(Section::Webhook, &name.text, node) {
            let what = key.text.as_str();
            match what {
                "url" => url = report.text(what, value).map(Secret::new),
                "secret" => section.secret = report.text(what, value).map(Secret::new),
                "format" => section.format = report.word(what, value, &["json", "slack"]).unwrap_or(section.format),
                "user" => section.user = report.text(what, value).filter(|user| is_person(report, value, user)),
                "groups" => {
                    let groups = report.plain_texts(what, value).unwrap_or_default();
                    section.groups = groups.into_iter().filter(|group| is_person(report, value, group)).collect();
                }
                "states" => section.states = states(report, value),
                "arguments" => section.arguments = report.boolean(what, value) == Some(true),
                "answers" => section.answers = report.boolean(what, value) == Some(true),
                _ => report.unread(key),
            }
        }
        let is_name = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_');
        if name.text.is_empty() || !name.text.bytes().all(is_name) {
            report.error(name.place, "bad_name", "a webhook is named by letters, digits, `-` and `_`");
            continue;
        }
        match url {
            Some(url) => webhooks.push(WebhookSection { url, ..section }),
            None if node.get("url").is_none() => {
                report.error(name.place, "missing_key", format!("the webhook `{}` needs `url`", name.text));
            }
            None => {}
        }
    }
    webhooks
}

/// Answers are given in this name: one that nobody can read, or that looks like another, is refused.
fn is_person(report: &mut Report, node: &Node, text: &str) -> bool {
    if let Err(fault) = name::check_written(text) {
        report.error(node.place, "bad_name", format!("`{}` is no user or group: {fault}", name::shown(text)));
        return false;
    }
    true
}

fn states(report: &mut Report, node: &Node) -> Vec<ApprovalState> {
    let known = ApprovalState::ALL.map(ApprovalState::as_str);
    let mut states = Vec::new();
    for text in report.plain_texts("states", node).unwrap_or_default() {
        let Some(state) = ApprovalState::parse(&text) else {
            report.error(node.place, "unknown_value", format!("`{text}` is no state of a held call"));
            report.help(known.join(", "));
            continue;
        };
        states.push(state);
    }
    states
}
