//! Held calls in a few words, for lists and lines.

use toolwarden_control::ApprovalView;
use toolwarden_core::name::shown;
use toolwarden_core::{MachineVerdict, Opinion};

/// Somebody's text for a line of a list.
#[must_use]
pub fn in_one_line(text: &str) -> String {
    text.split_whitespace().map(shown).collect::<Vec<_>>().join(" ")
}

/// The tool with its server.
#[must_use]
pub fn tool(view: &ApprovalView) -> String {
    format!("{}:{}", shown(&view.server), shown(&view.tool))
}

/// Who makes the call, in a word or two.
#[must_use]
pub fn who(view: &ApprovalView) -> String {
    let caller = &view.caller;
    let user = caller.user.as_deref().map(shown);
    let role = caller.role.as_deref().map(shown);
    match (user, role) {
        (Some(user), Some(role)) => format!("{role} of {user}"),
        (Some(user), None) => user.into_owned(),
        (None, Some(role)) => role.into_owned(),
        (None, None) => "somebody".to_owned(),
    }
}

/// What a model says is hostile: it read the call, and may say what the call told it to.
#[must_use]
pub fn machine(opinion: &Opinion) -> String {
    let says = match opinion.verdict {
        Some(MachineVerdict::Allow) => "would allow it",
        Some(MachineVerdict::Hold) => "would hold it",
        None => "has no verdict",
    };
    let shadow = if opinion.is_shadow { ", only listened to" } else { "" };
    format!("{says} ({}{shadow}): \"{}\"", in_one_line(&opinion.model), in_one_line(&opinion.words))
}

/// For a shell.
#[must_use]
pub fn in_quotes(text: &str) -> String {
    format!("'{}'", shown(text).replace('\'', "'\\''"))
}

/// Who makes the call, with everything that is known.
#[must_use]
pub fn caller(view: &ApprovalView) -> String {
    let caller = &view.caller;
    let named = [
        ("token", &caller.token),
        ("mode", &caller.mode),
        ("task", &caller.task),
        ("project", &caller.project),
        ("run", &caller.run),
        ("job", &caller.job),
    ];
    let known: Vec<_> = named
        .iter()
        .filter_map(|(name, value)| value.as_deref().map(|value| format!("{name} {}", shown(value))))
        .collect();
    if known.is_empty() { who(view) } else { format!("{} ({})", who(view), known.join(", ")) }
}

/// What an answer needs to count.
#[must_use]
pub fn needs(view: &ApprovalView) -> String {
    let mut needs = Vec::new();
    if !view.needs.approvers.is_empty() {
        let named: Vec<_> = view.needs.approvers.iter().map(|name| shown(name)).collect();
        needs.push(format!("an answer of {}", named.join(" or ")));
    }
    if view.needs.second_person {
        needs.push("another person than the caller".to_owned());
    }
    if view.needs.reason {
        needs.push("a note that says why".to_owned());
    }
    needs.join(", ")
}
