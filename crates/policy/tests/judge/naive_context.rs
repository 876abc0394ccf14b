//! Credential, role and mode of the caller (GATE-3, MODE-8).

use toolwarden_core::{Reason, Standing};
use toolwarden_policy::Query;
use toolwarden_policy::input::{ArgumentCondition, ModeInput, PolicyInput, RoleInput, Scope};

use crate::naive::Case;
use crate::naive_modes;
use crate::naive_shipped::{ShippedRole, shipped_role};

/// A role as it counts: what is configured replaces that key of what is shipped.
#[derive(Debug, Clone)]
pub struct Role<'a> {
    pub name: &'a str,
    pub shipped: Option<&'static ShippedRole>,
    pub configured: Option<&'a RoleInput>,
}

impl<'a> Role<'a> {
    pub fn scope(&self) -> Option<Scope> {
        self.configured.and_then(|role| role.scope).or(self.shipped.map(|role| role.scope))
    }

    pub fn allow(&self) -> Vec<&'a str> {
        match self.configured.and_then(|role| role.allow.as_ref()) {
            Some(patterns) => patterns.iter().map(|pattern| pattern.value.as_str()).collect(),
            None => self.shipped.map(|role| role.allow.to_vec()).unwrap_or_default(),
        }
    }

    pub fn disallow(&self) -> Vec<&'a str> {
        match self.configured.and_then(|role| role.disallow.as_ref()) {
            Some(patterns) => patterns.iter().map(|pattern| pattern.value.as_str()).collect(),
            None => self.shipped.map(|role| role.disallow.to_vec()).unwrap_or_default(),
        }
    }

    pub fn conditions(&self) -> &'a [ArgumentCondition] {
        self.configured.map(|role| role.conditions.as_slice()).unwrap_or_default()
    }
}

/// Looks a role up by name or alias.
pub fn role<'a>(input: &'a PolicyInput, name: &'a str) -> Option<Role<'a>> {
    let shipped = shipped_role(name);
    let name = shipped.map_or(name, |role| role.name);
    let configured = input.base.roles.iter().find(|role| role.name.value == name);
    (shipped.is_some() || configured.is_some()).then_some(Role { name, shipped, configured })
}

/// The mode a call is made in.
#[derive(Debug, Clone)]
pub enum Chosen<'a> {
    None,
    /// The mode and its ancestors, the mode first; empty for a shipped mode without restrictions.
    Mode {
        slug: String,
        chain: Vec<&'a ModeInput>,
    },
    Denied(Reason),
}

const SHIPPED_MODES: [&str; 5] = ["architect", "code", "ask", "debug", "orchestrator"];

pub fn mode<'a>(input: &'a PolicyInput, query: &Query) -> Chosen<'a> {
    let caller = &query.caller;
    let issued = &caller.token.modes;
    let slug = match (&caller.mode, issued.as_slice()) {
        (Some(asked), _) => Some(asked.clone()),
        (None, [only]) => Some(only.clone()),
        (None, []) => input.base.auto_run.default_mode.as_ref().map(|mode| mode.value.clone()),
        (None, _) => return Chosen::Denied(Reason::ModeRequired),
    };
    let Some(slug) = slug else {
        return if input.base.auto_run.require_mode { Chosen::Denied(Reason::ModeRequired) } else { Chosen::None };
    };
    if caller.is_agent() && caller.mode.is_some() && !issued.contains(&slug) {
        return Chosen::Denied(Reason::ModeNotIssued);
    }
    if !input.base.modes.iter().any(|mode| mode.slug == slug) {
        return if SHIPPED_MODES.contains(&slug.as_str()) {
            Chosen::Mode { slug, chain: Vec::new() }
        } else {
            Chosen::Denied(Reason::ModeUnknown)
        };
    }
    match naive_modes::chain(input, &slug) {
        Some(chain) => Chosen::Mode { slug, chain },
        None => Chosen::Denied(Reason::ModeRefused),
    }
}

pub fn gate(case: &Case<'_>) -> Option<Reason> {
    let caller = &case.query.caller;
    if caller.token.standing == Standing::Revoked {
        return Some(Reason::CredentialRevoked);
    }
    if caller.token.standing == Standing::Unknown {
        return Some(Reason::CredentialUnverified);
    }
    if caller.token.expires_at.is_some_and(|end| case.query.time >= end) {
        return Some(Reason::CredentialExpired);
    }
    if caller.token.calls_left == Some(0) {
        return Some(Reason::CredentialExhausted);
    }
    if case.is_agent() {
        let Some(role) = &case.role else { return Some(Reason::RoleUnknown) };
        let context = &caller.context;
        let lacks = match role.scope() {
            Some(Scope::Sandbox) => context.task.is_none() || context.job.is_none(),
            Some(Scope::Pm) => caller.user.is_none(),
            Some(Scope::Both) | None => false,
        };
        if lacks {
            return Some(Reason::ContextMissing);
        }
    }
    match &case.mode {
        Chosen::Denied(reason) => Some(*reason),
        Chosen::None | Chosen::Mode { .. } => None,
    }
}
