//! The admin record: while there is one, its lists count and nobody else's.

use toolwarden_policy::{AdminContents, ListContents, PolicySet};

use super::{Found, entries};

pub(super) fn compare(before: &PolicySet, after: &PolicySet, found: &mut Found) {
    match (before.contents().admin(), after.contents().admin()) {
        (None, None) => {}
        (Some(_), None) => found.add("admin_off", "the admin record no longer counts", None),
        (None, Some(new)) => opened(&ListContents::default(), &new, found),
        (Some(old), Some(new)) => between(&old, &new, found),
    }
}

fn opened(before: &ListContents<'_>, admin: &AdminContents<'_>, found: &mut Found) {
    if !admin.auto_run_disabled {
        entries::opened(&before.mcp, &admin.lists.mcp, "the admin's MCP allowlist", found);
        entries::opened_commands(&before.terminal, &admin.lists.terminal, "the admin's list of commands", found);
    }
}

fn between(old: &AdminContents<'_>, new: &AdminContents<'_>, found: &mut Found) {
    opened(&old.lists, new, found);
    found.if_off(
        old.auto_run_disabled,
        new.auto_run_disabled,
        "auto_run_on",
        "the admin record lets calls run unasked",
    );
    let never = |admin: &AdminContents<'_>| !admin.enable_run_everything;
    found.if_off(never(old), never(new), "mode_raised", "the admin record lets people run everything");
    for rule in old.blocked.iter().filter(|rule| !new.blocked.iter().any(|kept| kept.text == rule.text)) {
        found.add("block_removed", format!("`{}` is no longer blocked", rule.text), Some(&rule.origin));
    }
    for (host, rule) in old.denied_hosts {
        if !new.denied_hosts.iter().any(|(kept, _)| kept == host) {
            found.add("domain_removed", format!("`{}` is no longer denied", rule.text), Some(&rule.origin));
        }
    }
}
