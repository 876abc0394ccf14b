//! System settings: tools switched on again, and settings tools depend on.

use toolwarden_core::{Entry, Side};
use toolwarden_policy::{PolicySet, RuleRef, Settings};

use super::{Found, entries};

pub(super) fn compare(before: &PolicySet, after: &PolicySet, found: &mut Found) {
    let (old, new) = (before.contents().settings(), after.contents().settings());
    for (rule, entry) in parsed_off(old) {
        if !is_off(new, &entry) {
            found.add("tool_on", format!("`{}` is switched on", rule.text), Some(&rule.origin));
        }
    }
    for (name, rule) in old.names_off() {
        let entry = Entry { server: Side::Any, tool: Side::Name(name.to_owned()) };
        if !is_off(new, &entry) {
            found.add("tool_on", format!("`{}` is switched on", rule.text), Some(&rule.origin));
        }
    }
    for (key, origin) in new.keys_on().filter(|(key, _)| !old.is_on(key)) {
        found.add("setting_on", format!("the setting `{key}` is on"), Some(origin));
    }
}

fn is_off(settings: &Settings, entry: &Entry) -> bool {
    let by_name = match &entry.tool {
        Side::Name(tool) => settings.names_off().any(|(name, _)| name.eq_ignore_ascii_case(tool)),
        Side::Any => false,
    };
    by_name || parsed_off(settings).iter().any(|(_, kept)| kept.covers(entry))
}

fn parsed_off(settings: &Settings) -> Vec<(&RuleRef, Entry)> {
    entries::parsed(&settings.entries_off().collect::<Vec<_>>())
}
