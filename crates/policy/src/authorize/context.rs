//! The caller's credential and context: still good, of a known role, with what the role needs.

use toolwarden_core::{Reason, Standing, name};

use crate::input::Scope;
use crate::subject::{ModeChoice, Subject};
use crate::verdict::{RuleRef, Step};

pub(super) fn context(subject: &Subject<'_>) -> Step {
    let token = &subject.caller.token;
    match token.standing {
        Standing::Good => {}
        Standing::Revoked => return Step::because(Reason::CredentialRevoked),
        Standing::Unknown => return Step::because(Reason::CredentialUnverified),
    }
    if token.expires_at.is_some_and(|end| end <= subject.query.time) {
        return Step::because(Reason::CredentialExpired);
    }
    if token.calls_left == Some(0) {
        return Step::because(Reason::CredentialExhausted);
    }
    if subject.caller.is_agent()
        && let Some(denial) = role_context(subject)
    {
        return denial;
    }
    mode_context(subject)
}

/// GATE-3: what a role's credential must carry.
fn role_context(subject: &Subject<'_>) -> Option<Step> {
    let caller = subject.caller;
    let Some(role) = subject.role else {
        let given = caller.role.as_deref().unwrap_or("");
        return Some(Step::because(Reason::RoleUnknown).noting(format!("role `{}`", name::shown(given))));
    };
    let missing: Vec<&str> = match role.side {
        Scope::Sandbox => [("task", &caller.context.task), ("job", &caller.context.job)]
            .into_iter()
            .filter(|(_, value)| value.as_deref().is_none_or(str::is_empty))
            .map(|(name, _)| name)
            .collect(),
        Scope::Pm | Scope::Both => {
            caller.user.as_deref().is_none_or(str::is_empty).then_some("user").into_iter().collect()
        }
    };
    if missing.is_empty() {
        return None;
    }
    let detail = format!("role `{}` needs {}", role.name, missing.join(" and "));
    Some(
        Step::because(Reason::ContextMissing)
            .by(Some(RuleRef::new(format!("role {}", role.name), &role.origin)))
            .noting(detail),
    )
}

fn mode_context(subject: &Subject<'_>) -> Step {
    match subject.mode {
        ModeChoice::None | ModeChoice::Chosen(_) => Step::PASS,
        ModeChoice::Required => Step::because(Reason::ModeRequired),
        ModeChoice::Unknown(slug) => Step::because(Reason::ModeUnknown).noting(format!("mode `{}`", name::shown(slug))),
        ModeChoice::NotIssued(slug) => {
            Step::because(Reason::ModeNotIssued).noting(format!("mode `{}`", name::shown(slug)))
        }
        ModeChoice::Refused(mode) => {
            Step::because(Reason::ModeRefused).by(Some(mode.rule.clone())).noting(mode.faults.join("; "))
        }
    }
}
