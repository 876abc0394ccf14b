//! Who may answer held calls, and how: whatever an answer no longer needs is wider, though no decision shows it.

use std::collections::BTreeSet;

use toolwarden_core::{ApprovalNeeds, Side};
use toolwarden_policy::{Contents, PolicySet};

use super::Found;

/// Most tools that are compared one by one; with more, any change counts.
const MOST_COMPARED: usize = 10_000;
/// Stands for every name that no entry has.
const ANY_OTHER: &str = "any other";

pub(super) fn compare(before: &PolicySet, after: &PolicySet, found: &mut Found) {
    let (old, new) = (before.contents(), after.contents());
    if old.same_approvers(new) {
        return;
    }
    let (servers, tools) = names(old, new);
    if servers.len().saturating_mul(tools.len()) > MOST_COMPARED {
        return found.add("approvers", "who may answer held calls changed", None);
    }
    let mut said = BTreeSet::new();
    for (server, tool) in servers.iter().flat_map(|server| tools.iter().map(move |tool| (server, tool))) {
        let is_left = old.names_approvers(server, tool) && !new.names_approvers(server, tool);
        let left = is_left.then_some("the classifier may give them");
        let needs = no_longer_needed(&old.approval_needs(server, tool), &new.approval_needs(server, tool));
        for what in needs.into_iter().chain(left) {
            if said.insert(what) {
                found.add("approvers", format!("answers to calls of {server}:{tool}: {what}"), None);
            }
        }
    }
}

/// Every server and tool that an entry names, and one that none does.
fn names(old: Contents<'_>, new: Contents<'_>) -> (BTreeSet<String>, BTreeSet<String>) {
    let other = || BTreeSet::from([ANY_OTHER.to_owned()]);
    let (mut servers, mut tools) = (other(), other());
    for entry in old.approver_entries().chain(new.approver_entries()) {
        for (side, names) in [(&entry.server, &mut servers), (&entry.tool, &mut tools)] {
            if let Side::Name(name) = side {
                names.insert(name.to_ascii_lowercase());
            }
        }
    }
    (servers, tools)
}

fn no_longer_needed(old: &ApprovalNeeds, new: &ApprovalNeeds) -> Vec<&'static str> {
    let mut found = Vec::new();
    if old.second_person && !new.second_person {
        found.push("a second person is no longer needed");
    }
    if old.reason && !new.reason {
        found.push("a reason is no longer needed");
    }
    let is_wider = new.approvers.is_empty() || new.approvers.iter().any(|name| !old.approvers.contains(name));
    if !old.approvers.is_empty() && is_wider {
        found.push("others may give them");
    }
    found
}
