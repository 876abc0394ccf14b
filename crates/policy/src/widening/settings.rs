//! System settings: tools switched on again, and settings tools depend on.

use toolwarden_core::{Entry, Side};

use super::{Found, entries};
use crate::set::PolicySet;
use crate::settings::Settings;

pub(super) fn compare(before: &PolicySet, after: &PolicySet, found: &mut Found) {
    let (old, new) = (&before.base().settings, &after.base().settings);
    for (rule, entry) in entries::parsed(old.entries_off()) {
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
    by_name || entries::parsed(settings.entries_off()).iter().any(|(_, kept)| kept.covers(entry))
}
