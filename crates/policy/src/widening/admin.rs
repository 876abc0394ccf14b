//! The admin record: while there is one, its lists count and nobody else's.

use super::{Found, entries};
use crate::lists::{Admin, Lists};
use crate::set::PolicySet;

pub(super) fn compare(before: &PolicySet, after: &PolicySet, found: &mut Found) {
    match (before.base().admin.as_ref(), after.base().admin.as_ref()) {
        (None, None) => {}
        (Some(_), None) => found.add("admin_off", "the admin record no longer counts", None),
        (None, Some(new)) => opened(&Lists::default(), new, found),
        (Some(old), Some(new)) => between(old, new, found),
    }
}

fn opened(before: &Lists, admin: &Admin, found: &mut Found) {
    if !admin.auto_run_disabled {
        entries::opened(&before.mcp, &admin.lists.mcp, "the admin's MCP allowlist", found);
        entries::opened_commands(&before.terminal, &admin.lists.terminal, "the admin's list of commands", found);
    }
}

fn between(old: &Admin, new: &Admin, found: &mut Found) {
    opened(&old.lists, new, found);
    found.if_off(
        old.auto_run_disabled,
        new.auto_run_disabled,
        "auto_run_on",
        "the admin record lets calls run unasked",
    );
    let never = |admin: &Admin| !admin.enable_run_everything;
    found.if_off(never(old), never(new), "mode_raised", "the admin record lets people run everything");
    for rule in old.blocked_rules.iter().filter(|rule| !new.blocked_rules.iter().any(|kept| kept.text == rule.text)) {
        found.add("block_removed", format!("`{}` is no longer blocked", rule.text), Some(&rule.origin));
    }
    for (host, rule) in &old.denied_hosts {
        if !new.denied_hosts.iter().any(|(kept, _)| kept == host) {
            found.add("domain_removed", format!("`{}` is no longer denied", rule.text), Some(&rule.origin));
        }
    }
}
