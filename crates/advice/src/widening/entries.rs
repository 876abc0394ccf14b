//! Lists of `server:tool` entries and of command entries: which of one list another does not cover.

use toolwarden_core::{Entry, Side};
use toolwarden_policy::{ListContents, NarrowEntry, RuleRef};

use super::Found;

/// Entries that open something newly. Tools compare exactly: where a server lists twins, only the exact name counts.
pub(super) fn opened(before: &[&RuleRef], after: &[&RuleRef], whose: &str, found: &mut Found) {
    let known = parsed(before);
    for (rule, entry) in parsed(after) {
        let same_tool = |other: &Entry| match (&other.tool, &entry.tool) {
            (Side::Any, _) => true,
            (Side::Name(mine), Side::Name(theirs)) => mine == theirs,
            (Side::Name(_), Side::Any) => false,
        };
        if !known.iter().any(|(_, other)| other.server.covers(&entry.server) && same_tool(other)) {
            found.add("entry_added", format!("`{}` is newly in {whose}", rule.text), Some(&rule.origin));
        }
    }
}

/// Entries over arguments that open something newly; the same tool, or more, may have been open before.
pub(super) fn opened_narrow(before: &ListContents<'_>, after: &ListContents<'_>, whose: &str, found: &mut Found) {
    let known = parsed(&before.mcp);
    let mut added: Vec<&RuleRef> = after.narrow.clone();
    added.sort_by(|left, right| left.text.cmp(&right.text));
    added.retain(|rule| !before.narrow.iter().any(|other| other.text == rule.text));
    for rule in added {
        let tool = NarrowEntry::parse(&rule.text).map(|entry| entry.whole_tool());
        let is_exact = |other: &Entry, tool: &Entry| other.tool == Side::Any || other.tool == tool.tool;
        if !tool.is_ok_and(|tool| known.iter().any(|(_, other)| other.covers(&tool) && is_exact(other, &tool))) {
            found.add("entry_added", format!("`{}` is newly in {whose}", rule.text), Some(&rule.origin));
        }
    }
}

/// Entries that held or denied something and are gone. These ignore case.
pub(super) fn lifted(before: &[&RuleRef], after: &[&RuleRef], code: &'static str, what: &str, found: &mut Found) {
    let kept = parsed(after);
    for (rule, entry) in parsed(before) {
        if !kept.iter().any(|(_, other)| other.covers(&entry)) {
            found.add(code, format!("`{}` is no longer {what}", rule.text), Some(&rule.origin));
        }
    }
}

/// Command entries that open something newly.
pub(super) fn opened_commands(before: &[&RuleRef], after: &[&RuleRef], whose: &str, found: &mut Found) {
    for rule in after {
        if !before.iter().any(|known| known.text == rule.text) {
            found.add("entry_added", format!("`{}` is newly in {whose}", rule.text), Some(&rule.origin));
        }
    }
}

/// Only entries that parse are in a list.
pub(super) fn parsed<'a>(list: &[&'a RuleRef]) -> Vec<(&'a RuleRef, Entry)> {
    let mut entries: Vec<(&RuleRef, Entry)> =
        list.iter().filter_map(|rule| Some((*rule, Entry::parse(&rule.text).ok()?))).collect();
    entries.sort_by(|left, right| left.0.text.cmp(&right.0.text));
    entries
}
