//! What is stored for users, and the files of the operating-system user.

use toolwarden_core::name;
use toolwarden_policy::input::{AutoRunMode, OwnProtections};
use toolwarden_policy::{Contents, LocalContents, PolicySet};

use super::{Found, entries};

pub(super) fn compare(before: &PolicySet, after: &PolicySet, found: &mut Found) {
    let (old, new) = (before.contents(), after.contents());
    let new_default = new.auto_run().mode;
    // Where the gate itself moves, that is what is said.
    let (was_on, is_on) = (old.auto_run().mcp_allowlists, new.auto_run().mcp_allowlists);
    let is_off = !was_on && !is_on;
    if !was_on && is_on && !old.auto_run().mode_is_chosen {
        found.add("gate_on", "the MCP allowlists count again; without a chosen mode everything was held", None);
    }
    if is_raised((old, None), (new, None), is_off) {
        found.add("mode_raised", format!("auto-run is now `{}`", new_default.as_str()), None);
    }
    for user in old.users().union(&new.users()) {
        let (whole_old, whole_new) = (old, new);
        let (old, new) = (old.user(user), new.user(user));
        let shown = name::shown(user);
        let mode = new.mode.unwrap_or(new_default);
        let is_raised = is_raised((whole_old, old.mode), (whole_new, new.mode), is_off);
        // Where neither is stored, the general mode above has said it.
        let is_own = old.mode.is_some() || new.mode.is_some();
        if is_own && is_raised {
            found.add("mode_raised", format!("auto-run of {shown} is now `{}`", mode.as_str()), None);
        }
        protections((before, after), (&old.protections, &new.protections), &shown, found);
        let whose = format!("the MCP allowlist of {shown}");
        entries::opened(&old.lists.mcp, &new.lists.mcp, &whose, found);
        entries::opened_narrow(&old.lists, &new.lists, &whose, found);
        let whose = format!("the terminal allowlist of {shown}");
        entries::opened_commands(&old.lists.terminal, &new.lists.terminal, &whose, found);
        entries::lifted(&old.blocks, &new.blocks, "block_removed", &format!("blocked for {shown}"), found);
    }
    local(before, after, found);
}

/// Whether a mode lets more through: of commands and listed tools by its kind; and of every MCP tool, while the
/// allowlists are off, where somebody chose it (ALLOW-9).
fn is_raised(old: (Contents<'_>, Option<AutoRunMode>), new: (Contents<'_>, Option<AutoRunMode>), is_off: bool) -> bool {
    let mode = |(policy, own): (Contents<'_>, Option<AutoRunMode>)| own.unwrap_or(policy.auto_run().mode);
    let runs_unlisted = |(policy, own): (Contents<'_>, Option<AutoRunMode>)| {
        let is_chosen = own.is_some() || policy.auto_run().mode_is_chosen;
        is_chosen && mode((policy, own)) != AutoRunMode::AskEveryTime
    };
    reach(mode(new)) > reach(mode(old)) || (is_off && runs_unlisted(new) && !runs_unlisted(old))
}

/// Where neither side is the user's own, what counts for everybody was compared already.
fn protections(
    (before, after): (&PolicySet, &PolicySet),
    (old, new): (&OwnProtections, &OwnProtections),
    user: &str,
    found: &mut Found,
) {
    let (was, is) = (before.contents().auto_run(), after.contents().auto_run());
    let sides = [
        ("MCP protection", old.mcp, was.mcp_protection, new.mcp, is.mcp_protection),
        ("browser protection", old.browser, was.browser_protection, new.browser, is.browser_protection),
        ("delete protection", old.delete, was.delete_protection, new.delete, is.delete_protection),
    ];
    for (what, old, was, new, is) in sides {
        if old.is_some() || new.is_some() {
            let words = format!("{what} of {user} is off");
            found.if_off(old.unwrap_or(was), new.unwrap_or(is), "protection_off", &words);
        }
    }
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
    let (old, new) = (before.contents(), after.contents());
    if old.local(None).user != new.local(None).user {
        found.add("local_user_changed", "the local files are now another user's", None);
    }
    local_in(&old.local(None), &new.local(None), found);
    // A workspace without a file of its own is compared as every other place.
    for workspace in old.workspaces().union(&new.workspaces()) {
        local_in(&old.local(Some(workspace)), &new.local(Some(workspace)), found);
    }
}

fn local_in(old: &LocalContents<'_>, new: &LocalContents<'_>, found: &mut Found) {
    entries::opened(&old.lists.mcp, &new.lists.mcp, "the local MCP allowlist", found);
    entries::opened_narrow(&old.lists, &new.lists, "the local MCP allowlist", found);
    entries::opened_commands(&old.lists.terminal, &new.lists.terminal, "the local terminal allowlist", found);
    let what = "permissions.json can be read: a classifier may pay again";
    found.if_off(old.classifier_off, new.classifier_off, "payer_added", what);
}
