//! What the caller's role and the tool's scope let through. Persons have no role here.

use toolwarden_core::Reason;
use toolwarden_core::json::{self, Kind, Value};

use crate::input::{ArgumentCondition, Scope};
use crate::modes::fits_any;
use crate::numbers;
use crate::pattern::Reach;
use crate::roles::Role;
use crate::shipped;
use crate::subject::{Arguments, Subject};
use crate::verdict::{RuleRef, Step};

pub(super) fn disallow(subject: &Subject<'_>) -> Step {
    let Some(role) = subject.role else { return Step::NOT_APPLICABLE };
    // Deny sides reach every server, whoever declared it.
    match role.disallow.find(subject.names.server_name, subject.names.tool_name, Reach::WithBare) {
        Some(rule) => Step::because(Reason::RoleDisallowed).by(Some(rule.clone())),
        None => Step::PASS,
    }
}

pub(super) fn allow(subject: &Subject<'_>) -> Step {
    let Some(role) = subject.role else { return Step::NOT_APPLICABLE };
    let (server, tool, reach) = (subject.names.server_name, subject.names.tool_name, subject.reach());
    let Some(rule) = role.allow.find(server, tool, reach) else {
        let here = RuleRef::new(format!("role {}", role.name), &role.origin);
        let step = Step::because(Reason::RoleNotAllowed).by(Some(here));
        return match role.allow.find(server, tool, Reach::WithBare) {
            Some(bare) => {
                step.noting(format!("`{}` names no server, so it reaches only servers of your own config", bare.text))
            }
            None => step,
        };
    };
    // What narrows a role reaches every server, whoever declared it.
    if let Some(limit) = role.only_task_tools.find(server, tool, Reach::WithBare) {
        let whole = format!("{server}:{tool}");
        if !subject.caller.token.task_tools.iter().any(|given| *given == tool || *given == whole) {
            return Step::because(Reason::TaskToolMissing).by(Some(limit.clone()));
        }
    }
    match subject.arguments {
        Arguments::Known(arguments) => {
            unmet_condition(role, subject, arguments).unwrap_or_else(|| Step::PASS.by(Some(rule.clone())))
        }
        Arguments::Unknown => without_condition(role, subject).unwrap_or_else(|| Step::PASS.by(Some(rule.clone()))),
    }
}

/// A tool that is only permitted under a condition, where the config gives none.
fn without_condition(role: &Role, subject: &Subject<'_>) -> Option<Step> {
    let (server, tool) = (subject.names.server_name, subject.names.tool_name);
    let rule = role.conditional.find(server, tool, Reach::WithBare)?;
    let configured = role.conditions_for(server, tool).next().is_some();
    (!configured)
        .then(|| Step::because(Reason::RoleCondition).by(Some(rule.clone())).noting("no condition is configured"))
}

fn unmet_condition(role: &Role, subject: &Subject<'_>, arguments: Option<Value<'_>>) -> Option<Step> {
    let (server, tool) = (subject.names.server_name, subject.names.tool_name);
    let unmet = role.conditions_for(server, tool).find(|condition| !meets(condition, arguments));
    match unmet {
        Some(condition) => {
            let rule = RuleRef::new(condition.tool.value.as_str(), &condition.tool.origin);
            Some(Step::because(Reason::RoleCondition).by(Some(rule)).noting(describe(condition)))
        }
        None => without_condition(role, subject),
    }
}

/// Every named argument must have one of its texts. Numbers are compared by value, so every spelling meets the same
/// texts (WORK-2).
fn meets(condition: &ArgumentCondition, arguments: Option<Value<'_>>) -> bool {
    condition.arguments.iter().all(|(name, texts)| {
        let Some(value) = arguments.and_then(|arguments| arguments.get(name)) else { return false };
        match value.kind() {
            Kind::String => value.as_str().is_some_and(|text| fits_any(texts, &text)),
            Kind::Number => numbers::canonical(value.raw()).is_some_and(|number| fits_number(texts, &number)),
            Kind::True | Kind::False => fits_any(texts, value.raw()),
            Kind::Null | Kind::Array | Kind::Object => false,
        }
    })
}

/// Whether a number, in its one text, is one of the texts: the same value, or a beginning with `*`.
fn fits_number(texts: &[String], number: &str) -> bool {
    let is_value = |text: &String| {
        json::Document::parse(text.as_str(), json::Limits::again(text.len()))
            .is_ok_and(|text| text.root().kind() == Kind::Number && same_number(text.root().raw(), number))
    };
    fits_any(texts, number) || texts.iter().any(is_value)
}

fn same_number(text: &str, number: &str) -> bool {
    numbers::canonical(text).as_deref() == Some(number)
}

fn describe(condition: &ArgumentCondition) -> String {
    let parts: Vec<String> =
        condition.arguments.iter().map(|(name, texts)| format!("`{name}` must be {}", texts.join(" or "))).collect();
    parts.join(", ")
}

/// GATE-7, on top of the allowlist.
pub(super) fn scope(subject: &Subject<'_>) -> Step {
    let Some(role) = subject.role else { return Step::NOT_APPLICABLE };
    let tool = subject.names.tool_name;
    let scope = match subject.names.server {
        Some(server) => server.scope(tool),
        None if subject.reach() == Reach::WithBare => shipped::preset_scope(tool),
        None => None,
    };
    match scope {
        None => Step::because(Reason::ScopeMissing),
        Some(Scope::Both) => Step::PASS.noting("scope both"),
        Some(scope) if scope == role.side => Step::PASS.noting(scope_note(scope)),
        Some(scope) => Step::because(Reason::ScopeMismatch).noting(scope_note(scope)),
    }
}

fn scope_note(scope: Scope) -> &'static str {
    match scope {
        Scope::Sandbox => "scope sandbox",
        Scope::Pm => "scope pm",
        Scope::Both => "scope both",
    }
}

/// GATE-6: a tool, for everyone or for one role, may depend on a setting.
pub(super) fn setting(subject: &Subject<'_>) -> Step {
    let tool = subject.names.tool_name;
    let of_tool = subject.names.server.map(|server| server.narrowed(tool).settings.as_slice()).unwrap_or_default();
    let of_role = subject.role.and_then(|role| role.setting_for(tool));
    let settings = &subject.policy.base().settings;
    let mut needed = of_tool.iter().map(String::as_str).chain(of_role);
    match needed.find(|key| !settings.is_on(key)) {
        Some(key) => Step::because(Reason::SettingOff).noting(format!("setting `{key}`")),
        None if of_tool.is_empty() && of_role.is_none() => Step::NOT_APPLICABLE,
        None => Step::PASS,
    }
}
