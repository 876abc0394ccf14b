//! Access rules: permits added, forbids and holds taken away, whatever their order, names and comments.

use serde_json::Value;
use toolwarden_policy::PolicySet;
use toolwarden_policy::rules::{Effect, Rule};

use super::Found;

/// A rule and what of it counts.
struct Counted<'a> {
    rule: &'a Rule,
    body: Value,
}

pub(super) fn compare(before: &PolicySet, after: &PolicySet, found: &mut Found) {
    let (Some(old), Some(new)) = (counted(before), counted(after)) else {
        found.add("rules_changed", "the rules cannot be compared", None);
        return;
    };
    for one in new.iter().filter(|one| one.rule.effect == Effect::Permit) {
        if !old.iter().any(|known| known.body == one.body) {
            found.add("permit_added", format!("the rule `{}` permits more", one.rule.name), Some(&one.rule.origin));
        }
    }
    for one in &old {
        let kept: Vec<&Counted<'_>> = new.iter().filter(|kept| kept.body == one.body).collect();
        let (name, origin) = (&one.rule.name, Some(&one.rule.origin));
        match one.rule.effect {
            Effect::Forbid if kept.is_empty() => {
                found.add("forbid_removed", format!("the rule `{name}` no longer forbids or holds"), origin);
            }
            Effect::Forbid if one.rule.hold.is_none() && kept.iter().all(|kept| kept.rule.hold.is_some()) => {
                found.add("forbid_weakened", format!("the rule `{name}` holds where it forbade"), origin);
            }
            // An error denies: a rule that may fail narrows, whatever it says.
            Effect::Permit if kept.is_empty() && one.rule.may_fail() => {
                found.add("rules_changed", format!("the rule `{name}`, which can fail and so deny, is gone"), origin);
            }
            Effect::Forbid | Effect::Permit => {}
        }
    }
}

fn counted(policy: &PolicySet) -> Option<Vec<Counted<'_>>> {
    policy.base().rules.all().iter().map(|rule| Some(Counted { rule, body: rule.body()? })).collect()
}
