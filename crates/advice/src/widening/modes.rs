//! Modes by slug: added, repaired, or with a restriction less.

use toolwarden_policy::PolicySet;
use toolwarden_policy::modes::Mode;

use super::{Found, auto_run};

pub(super) fn compare(before: &PolicySet, after: &PolicySet, found: &mut Found) {
    for new in after.base().modes.sorted() {
        if !new.faults.is_empty() {
            continue;
        }
        let Some(old) = before.base().modes.get(&new.slug) else {
            found.add("mode_added", format!("the mode `{}` is new", new.slug), Some(&new.origin));
            continue;
        };
        if !old.faults.is_empty() {
            found.add("mode_added", format!("the mode `{}` can be used again", new.slug), Some(&new.origin));
            continue;
        }
        for what in old.no_longer_restricted_by(new) {
            found.add("mode_widened", format!("mode `{}`: {what}", new.slug), Some(&new.origin));
        }
        opted_in(old, new, after, found);
        let (was, is) = (before.auto_review(Some(old)), after.auto_review(Some(new)));
        // Where neither says anything of its own, the general setting has said it.
        if was != is && (old.auto_review.is_some() || new.auto_review.is_some()) {
            let what = format!("mode `{}`: {}", new.slug, auto_run::auto_review(is));
            found.add("auto_review_changed", what, Some(&new.origin));
        }
    }
}

/// Servers that are off by default, and that a mode names newly.
fn opted_in(old: &Mode, new: &Mode, after: &PolicySet, found: &mut Found) {
    for server in after.servers().sorted().into_iter().filter(|server| !server.default_enabled) {
        if new.opts_in(&server.name) && !old.opts_in(&server.name) {
            let what = format!("mode `{}` names the server `{}`, which is off by default", new.slug, server.name);
            found.add("mode_widened", what, Some(&new.origin));
        }
    }
}
