//! Roles by name: added, moved to the other side, or with more to call.

use toolwarden_core::Sourced;
use toolwarden_policy::input::{ArgumentCondition, Declared};
use toolwarden_policy::roles::{Pattern, Role};
use toolwarden_policy::servers::Servers;
use toolwarden_policy::{PolicySet, shipped};

use super::Found;

pub(super) fn compare(before: &PolicySet, after: &PolicySet, found: &mut Found) {
    for new in after.base().roles.sorted() {
        let Some(old) = before.base().roles.get(&new.name) else {
            found.add("role_added", format!("the role `{}` is new", new.name), Some(&new.origin));
            continue;
        };
        if old.side != new.side {
            let what = format!("the role `{}` now has the scope `{}`", new.name, new.side.as_str());
            found.add("role_scope_changed", what, Some(&new.origin));
        }
        allowed(old, new, after.servers(), found);
        disallowed(old, new, found);
        conditions(old, new, found);
    }
}

fn patterns(texts: &[Sourced<String>]) -> impl Iterator<Item = (&Sourced<String>, Pattern)> {
    texts.iter().filter_map(|text| Some((text, Pattern::parse(&text.value).ok()?)))
}

fn allowed(old: &Role, new: &Role, servers: &Servers, found: &mut Found) {
    for (text, pattern) in patterns(&new.allow_texts) {
        // A pattern without a server reaches only those of an operator.
        let is_operators =
            |name: &String| servers.get(name).is_none_or(|server| server.declared == Declared::ByOperator);
        let reaches = |known: &Pattern| known.server.is_some() || pattern.server.as_ref().is_none_or(is_operators);
        if !patterns(&old.allow_texts).any(|(_, known)| known.covers(&pattern) && reaches(&known)) {
            let what = format!("the role `{}` may now call `{}`", new.name, text.value);
            found.add("role_widened", what, Some(&text.origin));
        }
    }
}

/// Deny sides ignore case.
fn disallowed(old: &Role, new: &Role, found: &mut Found) {
    for (text, pattern) in patterns(&old.disallow_texts) {
        if !patterns(&new.disallow_texts).any(|(_, kept)| kept.folded().covers(&pattern.folded())) {
            let what = format!("`{}` is no longer disallowed for the role `{}`", text.value, new.name);
            found.add("disallow_removed", what, Some(&text.origin));
        }
    }
}

fn conditions(old: &Role, new: &Role, found: &mut Found) {
    for condition in old.conditions() {
        if !new.conditions().any(|kept| keeps(condition, kept)) {
            let what = format!("the role `{}` may call `{}` under wider conditions", new.name, condition.tool.value);
            found.add("condition_removed", what, Some(&condition.tool.origin));
        }
    }
    // Some tools are permitted only where a condition is given at all.
    let needs_one = shipped::ROLES.iter().any(|role| role.name == new.name && !role.conditional.is_empty());
    for condition in new.conditions().filter(|_| needs_one) {
        if !old.conditions().any(|known| known.tool.value == condition.tool.value) {
            let what = format!("the role `{}` may call `{}` under a condition", new.name, condition.tool.value);
            found.add("condition_added", what, Some(&condition.tool.origin));
        }
    }
}

/// Whether a condition demands at least what another demands, of the same tools.
fn keeps(old: &ArgumentCondition, new: &ArgumentCondition) -> bool {
    old.tool.value.eq_ignore_ascii_case(&new.tool.value)
        && old.arguments.iter().all(|(name, texts)| {
            new.arguments.get(name).is_some_and(|kept| kept.iter().all(|text| texts.contains(text)))
        })
}
