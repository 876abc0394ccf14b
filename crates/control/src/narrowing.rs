//! The narrowed "always": an entry over arguments, made from a held call (REVIEW-3).
//!
//! What suggests itself is counted against the calls of the same tool and user that are still kept, so that a person
//! sees what it would have meant.

use serde::{Deserialize, Serialize};
use toolwarden_core::json::{Document, Limits};
use toolwarden_core::{ApprovalState, HeldCall, ShownCall};
use toolwarden_policy::{NarrowEntry, Narrowing};
use toolwarden_store::state::{Approval, ApprovalFilter, Whose};

use crate::clerk::blocking;
use crate::{Actor, Clerk, ControlError};

/// As many of the user's newest held calls are looked at.
const LOOKED_AT: u32 = 500;

/// A narrowed answer that suggests itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NarrowedOffer {
    /// As `where` and `free` of the answer have them.
    #[serde(rename = "where")]
    pub conditions: Vec<String>,
    pub free: Vec<String>,
    /// The entry it adds, and the rule in Cedar that decides by it.
    pub entry: String,
    pub rule: String,
    /// So many of the earlier calls it would have covered.
    pub would_have_allowed: usize,
    pub of_earlier_calls: usize,
    /// So many of those it would have covered were denied by a person.
    pub of_them_denied: usize,
}

impl NarrowedOffer {
    /// What calls it is for, in words: what it leaves open first, since that is what it permits.
    #[must_use]
    pub fn in_words(&self) -> String {
        let free = self.free.iter().map(|name| format!("any {}", plain(name)));
        let asks: Vec<_> = free.chain(self.conditions.iter().map(|condition| asked(condition))).collect();
        let denied = match self.of_them_denied {
            0 => String::new(),
            denied => format!(", {denied} of them denied"),
        };
        let (allowed, of) = (self.would_have_allowed, self.of_earlier_calls);
        format!("{}; it would have let {allowed} of {of} earlier calls run{denied}", asks.join(", "))
    }
}

/// A condition as people say it.
fn asked(condition: &str) -> String {
    let parts = condition.split_once('=').and_then(|(name, asks)| Some((name, asks.split_once(':')?)));
    let (name, kind, value) = match parts {
        Some((name, (kind, value))) => (plain(name), kind, plain(value)),
        None => return plain(condition),
    };
    match kind {
        "equals" => format!("{name} = {value}"),
        "path" => format!("{name} below {value}"),
        "host" => format!("{name} at {value}"),
        "branch" => format!("{name} on branch {value}"),
        _ => plain(condition),
    }
}

/// A caller's words, in quotes where they could be taken for ours.
fn plain(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) { text.to_owned() } else { format!("{text:?}") }
}

#[cfg(test)]
#[test]
fn what_a_caller_wrote_is_not_taken_for_our_words() {
    let offer = |condition: &str, free: &str| NarrowedOffer {
        conditions: vec![condition.to_owned()],
        free: vec![free.to_owned()],
        entry: String::new(),
        rule: String::new(),
        would_have_allowed: 1,
        of_earlier_calls: 2,
        of_them_denied: 1,
    };
    let told = "any text, path below src; it would have let 1 of 2 earlier calls run, 1 of them denied";
    assert_eq!(offer("path=path:src", "text").in_words(), told);
    let sly = offer("a=equals:b; it would have let 9 of 9 earlier calls run", "x, path below src").in_words();
    assert!(sly.starts_with("any \"x, path below src\", a = \"b; it would have let 9 of 9"), "{sly}");
}

/// Whether an entry over arguments would help: where an entry would, and a tool was called.
pub(crate) fn may_be_narrowed(call: &HeldCall) -> bool {
    !call.candidates.is_empty() && call.method == "tools/call"
}

/// The entry a person asks for.
pub(crate) fn choose(call: &HeldCall, chosen: &Narrowing) -> Result<NarrowEntry, ControlError> {
    let none = || ControlError::BadInput("the arguments of the call cannot be read".to_owned());
    let document = arguments(call).ok_or_else(none)?;
    NarrowEntry::choose((&call.server, &call.tool), document.root(), chosen)
        .map_err(|fault| ControlError::BadInput(format!(
            "`narrowed` cannot be answered so: {fault}. Name every argument of the call, with `--where NAME=KIND:VALUE` or \
             `--free NAME`"
        )))
}

/// What suggests itself for a held call.
pub(crate) async fn suggest(
    clerk: &Clerk,
    actor: &Actor,
    approval: &Approval,
) -> Result<Vec<NarrowedOffer>, ControlError> {
    let (Some(user), Some(document)) = (approval.call.caller.user.clone(), arguments(&approval.call)) else {
        return Ok(Vec::new());
    };
    let whose = Whose { user: user.clone(), named: Vec::new() };
    let filter = ApprovalFilter { whose: Some(whose), limit: LOOKED_AT, ..ApprovalFilter::default() };
    let mut earlier = clerk.state()?.approvals(&filter).await?.approvals;
    earlier.retain(|other| {
        let is_alike = other.call.server == approval.call.server && other.call.tool == approval.call.tool;
        let is_own = other.call.caller.user.as_ref() == Some(&user) && actor.sees_held(&other.call);
        other.id != approval.id && is_alike && is_own && other.call.method == "tools/call"
    });
    let (server, tool) = (approval.call.server.clone(), approval.call.tool.clone());
    blocking(move || {
        let read = |other: &Approval| Some((arguments(&other.call)?, other.state == ApprovalState::Rejected));
        let earlier: Vec<(Document, bool)> = earlier.iter().filter_map(read).collect();
        let offer = |(chosen, entry): (Narrowing, NarrowEntry)| NarrowedOffer {
            would_have_allowed: entry.count(earlier.iter().map(|(call, _)| call.root())),
            of_earlier_calls: earlier.len(),
            of_them_denied: entry.count(earlier.iter().filter(|(_, denied)| *denied).map(|(call, _)| call.root())),
            conditions: chosen.conditions,
            free: chosen.free,
            entry: entry.to_string(),
            rule: entry.rule_text().unwrap_or_default(),
        };
        Ok(NarrowEntry::suggest((&server, &tool), document.root()).into_iter().map(offer).collect())
    })
    .await
}

/// The arguments as they were sent: the same bytes the judge was asked about.
fn arguments(call: &HeldCall) -> Option<Document> {
    let sent = ShownCall::of(&call.method, &call.params).arguments;
    let limits = Limits::again(sent.len());
    Document::parse(sent, limits).ok()
}
