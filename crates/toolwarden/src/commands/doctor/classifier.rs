//! Whether the classifier can be used, and whether anything lets it pay.

use toolwarden_core::name::shown;
use toolwarden_sources::Loaded;

use super::Check;
use crate::serving;

const NAME: &str = "classifier";

/// Nothing where nobody wants one.
pub(super) fn check(loaded: &Loaded) -> Option<Check> {
    let base = &loaded.input.base;
    let of_modes = base.modes.iter().any(|mode| mode.auto_review == Some(true));
    let is_on = base.auto_run.auto_review || of_modes;
    let Some(section) = &loaded.config.classifier else {
        let next = "add [classifier] to toolwarden.toml, or switch auto_review off";
        let message = "auto_review is on and no classifier is configured: calls are held for persons all the same";
        return is_on.then(|| Check::warning(NAME, message, next));
    };
    if let Err(why) = serving::classifier_settings(section) {
        let message = format!("cannot be used, so held calls are for persons: {}", shown(&why));
        return Some(Check::problem(NAME, message, "correct [classifier] in toolwarden.toml"));
    }
    if base.admin.as_ref().is_some_and(|admin| admin.enabled) {
        let message = "the admin's record counts, under which no classifier pays";
        return Some(Check::warning(NAME, message, "leave [classifier] out, or ask the admin"));
    }
    if !is_on {
        let message = "is configured and never asked: auto_review is off";
        return Some(Check::warning(NAME, message, "set [auto_run] auto_review = true, or that of a mode"));
    }
    let model = section.model.as_deref().map(|model| format!(" ({})", shown(model))).unwrap_or_default();
    let does = if section.shadow { "is asked and pays nothing (shadow)" } else { "is asked before persons are" };
    Some(Check::ok(NAME, format!("{}{model} {does}", section.kind)))
}
