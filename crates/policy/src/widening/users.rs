//! What is stored for users, and the files of the operating-system user.

use std::collections::BTreeSet;

use toolwarden_core::name;

use super::{Found, entries};
use crate::input::AutoRunMode;
use crate::lists::UserLayer;
use crate::set::PolicySet;

pub(super) fn compare(before: &PolicySet, after: &PolicySet, found: &mut Found) {
    let (old_default, new_default) = (before.base().auto_run.mode, after.base().auto_run.mode);
    if reach(new_default) > reach(old_default) {
        found.add("mode_raised", format!("auto-run is now `{}`", new_default.as_str()), None);
    }
    let names: BTreeSet<&String> = before.users().keys().chain(after.users().keys()).collect();
    let nothing = UserLayer::default();
    for user in names {
        let old = before.users().get(user).map_or(&nothing, AsRef::as_ref);
        let new = after.users().get(user).map_or(&nothing, AsRef::as_ref);
        let shown = name::shown(user);
        let mode = new.mode.unwrap_or(new_default);
        // Where neither is stored, the general mode above has said it.
        let is_own = old.mode.is_some() || new.mode.is_some();
        if is_own && reach(mode) > reach(old.mode.unwrap_or(old_default)) {
            found.add("mode_raised", format!("auto-run of {shown} is now `{}`", mode.as_str()), None);
        }
        entries::opened(&old.lists.mcp, &new.lists.mcp, &format!("the MCP allowlist of {shown}"), found);
        let whose = format!("the terminal allowlist of {shown}");
        entries::opened_commands(&old.lists.terminal, &new.lists.terminal, &whose, found);
        entries::lifted(&old.blocks, &new.blocks, "block_removed", &format!("blocked for {shown}"), found);
    }
    local(before, after, found);
}

/// How much a mode lets through.
fn reach(mode: AutoRunMode) -> u8 {
    match mode {
        AutoRunMode::AskEveryTime => 0,
        AutoRunMode::UseAllowlist => 1,
        AutoRunMode::RunEverything => 2,
    }
}

fn local(before: &PolicySet, after: &PolicySet, found: &mut Found) {
    let (old, new) = (before.local(), after.local());
    if old.user() != new.user() {
        found.add("local_user_changed", "the local files are now another user's", None);
    }
    entries::opened(old.mcp(), new.mcp(), "the local MCP allowlist", found);
    entries::opened_commands(old.terminal(), new.terminal(), "the local terminal allowlist", found);
    let what = "permissions.json can be read: a classifier may pay again";
    found.if_off(old.classifier_off, new.classifier_off, "payer_added", what);
}
