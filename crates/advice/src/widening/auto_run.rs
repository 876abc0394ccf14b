//! `[auto_run]`, protections, features, and what Toolwarden protects of itself.

use std::collections::BTreeSet;

use toolwarden_policy::input::AutoRunInput;
use toolwarden_policy::{AdminContents, Contents, PolicySet};

use super::{Found, entries};

pub(super) fn compare(before: &PolicySet, after: &PolicySet, found: &mut Found) {
    let (old, new) = (before.contents(), after.contents());
    protections(old, new, found);
    entries::lifted(&old.ask(), &new.ask(), "ask_removed", "asked for every time", found);
    let (was, is) = (old.auto_run(), new.auto_run());
    found.if_off(was.mcp_allowlists, is.mcp_allowlists, "gate_off", "MCP allowlists are switched off");
    found.if_off(was.require_mode, is.require_mode, "mode_not_required", "a mode is no longer required");
    found.if_off(!was.sandbox_resolves, !is.sandbox_resolves, "payer_added", "the sandbox may now pay for shell calls");
    if was.auto_review != is.auto_review {
        found.add("auto_review_changed", auto_review(is.auto_review), None);
    }
    let slug = |settings: &AutoRunInput| settings.default_mode.as_ref().map(|mode| mode.value.clone());
    if slug(was) != slug(is) {
        let name = slug(is).map_or("no mode".to_owned(), |slug| format!("the mode `{slug}`"));
        let origin = is.default_mode.as_ref().map(|mode| &mode.origin);
        found.add("default_mode_changed", format!("callers without a mode now have {name}"), origin);
    }
    let browsers = |settings: &AutoRunInput| settings.browser_servers.iter().cloned().collect::<BTreeSet<_>>();
    if browsers(was) != browsers(is) {
        found.add("browser_servers_changed", "other servers count as browsers", None);
    }
    places(old, new, found);
}

pub(super) fn auto_review(is_on: bool) -> &'static str {
    if is_on {
        "auto-review is on: a classifier may let held calls pass"
    } else {
        "auto-review is off: run-everything runs without it"
    }
}

/// A protection is on where the settings or the admin record say so.
fn protections(old: Contents<'_>, new: Contents<'_>, found: &mut Found) {
    let is_on = |policy: Contents<'_>, own: fn(&AutoRunInput) -> bool, admins: fn(&AdminContents<'_>) -> bool| {
        own(policy.auto_run()) || policy.admin().is_some_and(|admin| admins(&admin))
    };
    let mcp = |policy| is_on(policy, |own| own.mcp_protection, |admin| admin.mcp_protection);
    let browser = |policy| is_on(policy, |own| own.browser_protection, |admin| admin.browser_protection);
    let delete = |policy| is_on(policy, |own| own.delete_protection, |admin| admin.delete_protection);
    found.if_off(mcp(old), mcp(new), "protection_off", "MCP protection is off");
    found.if_off(browser(old), browser(new), "protection_off", "browser protection is off");
    found.if_off(delete(old), delete(new), "protection_off", "delete protection is off");
}

fn places(old: Contents<'_>, new: Contents<'_>, found: &mut Found) {
    let (old, new) = (old.places(), new.places());
    for path in old.paths().iter().filter(|path| !new.paths().contains(path)) {
        found.add("place_unprotected", format!("{} is no longer protected", path.display()), None);
    }
    if old.home() != new.home() {
        found.add("home_changed", "`~` means another directory", None);
    }
}
